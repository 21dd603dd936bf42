package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/internal/crash"
	"leadferry/internal/failpoint"
	"leadferry/leadapi"
)

// Sender makes the service's calls. It never retries; its errors are
// *leadapi.Error and say whether the request was applied.
type Sender interface {
	Create(ctx context.Context, r *leadapi.CreateRequest) (*leadapi.Created, error)
	Update(ctx context.Context, leadID string, r *leadapi.UpdateRequest) (*leadapi.Lead, error)
}

// carrier carries one row at a time from its plan to its outcome. Each wait of a row is a
// call that returns when it is over: for the claim to be durable, for a place in flight,
// for the answer, for the outcome to be durable. All lanes of a run share one.
type carrier struct {
	ledger     *checkpoint.Ledger
	sender     Sender
	retrier    *delivery.Retrier
	phases     *phases
	run        string      // its ID
	files      []string    // names of the inputs
	shapes     shapes      // by what their rows are made leads; nil where none is
	matches    bool        // rows find their lead by its IDs, too
	conflicts  conflicts   // what others changed on the service, and whether leads are read for it
	hasRead    atomic.Bool // the service has shown a lead by an update of no content
	pulls      bool        // values of content are wanted that the CRM should take over
	requestIDs bool        // each attempt to create a lead carries one
	halt       func(*Stop) // makes the run end: nothing leaves once it returns
}

// job is a row with its step, which a lane takes to its outcome.
type job struct {
	result // as far as it is known; its entry is what is known at first and what was settled in the end
	it     *item
	step   Step

	doubt        *ending               // Create: of the row, which was in doubt before; or nil
	enough       bool                  // the fleet may make no more leads
	elsewhere    bool                  // another worker had claimed its key, or made its lead, since it was looked up
	intended     bool                  // Create: the claim is durable; Update: the mark is
	linking      bool                  // the lead exists and has to be linked
	maybeApplied bool                  // Update: a try may have been applied, and nobody can tell
	pass         delivery.Pass         // Create: what it was sent with
	requestID    string                // Create: of its last attempt, where requests carry IDs
	request      leadapi.CreateRequest // room that the lane's next row uses again
	leadBefore   leadBefore            // Update: what was known of the lead
}

// begin is a row about to be carried.
func (j *job) begin(it *item, step Step, known *checkpoint.Entry) {
	*j = job{it: it, step: step, request: leadapi.CreateRequest{Content: j.request.Content}}
	j.entry = *known
	if step.Action == Create && known.State == checkpoint.InDoubt {
		held := heldBack(known)
		j.doubt = &held.ending
	}
	j.entry.Content = slices.Clone(known.Content) // look-ups use theirs again
}

func newCarrier(r *run, p *phases, halt func(*Stop)) *carrier {
	return &carrier{
		ledger: r.ledger, sender: r.sender, retrier: r.retrier, phases: p, halt: halt, shapes: r.shapes, run: r.RunID, files: r.intake.names,
		matches: r.matches, conflicts: newConflicts(&r.Options), requestIDs: r.Client.RequestIDHeader != "", pulls: r.PullContent,
	}
}

// carry takes a row to its outcome, which is durable when it returns, unless the text
// says that the checkpoint could not be written. A panic becomes a doubt and ends the run
// in order.
func (c *carrier) carry(ctx context.Context, j *job) {
	var fault error
	defer func() {
		if fault != nil {
			c.crashed(j, fault)
		}
		j.sayOrganization()
		if end := c.retrier.Breaker.Over(); end != nil {
			c.halt(stopAt(end))
		}
	}()
	defer crash.Recover(&fault)
	switch j.step.Action {
	case Create:
		c.create(ctx, j)
	case Link:
		c.link(ctx, j)
	case Update:
		c.update(ctx, j)
	case Read:
		c.reconcile(ctx, j)
	case Note:
		c.note(j)
	default:
		c.hold(j)
	}
}

// create makes a lead and links it where the row asks for that.
func (c *carrier) create(ctx context.Context, j *job) {
	failpoint.At("before intent")
	in := c.intent(j)
	if err := c.ledger.Claim(c.phases.taking, in); err != nil {
		c.notBegun(j, err)
		return
	}
	if in.Shape != nil {
		c.shapes[j.it.input].Store(nil)
	}
	j.intended = true
	made, err := c.sendCreate(ctx, j)
	if err != nil {
		c.notMade(j, err)
		return
	}
	c.made(j, made)
	if j.linking {
		c.link(ctx, j)
	}
}

