package importer

import (
	"context"
	"errors"
	"net/http"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/crash"
	"leadferry/internal/failpoint"
	"leadferry/leadapi"
)

// job is a row that is being sent: from before its claim until its outcome is durable.
type job struct {
	it       *item
	step     Step
	names    names
	entry    checkpoint.Entry // what is known, and in the end what was settled
	attempts int
	text     string // for people: why it ended so
	whole    string // the same for the rejects file, where the service's own words are in it
	claimed  bool   // an intent stands
	turn     pass   // Create: what it was sent with
	hasSlot  bool   // sent, or about to be, and not yet counted; not while it waits for its link
	request  leadapi.CreateRequest

	leadBefore   leadBefore // Update: what was known of the lead
	maybeApplied bool       // Update: a try may have been applied, and nobody can tell
	moved        moved      // Update: what the answer shows
}

// event ends a job: what it settled is durable, or err says why it could not be.
type event struct {
	job     *job
	outcome Outcome
	stop    *Stop // set when the run has to end
	err     error // the ledger's
}

// work is one worker: it takes what is ready and sends it.
func (e *engine) work(ctx context.Context, from <-chan *job) {
	for {
		j, ok := e.take(from)
		if !ok {
			return
		}
		e.handle(ctx, j)
	}
}

// take waits for a job, and until few enough that were sent are still to be counted.
func (e *engine) take(from <-chan *job) (j *job, ok bool) {
	select {
	case j, ok = <-from:
	default:
		e.rest()
		j, ok = <-from
		e.idle.Add(-1)
	}
	if !ok {
		return nil, false
	}
	j.hasSlot = true
	select {
	case e.sentSlots <- struct{}{}:
	default:
		e.rest()
		e.sentSlots <- struct{}{}
		e.idle.Add(-1)
	}
	return j, true
}

// uncount lets another job begin.
func (e *engine) uncount(j *job) {
	if j.hasSlot {
		j.hasSlot = false
		<-e.sentSlots
	}
}

// hungry reports whether more could be under way than is. There are two workers a place.
func (e *engine) hungry() bool { return int(e.idle.Load()) > e.Concurrency }

// rest begins a worker's wait, which makes the ledger commit at once what has gathered:
// what the worker waits for may be among it.
func (e *engine) rest() {
	e.idle.Add(1)
	e.ledger.Hurry()
}

// handle sends one job. A panic becomes a doubt and ends the run in order.
func (e *engine) handle(ctx context.Context, j *job) {
	var fault error
	defer func() {
		if fault == nil {
			return
		}
		stop := crashed(fault)
		switch j.step.Action {
		case Create:
			e.doubt(j, 0, reasonPanic, stop)
		case Update:
			e.unanswered(j, doubtReason(reasonPanic, 0), stop)
		default:
			e.unlinked(j, stop)
		}
	}()
	defer crash.Recover(&fault)
	switch j.step.Action {
	case Create:
		e.create(ctx, j)
	case Update:
		e.update(ctx, j)
	default:
		e.link(ctx, j)
	}
}

// create sends the create request and settles what the answer shows.
func (e *engine) create(ctx context.Context, j *job) {
	req := createRequest(&j.request, &j.it.rec)
	var made *leadapi.Created
	tries, err := e.retrier.deliver(ctx, &j.turn, func(ctx context.Context) (err error) {
		made, err = e.sender.Create(ctx, req)
		return err
	})
	j.attempts += tries
	failpoint.At("answered")
	if err == nil {
		e.made(j, made)
		return
	}
	var stop *Stop
	var ae *leadapi.Error
	switch {
	case errors.Is(err, errStopping):
		e.withdraw(j, Pending, nil)
	case errors.As(err, &stop):
		e.withdraw(j, Pending, stop)
	case !errors.As(err, &ae):
		j.text = err.Error()
		e.withdraw(j, Failed, nil)
	case e.retrier.unapplied(ae), ae.Status == http.StatusUnauthorized, ae.Status == http.StatusMisdirectedRequest:
		j.refuse("%s", ae)
		j.entry.Code = ae.Status
		e.withdraw(j, Failed, nil)
	case ae.Applied == leadapi.No && !throttled(ae):
		e.refused(j, ae)
	default:
		e.doubt(j, ae.Status, ae.Reason, nil)
	}
}

