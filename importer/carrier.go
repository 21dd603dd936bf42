package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/internal/crash"
	"leadferry/internal/failpoint"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Sender makes the service's calls. It never retries; its errors are *leadapi.Error.
type Sender interface {
	Create(ctx context.Context, r *leadapi.CreateRequest) (*leadapi.Created, error)
	Update(ctx context.Context, leadID string, r *leadapi.UpdateRequest) (*leadapi.Lead, error)
}

// carrier takes one row at a time from its step to its outcome, for all lanes. Each wait is a blocking call: until the
// claim is durable, until there is a place in flight, until the answer comes, until the outcome is durable.
type carrier struct {
	*run
	engine  *engine
	hasRead atomic.Bool // an update without content has shown a lead
}

// carry takes a row to its outcome. What the outcome says of a lead is durable when it returns, unless the text says
// that the checkpoint did not take it; then the entry is what the checkpoint has. Pending and Failed may withdraw a
// claim or a mark, and store what a read or an answer showed. A panic ends the run in order.
func (c *carrier) carry(ctx context.Context, j *job) {
	if fault := crash.Call(func() error { c.act(ctx, j); return nil }); fault != nil {
		c.engine.halt(crashed(fault))
		if j.outcome != Pending {
			j.text = doubtReasons[reasonPanic]
			j.asStored()
		}
	}
	if j.others != nil {
		j.text = strings.TrimSuffix(listed(byOthers, j.others)+"; "+j.text, "; ")
	}
	j.sayOrganization()
	if end := c.breaker.Over(); end != nil {
		c.engine.halt(end)
	}
}

func (c *carrier) act(ctx context.Context, j *job) {
	switch j.step.Action {
	case Create:
		c.create(ctx, j)
	case Link:
		c.linkLater(ctx, j)
	case Update:
		c.update(ctx, j)
	case Read:
		c.look(ctx, j)
	case StoreSeen:
		c.endRead(j, remembered(&j.before, &j.rec))
	case Hold: // what a person needs to find the lead, without digests, because its data are not known
		j.entry = c.doubtOf(j)
		j.entry.Digest, j.entry.Content, j.entry.Reason = checkpoint.Digest{}, nil, checkpoint.ReasonIncomplete
		c.settle(j, InDoubt)
	}
}

// create makes a lead, and links it if the row has an ExternalID: first the claim, a note that a create is about to be
// sent, then the request, then the outcome.
func (c *carrier) create(ctx context.Context, j *job) {
	failpoint.At("before intent")
	shape := c.shapes[j.input].Load()
	if c.Client.RequestIDHeader != "" {
		j.requestID = leadapi.NewRequestID()
	}
	intent := c.doubtOf(j)
	intent.RequestID, intent.Updated = j.requestID, time.Time{} // it gets the time of its commit
	claim := checkpoint.Change{Kind: checkpoint.Claim, Entry: intent, Resend: j.resends(), Shape: shape}
	if _, err := c.store(c.engine.taking, j, claim); err != nil {
		c.ledgerRefused(j, err)
		return
	}
	if shape != nil {
		c.shapes[j.input].Store(nil)
	}
	j.outcome = InDoubt
	made, err := c.sendCreate(ctx, j)
	if err != nil {
		c.createFailed(j, err)
		return
	}
	if c.settleCreated(j, made) && j.outcome == Partial {
		c.link(ctx, j)
	}
}

func createRequest(rec *mapping.Record) *leadapi.CreateRequest {
	r := &leadapi.CreateRequest{
		OrganizationID: rec.Organization, LocatorID: rec.Locator,
		LocationSearch: leadapi.LocationSearch{SearchText: rec.SearchText, PostalCode: rec.PostalCode},
		TypeKey:        rec.TypeKey, TypeLabel: rec.TypeLabel, Status: rec.Status,
		Content: make([]leadapi.ContentField, 0, len(rec.Content)),
	}
	for i := range rec.Content {
		r.Content = append(r.Content, contentField(&rec.Content[i]))
	}
	return r
}

