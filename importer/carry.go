package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/internal/failpoint"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Sender is a *leadapi.Client (leads.go; leadapi.go draws a call). It never retries; its errors are *leadapi.Error.
type Sender interface {
	Create(ctx context.Context, r *leadapi.CreateRequest) (*leadapi.Created, error)
	Update(ctx context.Context, leadID string, r *leadapi.UpdateRequest) (*leadapi.Lead, error)
	SignIn(ctx context.Context) error
}

// carry takes a row from its step to its outcome. On the way it waits for the claim, a place in flight, the answer and
// the outcome. At the end the outcome is durable, or its text says that the checkpoint did not store it. The entry is
// what the checkpoint has; only an ID that it could not keep stays. carry returns false after a panic.
func (e *engine) carry(j *job) (whole bool) {
	whole = e.guarded(func() {
		switch j.step.Action {
		case Create:
			e.create(j)
		case Link:
			e.linkLater(j)
		case Update:
			e.update(j)
		case Read:
			e.look(j)
		case StoreSeen:
			e.endRead(j, remembered(&j.before, &j.rec))
		case Hold: // stores what a person needs to find the lead; its data are not known, so it has no digests
			e.doubtOf(j, &j.entry)
			j.entry.Digest, j.entry.Content, j.entry.Reason = checkpoint.Digest{}, nil, checkpoint.ReasonIncomplete
			e.settle(j, InDoubt)
		}
	})
	if !whole && j.outcome != Pending {
		j.text = doubtReasons[reasonPanic]
		j.asStored()
	}
	if j.others != nil {
		j.text = strings.TrimSuffix(listed(byOthers, j.others)+"; "+j.text, "; ")
	}
	j.sayOrganization()
	if end := e.breaker.Over(); end != nil {
		e.stop(end)
	}
	return whole
}

// entryOf fills an entry with what is known of the row. The commit sets the time.
func (e *engine) entryOf(j *job, to *checkpoint.Entry, s checkpoint.State) {
	*to = checkpoint.Entry{}
	to.Key, to.State, to.Digest, to.Content = j.rec.Key, s, j.digest, j.content
	to.File, to.Line, to.Run = e.intake.paths[j.input], j.row.Line, e.RunID
}

// doubtOf fills an entry in doubt, as the claim stores it before the send: with what a person needs to find the lead.
func (e *engine) doubtOf(j *job, d *checkpoint.Entry) {
	e.entryOf(j, d, checkpoint.InDoubt)
	d.Organization, d.Locator, d.Status, d.WantLink = j.rec.Organization, j.rec.Locator, j.rec.Status, j.rec.ExternalID
}

// create claims the row, sends the request and settles the outcome, which is partial until its ExternalID is linked.
func (e *engine) create(j *job) {
	failpoint.At("before claim")
	shape := e.shapes[j.input].Load()
	if e.Client.RequestIDHeader != "" {
		j.requestID = leadapi.NewRequestID()
	}
	claim, requestID := j.change, j.requestID
	e.doubtOf(j, &claim.Entry)
	claim.Entry.RequestID, claim.Resend, claim.Shape = requestID, j.resends(), shape
	if !e.store(j, checkpoint.Claim, e.ledgerRefused) {
		return
	}
	e.shapes[j.input].CompareAndSwap(shape, nil)
	j.outcome = InDoubt // from here on, until a settle says otherwise
	var made *leadapi.Created
	rec, req, attempt := &j.rec, createRequest(&j.rec, &j.request), 0
	tries, err := e.breaker.Deliver(e.awaiting, e.taking, delivery.Create, &j.pass,
		func(ctx context.Context, anew bool) (err error) {
			if attempt++; requestID != "" {
				j.requestID = requestID + "-" + strconv.Itoa(attempt)
				req.RequestID = j.requestID
			}
			switch err := e.ledger.Guard(e.taking, rec.Key); { // in a fleet: is the claim still ours?
			case err != nil && e.taking.Err() != nil && errors.Is(err, context.Canceled):
				return delivery.ErrStopping
			case err != nil:
				return ledgerFailed(err)
			}
			req.NewConnection = anew
			made, err = e.sender.Create(ctx, req)
			return err
		})
	j.attempts += tries
	failpoint.At("answered")
	if err = e.stopping(err); err != nil {
		e.createFailed(j, err)
		return
	}
	e.entryOf(j, &j.entry, checkpoint.Created)
	j.entry.LeadID, j.entry.Organization, j.entry.Location = made.LeadID, made.OrganizationID, made.LocationName
	j.entry.Status = cmp.Or(rec.Status, "open") // as asked for: the answer to a create does not show it
	outcome := Created
	if rec.ExternalID == "" {
		j.entry.Code = made.HTTPStatus
	} else {
		j.entry.State, j.entry.WantLink, outcome = checkpoint.Partial, rec.ExternalID, Partial
	}
	switch stored := e.settle(j, outcome); { // only then other creates, which may wait for this report
	case !stored:
		e.breaker.Report(&j.pass, delivery.NothingShown)
	case j.outcome == InDoubt: // the lead ID in the answer belongs to another row
		e.breaker.Report(&j.pass, delivery.Doubtful)
	default:
		e.breaker.Report(&j.pass, delivery.Usable)
		if j.outcome == Partial {
			e.link(j)
		}
	}
}