// made settles a lead that the service says it created; one that asks for a link
// goes back to the workers once its ID is durable and its own.
func (e *engine) made(j *job, made *leadapi.Created) {
	rec := &j.it.rec
	j.entry = e.entryOf(j, checkpoint.Created)
	j.entry.LeadID, j.entry.Organization, j.entry.Location = made.LeadID, made.OrganizationID, made.LocationName
	j.entry.Status = rec.Status
	if j.entry.Status == "" {
		j.entry.Status = "open"
	}
	outcome := Created
	if rec.ExternalID == "" {
		j.entry.Code = made.Status
	} else {
		j.entry.State, j.entry.WantLink, outcome = checkpoint.Partial, rec.ExternalID, Partial
	}
	alone := j.turn.single // the others wait for what this one shows
	e.ledger.Settle(j.entry, func(stored checkpoint.Entry, err error) {
		e.retrier.breaker.conclude(&j.turn, shownBy(stored, err))
		if outcome == Created {
			e.settled(j, Created, nil, stored, err)
			return
		}
		if err != nil || stored.State == checkpoint.InDoubt {
			e.settled(j, Partial, nil, stored, err)
			return
		}
		j.entry = stored
		j.step = Step{Action: Link, Outcome: Created}
		e.uncount(j) // what waits for a worker must not keep one waiting
		e.ready <- j
	})
	if outcome == Partial || alone {
		e.ledger.Hurry()
	}
}

// shownBy is what a create has shown whose answer had a lead ID: that may be another row's.
func shownBy(stored checkpoint.Entry, err error) proof {
	switch {
	case err != nil:
		return nothingShown
	case stored.State == checkpoint.InDoubt:
		return inDoubt
	}
	return usable
}

// link sends the ExternalID of a lead that exists. The link holds only when the
// lead that comes back is the one that was meant and carries it.
func (e *engine) link(ctx context.Context, j *job) {
	external := j.it.rec.ExternalID
	var lead *leadapi.Lead
	failpoint.At("before link")
	tries, err := e.linker.deliver(ctx, nil, func(ctx context.Context) (err error) {
		lead, err = e.sender.Update(ctx, j.entry.LeadID, &leadapi.UpdateRequest{ExternalID: &external})
		return err
	})
	j.attempts += tries
	failpoint.At("link answered")
	var stop *Stop
	var ae *leadapi.Error
	switch {
	case err == nil && lead.ID == j.entry.LeadID && lead.ExternalID == external:
		e.linked(j, lead)
		return
	case err == nil:
		j.text = "linking was answered but not confirmed: the lead that came back is another one or carries another ExternalID"
	case errors.Is(err, errStopping) || errors.As(err, &stop):
		e.unlinked(j, stop)
		return
	case errors.As(err, &ae):
		j.entry.Code, j.entry.Reason = ae.Status, ae.Reason
		j.refuse("created but not linked: %s", ae)
	default:
		j.text = "created but not linked: " + err.Error()
	}
	j.entry.State, j.entry.WantLink = checkpoint.Partial, external
	e.settle(j, Partial)
}

func (e *engine) linked(j *job, lead *leadapi.Lead) {
	j.entry.State, j.entry.ExternalID, j.entry.WantLink = checkpoint.Created, lead.ExternalID, ""
	j.entry.Code, j.entry.Reason = http.StatusOK, ""
	j.entry.Run, j.entry.Updated = e.RunID, time.Now()
	if lead.Status != "" {
		j.entry.Status = lead.Status
	}
	if j.entry.Organization == "" {
		j.entry.Organization = lead.OwnerID
	}
	if j.entry.Location == "" {
		j.entry.Location = lead.LocationName
	}
	j.text = j.step.Reason
	e.settle(j, j.step.Outcome)
}