func createBody(rec *mapping.Record) []byte { return createRequest(rec).AppendJSON(nil) }

func (c *carrier) sendCreate(ctx context.Context, j *job) (made *leadapi.Created, err error) {
	req := createRequest(&j.rec)
	first, attempt := j.requestID, 0
	tries, err := c.breaker.Deliver(ctx, c.engine.taking, delivery.Create, &j.pass,
		func(ctx context.Context, anew bool) (err error) {
			if first != "" {
				attempt++
				j.requestID = first + "-" + strconv.Itoa(attempt)
				req.RequestID = j.requestID
			}
			switch err := c.ledger.Guard(c.engine.taking, j.rec.Key); {
			case err != nil && c.engine.taking.Err() != nil && errors.Is(err, context.Canceled):
				return delivery.ErrStopping
			case err != nil:
				return ledgerFailed(err)
			}
			req.NewConnection = anew
			made, err = c.sender.Create(ctx, req)
			return err
		})
	j.attempts += tries
	failpoint.At("answered")
	return made, c.stopping(err)
}

// stopping makes delivery.ErrStopping of an error that ends the run, after it has ended it.
func (c *carrier) stopping(err error) error {
	if stop, stops := errors.AsType[*Stop](err); stops {
		c.engine.halt(stop)
		return delivery.ErrStopping
	}
	return err
}

// settleCreated settles a lead that the service created, and reports whether that is durable. It is partial until it is
// linked.
func (c *carrier) settleCreated(j *job, made *leadapi.Created) (stored bool) {
	rec := &j.rec
	j.entry = c.entryOf(j, checkpoint.Created)
	j.entry.LeadID, j.entry.Organization, j.entry.Location = made.LeadID, made.OrganizationID, made.LocationName
	j.entry.Status = cmp.Or(rec.Status, "open")
	outcome := Created
	if rec.ExternalID == "" {
		j.entry.Code = made.HTTPStatus
	} else {
		j.entry.State, j.entry.WantLink, outcome = checkpoint.Partial, rec.ExternalID, Partial
	}
	shown := delivery.NothingShown
	switch stored = c.settle(j, outcome); {
	case stored && j.outcome == InDoubt: // the ID is another row's
		shown = delivery.Doubtful
	case stored:
		shown = delivery.Usable
	}
	c.breaker.Report(&j.pass, shown)
	return stored
}

// createFailed ends a create that returned an error: the service refused it, it was not applied, or it is in doubt.
func (c *carrier) createFailed(j *job, err error) {
	ae, answered := errors.AsType[*leadapi.Error](err)
	switch {
	case errors.Is(err, delivery.ErrStopping): // nothing left, or what left was not applied
		c.withdraw(j, Pending)
	case !answered: // it was not sent
		j.text = err.Error()
		c.withdraw(j, Failed)
	// not applied, and not the row's fault: the next run sends it again
	case c.breaker.Unapplied(ae), ae.Status == http.StatusUnauthorized, ae.Status == http.StatusMisdirectedRequest:
		j.refuse("%s", ae)
		c.withdraw(j, Failed)
	// refused for good; a 429 that --resend-on does not trust leaves doubt
	case ae.Applied == leadapi.No && ae.Status != http.StatusTooManyRequests:
		c.breaker.Report(&j.pass, delivery.Usable)
		j.entry = c.entryOf(j, checkpoint.Rejected)
		j.entry.Content = nil // no lead has it
		j.refuse("%s", ae)
		c.settle(j, Rejected)
	default: // nobody can tell whether it was applied
		c.breaker.Report(&j.pass, delivery.Doubtful)
		j.entry = c.doubtOf(j)
		j.entry.Code, j.entry.Reason, j.entry.RequestID = ae.Status, ae.Reason, j.requestID
		c.settle(j, InDoubt)
	}
}