// store makes the job's change durable, sets j.durable to what the ledger then has, and returns true; or calls failed.
func (e *engine) store(j *job, kind checkpoint.ChangeKind, failed func(*job, error)) bool {
	if j.change.Kind = kind; kind != checkpoint.Claim {
		j.change.Resend, j.change.Shape = false, nil
	}
	if err := e.ledger.Do(e.taking, j.change); err != nil {
		failed(j, err)
		return false
	}
	j.durable = j.change.Entry
	return true
}

// settle makes an outcome durable, and reports whether it did. The ledger may store another one: in doubt.
func (e *engine) settle(j *job, outcome Outcome) bool {
	code := j.entry.Code
	if j.change.Entry = j.entry; !e.store(j, checkpoint.Settle, e.commitFailed) {
		return false
	}
	j.entry, j.outcome = j.durable, outcome
	if j.entry.State == checkpoint.InDoubt {
		why := doubtReason(j.entry.Reason, j.entry.Code)
		if outcome == Rejected { // the refusal says nothing about the earlier send
			j.refusedAs = code
			why += "; sent again: " + j.text
		}
		j.outcome, j.text = InDoubt, why
	}
	return true
}

// link sends the ExternalID of a lead. The link counts only if the answer shows this lead with this ExternalID.
func (e *engine) link(j *job) {
	j.outcome = Partial
	external := j.rec.ExternalID
	failpoint.At("before link")
	lead, err := e.patch(e.linking, j, &leadapi.UpdateRequest{ExternalID: &external})
	failpoint.At("link answered")
	switch {
	case err == nil && lead.ID == j.entry.LeadID && lead.ExternalID == external:
		e.linked(j, lead)
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
	e.settle(j, Partial)
}

// linked settles a row whose lead has an ExternalID, as the answer shows: the wanted one, or another one that wins.
func (e *engine) linked(j *job, lead *leadapi.Lead) {
	entry := &j.entry
	a := &answer{Lead: lead, at: time.Now()}
	changes(nil).takeExternal(entry, &j.rec, &j.before, a) // the answer's; partial becomes created
	entry.Code, entry.Reason, entry.Run, entry.Updated = http.StatusOK, "", e.RunID, a.at
	if j.step.Action == Link && entry.Status != "" && lead.Status != entry.Status { // others changed it since
		see(entry, &j.before, &j.rec, a)
		entry.Confirmed = j.before.ConfirmedAt()
	} else if lead.Status != "" {
		entry.Status, entry.Seen = lead.Status, checkpoint.Sight{}
	}
	entry.Organization = cmp.Or(entry.Organization, lead.OwnerID)
	entry.Location = cmp.Or(entry.Location, lead.LocationName)
	j.text = j.step.text
	j.sayChanged(a, nil)
	e.settle(j, j.step.outcome)
}

func (e *engine) stamp(j *job) {
	j.entry.Run, j.entry.Updated = e.RunID, time.Now()
	j.entry.File, j.entry.Line = e.intake.paths[j.input], j.row.Line
}

// patch sends an update until its answer is final. After leaving has ended, nothing is sent.
func (e *engine) patch(leaving context.Context, j *job, r *leadapi.UpdateRequest) (lead *leadapi.Lead, err error) {
	failpoint.At("before update")
	tries, err := e.breaker.Deliver(e.awaiting, leaving, delivery.Repeatable, new(delivery.Pass),
		func(ctx context.Context, anew bool) (err error) {
			r.NewConnection = anew
			lead, err = e.sender.Update(ctx, j.entry.LeadID, r)
			if ae, is := errors.AsType[*leadapi.Error](err); is && ae.Applied != leadapi.No {
				j.unsure = true
			}
			return err
		})
	j.attempts += tries
	failpoint.At("update answered")
	return lead, e.stopping(err)
}

func createRequest(rec *mapping.Record, r *leadapi.CreateRequest) *leadapi.CreateRequest {
	*r = leadapi.CreateRequest{
		OrganizationID: rec.Organization, LocatorID: rec.Locator,
		LocationSearch: leadapi.LocationSearch{SearchText: rec.SearchText, PostalCode: rec.PostalCode},
		TypeKey:        rec.TypeKey, TypeLabel: rec.TypeLabel, Status: rec.Status, Content: r.Content[:0],
	}
	for i := range rec.Content {
		r.Content = append(r.Content, contentField(&rec.Content[i]))
	}
	return r
}

func createBody(rec *mapping.Record) []byte {
	return createRequest(rec, new(leadapi.CreateRequest)).AppendJSON(nil)
}

// stopping halts the run if err is a *Stop, and then returns delivery.ErrStopping. It returns other errors unchanged.
func (e *engine) stopping(err error) error {
	if stop, stops := errors.AsType[*Stop](err); stops {
		e.stop(stop)
		return delivery.ErrStopping
	}
	return err
}

// createFailed ends a create that returned an error: the service refused it, it was not applied, or it is in doubt.
func (e *engine) createFailed(j *job, err error) {
	ae, _ := errors.AsType[*leadapi.Error](err) // not nil, unless the run stops
	switch {
	case errors.Is(err, delivery.ErrStopping): // nothing was sent, or it was not applied
		e.withdraw(j, Pending)
	// not applied, and not the row's fault: the next run sends it again
	case e.breaker.Unapplied(ae), ae.Status == http.StatusUnauthorized, ae.Status == http.StatusMisdirectedRequest:
		j.refuse("%s", ae)
		e.withdraw(j, Failed)
	// refused for good; a 429 that --resend-on does not trust leaves doubt
	case ae.Applied == leadapi.No && ae.Status != http.StatusTooManyRequests:
		e.breaker.Report(&j.pass, delivery.Usable)
		e.entryOf(j, &j.entry, checkpoint.Rejected)
		j.entry.Content = nil // no lead has it
		j.refuse("%s", ae)
		e.settle(j, Rejected)
	default: // nobody can tell whether it was applied
		e.breaker.Report(&j.pass, delivery.Doubtful)
		e.doubtOf(j, &j.entry)
		j.entry.Code, j.entry.Reason, j.entry.RequestID = ae.Status, ae.Reason, j.requestID
		e.settle(j, InDoubt)
	}
}

// withdraw removes the claim of a create that was not applied. If the row was in doubt before, it is in doubt again.
func (e *engine) withdraw(j *job, outcome Outcome) {
	e.breaker.Report(&j.pass, delivery.NothingShown)
	if e.store(j, checkpoint.Withdraw, e.commitFailed) {
		j.outcome = outcome
	}
}

// linkLater links a lead of an earlier run. Unless the file's ExternalID always wins, it reads the lead first: others
// may have linked it.
func (e *engine) linkLater(j *job) {
	if rule := e.rules.Or(e.rules.ExternalID); e.readable(&j.entry) && rule != mapping.RuleFile {
		lead, err := e.read(j)
		d := decision{choice: sends}
		if err == nil {
			d = decide(externalOf(&j.before, j.rec.ExternalID, lead), rule)
		}
		switch {
		case errors.Is(err, delivery.ErrStopping):
			j.outcome = Pending
			return
		case d.choice == asks:
			j.outcome, j.text = Conflict, byOthers+"ExternalID"+nothingSent
			return
		case d.choice != sends:
			if d.choice == keeps {
				j.step.text = serviceWins + "ExternalID"
			}
			e.linked(j, lead)
			return
		case err != nil && !leadapi.IsRefused(err):
			j.outcome = Partial
			j.refuse("not linked: its lead could not be read: %s", err)
			return
		}
	}
	e.link(j)
}

// ledgerRefused ends a row whose claim or mark was refused. This request was not sent; the row's earlier ones may have
// been. If the checkpoint knows more about the lead now, the lane decides about the row once more (carried).
func (e *engine) ledgerRefused(j *job, err error) {
	j.asStored()
	switch {
	case errors.Is(err, checkpoint.ErrEnough):
		j.refusal, j.text = err, "the fleet has made as many leads as --max-creates allows"
	case errors.Is(err, context.Canceled) && e.taking.Err() != nil: // the run stops: the row stays pending
	case errors.Is(err, checkpoint.ErrOtherMaySend):
		j.refusal, j.outcome, j.entry.State = err, InDoubt, checkpoint.InDoubt
		j.text = "another worker sent it and may still be running: held back (leadferry checkpoint workers shows who " +
			"holds what)"
	case checkpoint.IsRefusal(err):
		j.refusal, j.outcome, j.text = err, Conflict, fmt.Sprintf("not sent: the checkpoint refused it (%v)", err)
	default:
		e.commitFailed(j, err)
	}
}

// commitFailed ends a row whose claim or outcome the checkpoint did not store: as pending if its claim is not stored, in
// doubt if it is, failed if the checkpoint refused the row before its request. A refusal ends only this row, any other
// error the run.
func (e *engine) commitFailed(j *job, err error) {
	j.asStored()
	switch refused := checkpoint.IsRefusal(err); {
	case !refused:
		j.text = "the checkpoint could not be written"
		e.stop(ledgerFailed(err))
	case j.attempts == 0:
		j.outcome, j.text = Failed, fmt.Sprintf("not sent: the checkpoint refused it (%v)", err)
	default:
		j.text = fmt.Sprintf("sent, but the checkpoint refused its outcome (%v)", err)
	}
}
