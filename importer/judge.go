package importer

import (
	"slices"

	"leadferry/checkpoint"
	"leadferry/internal/failpoint"
	"leadferry/leadapi"
)

// plan asks the planner and acts on its step; false means that the row cannot go
// on now, and has not been taken. waited says that it had to wait in its queue.
func (e *engine) plan(c *Case, ns *names, waited bool) bool {
	it, known := c.it, c.Known
	step := e.planner.Plan(c)
	if e.rehearsal != nil {
		e.accept()
		e.rehearse(it, step, known)
		return true
	}
	if step.Action == Nothing {
		if waited {
			e.leave(it)
		} else {
			e.accept()
		}
		e.close(it, result{outcome: step.Outcome, entry: *known, text: step.Reason, kind: step.Kind})
		return true
	}
	if e.free == 0 || step.Action != Hold && e.onTrial() || !e.mayCreate(step) {
		if e.free == 0 {
			e.ledger.Hurry()
		}
		return false
	}
	if !waited {
		e.accept()
		e.enter(it, ns)
	}
	j := e.job()
	j.it, j.step, j.entry, j.names = it, step, *known, *ns
	j.entry.Content = slices.Clone(known.Content) // look-ups use theirs again
	e.start(j)
	return true
}

// onTrial holds rows back until one was not refused like all before it: no more are
// sent than show that something is wrong with every row.
func (e *engine) onTrial() bool {
	return e.tally.trying() && e.inFlight > 0 && e.tally.sent+e.inFlight >= e.tally.slots
}

// mayCreate holds creates back while those under way could use up --max-creates,
// and stops the run when the leads made have.
func (e *engine) mayCreate(step Step) bool {
	if step.Action != Create || e.MaxCreates == 0 || e.tally.creating < e.MaxCreates {
		return true
	}
	if e.tally.made >= e.MaxCreates {
		e.stop(&Stop{Reason: "as many leads as --max-creates allows have been made", Code: CodeStopped})
	}
	return false
}

// start begins a job: a create first becomes a durable claim, and an update a durable
// mark.
func (e *engine) start(j *job) {
	e.touch(&j.names)
	if j.step.Action == Hold {
		e.hold(j)
		return
	}
	if e.Sends != nil {
		e.Sends()
	}
	e.digests.whole(j.it)
	e.digests.fields(j.it)
	switch j.step.Action {
	case Create:
		e.claim(j)
	case Update:
		e.mark(j)
	default:
		e.launch()
		e.ready <- j
		return
	}
	if e.hungry() || e.free == 0 {
		e.ledger.Hurry()
	}
}

// hold makes it durable, for all runs, that a person has to look whether the row has a lead.
// What such a lead holds is not known, so nothing is said of it.
func (e *engine) hold(j *job) {
	rec := &j.it.rec
	held := e.entryOf(j, checkpoint.InDoubt)
	held.Digest, held.Content, held.Reason = checkpoint.Digest{}, nil, checkpoint.ReasonIncomplete
	held.Organization, held.Locator = rec.Organization, rec.Locator
	held.Status, held.WantLink = rec.Status, rec.ExternalID
	e.launch()
	e.ledger.Settle(held, func(stored checkpoint.Entry, err error) {
		if err != nil {
			e.post(event{job: j, outcome: Pending, err: err})
			return
		}
		e.settled(j, InDoubt, nil, stored, nil)
	})
	e.ledger.Hurry()
}

// launch counts a job that nothing keeps any more from coming to its end.
func (e *engine) launch() {
	e.free--
	e.inFlight++
}

func (e *engine) claim(j *job) {
	e.tally.creating++
	j.claimed = true
	failpoint.At("before intent")
	e.note(j.it.input)
	intent := e.intent(j)
	e.launch()
	e.ledger.Claim(intent, func(err error) {
		if err != nil {
			e.post(event{job: j, outcome: Pending, err: err})
			return
		}
		e.creates <- j
	})
	failpoint.At("intent queued")
}

// end ends a job and records its row.
func (e *engine) end(ev event) {
	j := ev.job
	e.free++
	e.inFlight--
	e.touch(&j.names)
	e.leave(j.it)
	r := &e.scratch.result
	*r = result{
		outcome: ev.outcome, entry: j.entry, text: j.text, whole: j.whole, attempts: j.attempts, sent: j.attempts > 0,
		moved: j.moved,
	}
	if ev.err != nil {
		e.unwritten(r, j, ev)
	}
	r.elsewhere(j)
	if j.claimed {
		e.tally.created(r)
	}
	e.finish(j.it, r)
	if ev.stop != nil {
		e.stop(ev.stop)
	}
	if stop := e.retrier.breaker.over(); stop != nil {
		e.stop(stop)
	}
	e.uncount(j) // last: what ends the run lets no other begin
	e.jobs = append(e.jobs, j)
}

// elsewhere says of a lead that was made or linked that it belongs to another organization than the row asked for.
func (r *result) elsewhere(j *job) {
	asked := j.it.rec.Organization
	if r.outcome != Created && r.outcome != Partial || j.entry.LeadID == "" || asked == "" || j.entry.Organization == asked {
		return
	}
	text := "the service assigned another organization than the row asked for"
	if j.entry.Organization == "" {
		text = "the service does not say which organization it assigned"
	}
	if r.whole != "" {
		r.whole += "; " + text
	}
	if r.text != "" {
		text = r.text + "; " + text
	}
	r.text = text
}

// job is an empty one, which an earlier row may have used.
func (e *engine) job() *job {
	n := len(e.jobs) - 1
	if n < 0 {
		return new(job)
	}
	j := e.jobs[n]
	e.jobs = e.jobs[:n]
	*j = job{request: leadapi.CreateRequest{Content: j.request.Content}} // room for the next
	return j
}

// unwritten makes a row say that the checkpoint does not know what became of it.
func (e *engine) unwritten(r *result, j *job, ev event) {
	r.text, r.whole = "the checkpoint could not be written", ""
	e.stop(ledgerFailed(ev.err))
	switch {
	case !r.sent || ev.outcome == Pending:
	case j.step.Action == Update:
		r.outcome = Failed
	case j.step.Action == Link: // the lead is durable, the link alone is not
		r.outcome = Partial
	default:
		r.outcome = InDoubt
	}
}

// close ends a row that was not sent.
func (e *engine) close(it *item, r result) {
	e.scratch.result = r
	e.finish(it, &e.scratch.result)
}

// finish records a row's outcome and ends the run where a limit says so. The row is
// gone then: what else the engine wants of it comes before.
func (e *engine) finish(it *item, r *result) {
	if stop := e.tally.count(it, r); stop != nil && e.sender != nil {
		e.stop(stop)
	}
	if e.recorder == nil {
		e.rows.items.put(it)
		return
	}
	if err := e.recorder.add(it, r); err != nil {
		e.stop(filesFailed(err))
	}
}