func (c *carrier) sendCreate(ctx context.Context, j *job) (made *leadapi.Created, err error) {
	req := createRequest(&j.request, &j.it.rec)
	first, attempt := j.requestID, 0
	tries, err := c.retrier.Create(ctx, c.phases.taking, &j.pass, func(ctx context.Context, anew bool) (err error) {
		if first != "" {
			attempt++
			j.requestID = first + "-" + strconv.Itoa(attempt)
			req.RequestID = j.requestID
		}
		if err := c.ledger.Guard(c.phases.taking, j.it.rec.Key); err != nil {
			return c.heldBack(err)
		}
		req.NewConnection = anew
		made, err = c.sender.Create(ctx, req)
		return err
	})
	j.attempts += tries
	failpoint.At("answered")
	return made, err
}

// heldBack is why a create that was claimed does not leave: the run stops, or its ledger has failed.
func (c *carrier) heldBack(err error) error {
	if c.phases.taking.Err() != nil && errors.Is(err, context.Canceled) {
		return delivery.ErrStopping
	}
	return ledgerFailed(err)
}

// made settles a lead that the service says it created. One that asks for a link is
// partial until it has it.
func (c *carrier) made(j *job, made *leadapi.Created) {
	rec := &j.it.rec
	j.entry = c.entryOf(j, checkpoint.Created)
	j.entry.LeadID, j.entry.Organization, j.entry.Location = made.LeadID, made.OrganizationID, made.LocationName
	j.entry.Status = cmp.Or(rec.Status, "open")
	outcome := Created
	if rec.ExternalID == "" {
		j.entry.Code = made.Status
	} else {
		j.entry.State, j.entry.WantLink, outcome = checkpoint.Partial, rec.ExternalID, Partial
	}
	stored := c.settle(j, outcome)
	shown := delivery.Usable
	switch {
	case !stored:
		shown = delivery.NothingShown
	case j.outcome == InDoubt: // the ID is another row's
		shown = delivery.Doubtful
	}
	c.conclude(j, shown)
	j.linking = stored && j.outcome == Partial
}

// notMade settles a create that came to no lead, as far as one can tell.
func (c *carrier) notMade(j *job, err error) {
	stop, stops := stopOf(err)
	ae, answered := errors.AsType[*leadapi.Error](err)
	switch {
	case stops:
		c.halt(stop)
		c.withdraw(j, Pending)
	case !answered:
		j.text = err.Error()
		c.withdraw(j, Failed)
	case c.retrier.Unapplied(ae), ae.Status == http.StatusUnauthorized, ae.Status == http.StatusMisdirectedRequest:
		j.refuse("%s", ae)
		j.entry.Code = ae.Status
		c.withdraw(j, Failed)
	case ae.Applied == leadapi.No && ae.Status != http.StatusTooManyRequests:
		c.refused(j, ae)
	default:
		c.doubt(j, ae.Status, ae.Reason)
	}
}

// conclude tells the breaker what a create has shown of the service.
func (c *carrier) conclude(j *job, shown delivery.Proof) { c.retrier.Breaker.Conclude(&j.pass, shown) }

// refused settles a request that the service will not take.
func (c *carrier) refused(j *job, ae *leadapi.Error) {
	c.conclude(j, delivery.Usable)
	j.refuse("%s", ae)
	j.entry = c.entryOf(j, checkpoint.Rejected)
	j.entry.Content = nil // no lead holds it
	j.entry.Code, j.entry.Reason = ae.Status, ae.Reason
	c.settle(j, Rejected)
}

// doubt settles a create of which nobody can tell whether it was applied.
func (c *carrier) doubt(j *job, code int, reason string) {
	c.conclude(j, delivery.Doubtful)
	j.entry = c.doubtOf(j)
	j.entry.Code, j.entry.Reason, j.entry.RequestID = code, reason, j.requestID
	c.settle(j, InDoubt)
}