// unlinked ends a link that was not sent because the run stops: a lead made in
// this run stays partial, one of an earlier run waits for its turn.
func (e *engine) unlinked(j *job, stop *Stop) {
	outcome := Pending
	if j.claimed {
		outcome = Partial
		j.text = "created; the run stopped before it was linked"
	}
	e.post(event{job: j, outcome: outcome, stop: stop})
}

// refused settles a request that the service will not take.
func (e *engine) refused(j *job, ae *leadapi.Error) {
	e.retrier.breaker.conclude(&j.turn, usable)
	j.refuse("%s", ae)
	j.entry = e.entryOf(j, checkpoint.Rejected)
	j.entry.Content = nil // no lead holds it
	j.entry.Code, j.entry.Reason = ae.Status, ae.Reason
	e.settle(j, Rejected)
}

// doubt settles a create of which nobody can tell whether it was applied.
func (e *engine) doubt(j *job, code int, reason string, stop *Stop) {
	shown := inDoubt
	if code == 0 {
		shown = unheard
	}
	e.retrier.breaker.conclude(&j.turn, shown)
	rec := &j.it.rec
	j.entry = e.entryOf(j, checkpoint.InDoubt)
	j.entry.Code, j.entry.Reason = code, reason
	j.entry.Organization, j.entry.Locator = rec.Organization, rec.Locator
	j.entry.Status, j.entry.WantLink = rec.Status, rec.ExternalID
	e.ledger.Settle(j.entry, func(stored checkpoint.Entry, err error) {
		e.settled(j, InDoubt, stop, stored, err)
	})
}

// withdraw takes the claim of a create back that was not applied. Where the run has to
// end, nothing more leaves from here on: the next row would meet the same answer while
// the ledger still writes.
func (e *engine) withdraw(j *job, outcome Outcome, stop *Stop) {
	if stop != nil {
		e.quit()
	}
	e.retrier.breaker.conclude(&j.turn, nothingShown)
	e.ledger.Withdraw(j.it.rec.Key, func(err error) {
		e.post(event{job: j, outcome: outcome, stop: stop, err: err})
	})
}

func (e *engine) settle(j *job, outcome Outcome) {
	e.ledger.Settle(j.entry, func(stored checkpoint.Entry, err error) {
		e.settled(j, outcome, nil, stored, err)
	})
}

// settled runs in the ledger's writer: what was stored decides, not what was asked.
func (e *engine) settled(j *job, outcome Outcome, stop *Stop, stored checkpoint.Entry, err error) {
	if err == nil {
		j.entry = stored
		if stored.State == checkpoint.InDoubt {
			outcome = InDoubt
			j.text, j.whole = doubtReason(stored.Reason, stored.Code), ""
		}
	}
	e.post(event{job: j, outcome: outcome, stop: stop, err: err})
}

// post hands an event to the loop. Where the ledger failed or the run must end,
// sending stops at once, before the loop comes to it.
func (e *engine) post(ev event) {
	if ev.err != nil || ev.stop != nil {
		e.quit()
	}
	e.events <- ev
}

// entryOf starts an entry from the job's row.
func (e *engine) entryOf(j *job, s checkpoint.State) checkpoint.Entry {
	return checkpoint.Entry{
		Key: j.it.rec.Key, State: s, Digest: j.it.digest, Content: j.it.sums,
		File: e.rows.names[j.it.input], Line: j.it.row.Line, Run: e.RunID, Updated: time.Now(),
	}
}

// intent is the durable note that a create is about to be sent. Its time is that of the
// commit, for which the claim may have to wait.
func (e *engine) intent(j *job) checkpoint.Intent {
	rec := &j.it.rec
	return checkpoint.Intent{
		Key: rec.Key, File: e.rows.names[j.it.input], Line: j.it.row.Line,
		Organization: rec.Organization, Locator: rec.Locator, Status: rec.Status, ExternalID: rec.ExternalID,
		Run: e.RunID, Digest: j.it.digest, Content: j.it.sums,
	}
}