// withdraw removes the claim of a create that was not applied. A doubt from an earlier run is back after that.
func (c *carrier) withdraw(j *job, outcome Outcome) {
	c.breaker.Report(&j.pass, delivery.NothingShown)
	claimed := checkpoint.Entry{Key: j.rec.Key, Run: c.RunID}
	_, err := c.store(context.Background(), j, checkpoint.Change{Kind: checkpoint.Withdraw, Entry: claimed})
	if err != nil {
		c.commitFailed(j, err)
		return
	}
	j.outcome = outcome
}

// linkLater links a lead of an earlier run. If the file's ExternalID does not win anyway, it reads the lead first: one
// with neither the wanted ExternalID nor the one that was wanted before is a conflict.
func (c *carrier) linkLater(ctx context.Context, j *job) {
	rec := &j.rec
	if c.readable(&j.entry) && c.rules.ForExternalID() != mapping.RuleFile {
		lead, err := c.readOnce(ctx, j)
		switch {
		case errors.Is(err, delivery.ErrStopping):
			j.outcome = Pending
			return
		case err != nil, lead.ExternalID == "", lead.ExternalID == j.entry.WantLink &&
			j.entry.WantLink != rec.ExternalID:
		case lead.ExternalID == rec.ExternalID:
			c.linked(j, lead)
			return
		default:
			j.outcome, j.text = Conflict, byOthers+"ExternalID"+nothingSent
			return
		}
	}
	c.link(ctx, j)
}

// link sends the ExternalID of a lead. It counts only if the answer shows the same lead with this ExternalID.
func (c *carrier) link(ctx context.Context, j *job) {
	j.outcome = Partial
	external := j.rec.ExternalID
	failpoint.At("before link")
	lead, err := c.patch(ctx, c.engine.linking, j, &leadapi.UpdateRequest{ExternalID: &external})
	failpoint.At("link answered")
	switch {
	case err == nil && lead.ID == j.entry.LeadID && lead.ExternalID == external:
		c.linked(j, lead)
		return
	case err == nil:
		j.text = "linking was answered but not confirmed: the lead that came back is another one or carries another " +
			"ExternalID"
	case !errors.Is(err, delivery.ErrStopping):
		j.refuse("created but not linked: %s", err)
	case j.step.Action == Create:
		j.text = "created; the run stopped before it was linked"
		return
	default:
		j.outcome = Pending
		return
	}
	j.entry.State, j.entry.WantLink = checkpoint.Partial, external
	c.settle(j, Partial)
}

func (c *carrier) linked(j *job, lead *leadapi.Lead) {
	entry := &j.entry
	entry.State, entry.ExternalID, entry.WantLink = checkpoint.Created, lead.ExternalID, ""
	entry.Code, entry.Reason, entry.Run, entry.Updated = http.StatusOK, "", c.RunID, time.Now()
	if lead.Status != "" {
		entry.Status, entry.Seen = lead.Status, checkpoint.Sight{}
	}
	entry.Organization = cmp.Or(entry.Organization, lead.OwnerID)
	entry.Location = cmp.Or(entry.Location, lead.LocationName)
	j.text = j.step.text
	j.sayOwner(lead)
	c.settle(j, j.step.outcome)
}

// patch sends an update until its answer is final. After leaving has ended, nothing is sent.
func (c *carrier) patch(
	ctx, leaving context.Context, j *job, r *leadapi.UpdateRequest,
) (lead *leadapi.Lead, err error) {
	failpoint.At("before update")
	tries, err := c.breaker.Deliver(ctx, leaving, delivery.Repeatable, new(delivery.Pass),
		func(ctx context.Context, anew bool) (err error) {
			r.NewConnection = anew
			lead, err = c.sender.Update(ctx, j.entry.LeadID, r)
			if ae, is := errors.AsType[*leadapi.Error](err); is && ae.Applied != leadapi.No {
				j.unsure = true
			}
			return err
		})
	j.attempts += tries
	failpoint.At("update answered")
	return lead, c.stopping(err)
}