// withdraw takes the claim of a create back that was not applied.
func (c *carrier) withdraw(j *job, outcome Outcome) {
	c.conclude(j, delivery.NothingShown)
	j.outcome = outcome
	if err := c.ledger.Withdraw(context.Background(), j.it.rec.Key); err != nil {
		c.unwritten(j, err)
	}
}

// link sends the ExternalID of a lead that exists. The link holds only when the
// lead that comes back is the one that was meant and carries it.
func (c *carrier) link(ctx context.Context, j *job) {
	j.linking = true
	external := j.it.rec.ExternalID
	if j.step.Action == Link && c.conflicts.readable(&j.entry) && c.conflicts.forExternalID() != RuleFile && !c.mayLink(ctx, j) {
		return
	}
	failpoint.At("before link")
	lead, err := c.patch(ctx, c.phases.sending, j, &leadapi.UpdateRequest{ExternalID: &external})
	failpoint.At("link answered")
	stop, stops := stopOf(err)
	switch {
	case err == nil && lead.ID == j.entry.LeadID && lead.ExternalID == external:
		c.linked(j, lead)
		return
	case err == nil:
		j.text = "linking was answered but not confirmed: the lead that came back is another one or carries another ExternalID"
	case stops:
		c.unlinked(j, stop)
		return
	default:
		j.keepAnswer(err)
		j.refuse("created but not linked: %s", err)
	}
	j.entry.State, j.entry.WantLink = checkpoint.Partial, external
	c.settle(j, Partial)
}

// mayLink reads a lead that an earlier run has made, and reports whether it is still to be linked. Where it cannot be read, the
// link itself will tell.
func (c *carrier) mayLink(ctx context.Context, j *job) bool {
	lead, err := c.readOnce(ctx, j)
	stop, stops := stopOf(err)
	switch {
	case stops:
		c.unlinked(j, stop)
	case err != nil, lead.ExternalID == "", lead.ExternalID == j.entry.WantLink && j.entry.WantLink != j.it.rec.ExternalID:
		return true
	case lead.ExternalID == j.it.rec.ExternalID:
		c.linked(j, lead)
	default:
		j.outcome, j.text, j.kind = Conflict, externalMoved+nothingSent, changedKind
	}
	return false
}

func (c *carrier) linked(j *job, lead *leadapi.Lead) {
	entry := &j.entry
	entry.State, entry.ExternalID, entry.WantLink = checkpoint.Created, lead.ExternalID, ""
	entry.Code, entry.Reason = http.StatusOK, ""
	entry.Run, entry.Updated = c.run, time.Now()
	if lead.Status != "" {
		entry.Status, entry.Seen = lead.Status, checkpoint.Sight{}
	}
	entry.Organization = cmp.Or(entry.Organization, lead.OwnerID)
	entry.Location = cmp.Or(entry.Location, lead.LocationName)
	j.text = j.step.text
	j.noteLead(lead)
	c.settle(j, j.step.outcome)
}

// unlinked ends a link that was not sent because the run stops: a lead made in
// this run stays partial, one of an earlier run waits for its turn.
func (c *carrier) unlinked(j *job, stop *Stop) {
	j.outcome = Pending
	if j.step.Action == Create {
		j.outcome, j.text = Partial, "created; the run stopped before it was linked"
	}
	c.halt(stop)
}

// hold makes it durable, for all runs, that a person has to look whether the row has a lead.
// What such a lead holds is not known, so nothing is said of it.
func (c *carrier) hold(j *job) {
	j.entry = c.doubtOf(j)
	j.entry.Digest, j.entry.Content, j.entry.Reason = checkpoint.Digest{}, nil, checkpoint.ReasonIncomplete
	c.settle(j, InDoubt)
}

// settle makes an outcome durable and reports whether it is. What was stored decides, not
// what was asked.
func (c *carrier) settle(j *job, outcome Outcome) bool {
	stored, err := c.ledger.Settle(context.Background(), j.entry)
	j.outcome = outcome
	if err != nil {
		c.unwritten(j, err)
		return false
	}
	j.entry = stored
	if stored.State == checkpoint.InDoubt {
		j.outcome, j.text, j.rejectText = InDoubt, doubtReason(stored.Reason, stored.Code), ""
	}
	return true
}

// notBegun ends a row whose intent or mark is not durable, so that nothing was sent.
func (c *carrier) notBegun(j *job, err error) {
	j.outcome = Pending
	if j.enough = errors.Is(err, checkpoint.ErrEnough); j.enough {
		j.text = "the fleet has made as many leads as --max-creates allows"
		return
	}
	if c.phases.taking.Err() == nil || !errors.Is(err, context.Canceled) {
		c.unwritten(j, err)
	}
}

const heldElsewhere = "another worker sent it and may still be running: held back (leadferry checkpoint workers shows who holds what)"

// unwritten makes a row say that the checkpoint does not know what became of it. A refusal
// concerns the row alone; any other error ends the run.
func (c *carrier) unwritten(j *job, err error) {
	j.rejectText = ""
	refused := checkpoint.IsRefusal(err)
	j.elsewhere = j.attempts == 0 && (errors.Is(err, checkpoint.ErrKnown) || errors.Is(err, checkpoint.ErrHeld))
	if j.elsewhere && errors.Is(err, checkpoint.ErrHeld) {
		j.outcome, j.text, j.entry.State = InDoubt, heldElsewhere, checkpoint.InDoubt
		return
	}
	switch {
	case !refused:
		j.text = "the checkpoint could not be written"
		c.halt(ledgerFailed(err))
	case j.attempts == 0:
		j.text = fmt.Sprintf("not sent: the checkpoint refused it (%v)", err)
	default:
		j.text = fmt.Sprintf("sent, but the checkpoint refused what came of it (%v)", err)
	}
	switch {
	case j.attempts == 0 && refused:
		j.outcome = Failed
	case j.attempts == 0 || j.outcome == Pending:
		j.outcome = Pending
	case j.step.Action == Update:
		j.outcome = Failed
	case j.linking: // the lead is durable, the link alone is not
		j.outcome = Partial
	default:
		j.outcome = InDoubt
	}
}

// crashed ends a row at which the program itself failed.
func (c *carrier) crashed(j *job, fault error) {
	stop := crashed(fault)
	c.halt(stop)
	switch {
	case j.linking:
		c.unlinked(j, stop)
	case !j.intended:
		j.outcome = Pending
	case j.step.Action == Update:
		c.unanswered(j, doubtReason(reasonPanic, 0))
	default:
		c.doubt(j, 0, reasonPanic)
	}
}

// entryOf starts an entry from the job's row.
func (c *carrier) entryOf(j *job, s checkpoint.State) checkpoint.Entry {
	return checkpoint.Entry{
		Key: j.it.rec.Key, State: s, Digest: j.it.digest, Content: j.it.sums,
		File: c.files[j.it.input], Line: j.it.row.Line, Run: c.run, Updated: time.Now(),
	}
}

// doubtOf is an entry with what a person needs to find the lead, if there is one.
func (c *carrier) doubtOf(j *job) checkpoint.Entry {
	rec := &j.it.rec
	e := c.entryOf(j, checkpoint.InDoubt)
	e.Organization, e.Locator, e.Status, e.WantLink = rec.Organization, rec.Locator, rec.Status, rec.ExternalID
	return e
}

// intent is the durable note that a create is about to be sent. Its time is that of the
// commit, for which the claim may have to wait.
func (c *carrier) intent(j *job) checkpoint.Intent {
	rec := &j.it.rec
	if j.requestID = ""; c.requestIDs {
		j.requestID = leadapi.NewRequestID()
	}
	return checkpoint.Intent{
		Key: rec.Key, File: c.files[j.it.input], Line: j.it.row.Line,
		Organization: rec.Organization, Locator: rec.Locator, Status: rec.Status, ExternalID: rec.ExternalID,
		RequestID: j.requestID, Run: c.run, Digest: j.it.digest, Content: j.it.sums, Shape: c.shapes.of(j.it.input),
	}
}

// phases are the two of a run, each a context that ends with it. While it takes rows, creates
// and updates leave. While it sends, links of leads that were made leave, too.
type phases struct {
	taking, sending        context.Context
	takeNoMore, sendNoMore context.CancelFunc
}

func newPhases(ctx context.Context) *phases {
	var p phases
	p.sending, p.sendNoMore = context.WithCancel(ctx)
	p.taking, p.takeNoMore = context.WithCancel(p.sending)
	return &p
}