// store makes a change durable, and notes what the ledger has of the row then.
func (c *carrier) store(ctx context.Context, j *job, change checkpoint.Change) (checkpoint.Entry, error) {
	stored, err := c.ledger.Do(ctx, change)
	if err == nil {
		j.durable = stored
	}
	return stored, err
}

// settle makes an outcome durable, and reports whether it did. The row ends as the ledger stored it, maybe in doubt.
func (c *carrier) settle(j *job, outcome Outcome) bool {
	refused := j.entry.Code
	stored, err := c.store(context.Background(), j, checkpoint.Change{Kind: checkpoint.Settle, Entry: j.entry})
	if err != nil {
		c.commitFailed(j, err)
		return false
	}
	j.entry, j.outcome = stored, outcome
	if stored.State == checkpoint.InDoubt {
		why := doubtReason(stored.Reason, stored.Code)
		if outcome == Rejected { // which says nothing of the send before
			j.refusedAs = refused
			why += "; sent again: " + j.text
		}
		j.outcome, j.text = InDoubt, why
	}
	return true
}

// ledgerRefused ends a row whose claim or mark was refused: this request was not sent, but maybe an earlier one of the
// row. If another row took its key or lead, the lane decides once more; the outcome set here is the row's only if it
// cannot.
func (c *carrier) ledgerRefused(j *job, err error) {
	switch {
	case errors.Is(err, checkpoint.ErrEnough):
		j.refusal, j.text = err, "the fleet has made as many leads as --max-creates allows"
	case errors.Is(err, context.Canceled) && c.engine.taking.Err() != nil: // the run stops: the row stays pending
	case errors.Is(err, checkpoint.ErrHeld):
		j.refusal, j.outcome, j.entry.State = err, InDoubt, checkpoint.InDoubt
		j.text = "another worker sent it and may still be running: held back (leadferry checkpoint workers shows who " +
			"holds what)"
	case errors.Is(err, checkpoint.ErrKnown), errors.Is(err, checkpoint.ErrDoubt), errors.Is(err, checkpoint.ErrTaken):
		j.refusal, j.outcome, j.text = err, Conflict, fmt.Sprintf("not sent: the checkpoint refused it (%v)", err)
	default:
		c.commitFailed(j, err)
	}
}

// commitFailed ends a row whose claim or outcome the checkpoint did not store: its outcome stays as it was, in doubt if
// its claim is stored. A refusal concerns only this row; any other error ends the run.
func (c *carrier) commitFailed(j *job, err error) {
	j.asStored()
	switch refused := checkpoint.IsRefusal(err); {
	case !refused:
		j.text = "the checkpoint could not be written"
		c.engine.halt(ledgerFailed(err))
	case j.attempts == 0:
		j.outcome, j.text = Failed, fmt.Sprintf("not sent: the checkpoint refused it (%v)", err)
	default:
		j.text = fmt.Sprintf("sent, but the checkpoint refused its outcome (%v)", err)
	}
}

func (c *carrier) stamp(j *job) {
	j.entry.Run, j.entry.Updated = c.RunID, time.Now()
	j.entry.File, j.entry.Line = c.intake.paths[j.input], j.row.Line
}

func (c *carrier) entryOf(j *job, s checkpoint.State) checkpoint.Entry {
	return checkpoint.Entry{
		Key: j.rec.Key, State: s, Digest: j.digest, Content: j.sums,
		File: c.intake.paths[j.input], Line: j.row.Line, Run: c.RunID, Updated: time.Now(),
	}
}

// doubtOf is an entry in doubt, with what a person needs to find the lead.
func (c *carrier) doubtOf(j *job) checkpoint.Entry {
	rec := &j.rec
	e := c.entryOf(j, checkpoint.InDoubt)
	e.Organization, e.Locator, e.Status, e.WantLink = rec.Organization, rec.Locator, rec.Status, rec.ExternalID
	return e
}
