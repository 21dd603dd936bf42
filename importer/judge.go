package importer

import (
	"slices"

	"leadferry/checkpoint"
	"leadferry/internal/failpoint"
)

// plan asks the planner and acts on its step; false means that the row cannot go
// on now, and has not been taken. waited says that it had to wait in its lane.
func (e *engine) plan(it *item, known *checkpoint.Entry, how checkpoint.Match, ns *names, waited bool) bool {
	c := Case{Record: &it.rec, Known: known, Found: how, Run: e.RunID, it: it, digests: e.digests}
	step := e.planner.Plan(&c)
	if e.rehearsal != nil {
		e.accept()
		e.rehearse(it, step, known)
		return true
	}
	if step.Action == Nothing {
		if !waited {
			e.accept()
		}
		e.finish(it, &result{outcome: step.Outcome, entry: *known, text: step.Reason})
		if waited {
			e.leave(it)
		}
		return true
	}
	if e.free == 0 || !e.mayCreate(step) {
		if e.free == 0 {
			e.ledger.Hurry()
		}
		return false
	}
	if !waited {
		e.accept()
		e.enter(it, ns)
	}
	j := &job{it: it, step: step, entry: *known, names: *ns}
	j.entry.Content = slices.Clone(known.Content) // look-ups use theirs again
	e.start(j)
	return true
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

// start gives the job a slot; a create first becomes a durable claim, and an update a
// durable mark.
func (e *engine) start(j *job) {
	e.free--
	e.flying++
	e.touch(&j.names)
	e.digests.whole(j.it)
	e.digests.fields(j.it)
	switch j.step.Action {
	case Create:
		e.claim(j)
	case Update:
		e.mark(j)
	default:
		e.ready <- j
		return
	}
	if e.idle.Load() > 0 || e.free == 0 {
		e.ledger.Hurry()
	}
}

func (e *engine) claim(j *job) {
	e.tally.creating++
	j.claimed = true
	failpoint.At("before intent")
	e.ledger.Claim(e.intent(j), func(err error) {
		if err != nil {
			e.post(event{job: j, outcome: Pending, err: err})
			return
		}
		e.ready <- j
	})
	failpoint.At("intent queued")
}

// end takes back the slot of a job and records its row.
func (e *engine) end(ev event) {
	j := ev.job
	e.free++
	e.flying--
	e.touch(&j.names)
	r := &result{
		outcome: ev.outcome, entry: j.entry, text: j.text, attempts: j.attempts, sent: j.attempts > 0,
		moved: j.moved,
	}
	if ev.err != nil {
		e.unwritten(r, j, ev)
	}
	if j.claimed {
		e.tally.created(r)
	}
	e.finish(j.it, r)
	if ev.stop != nil {
		e.stop(ev.stop)
	}
	e.leave(j.it)
}

// unwritten makes a row say that the checkpoint does not know what became of it.
func (e *engine) unwritten(r *result, j *job, ev event) {
	r.text = "the checkpoint could not be written"
	e.stop(ledgerFailed(ev.err))
	switch {
	case !r.sent || ev.outcome == Pending:
	case j.step.Action == Update:
		r.outcome = Failed
	default:
		r.outcome = InDoubt
	}
}

// finish records a row's outcome and ends the run where a limit says so.
func (e *engine) finish(it *item, r *result) {
	if e.recorder != nil {
		if err := e.recorder.add(it, r); err != nil {
			e.stop(filesFailed(err))
		}
	}
	if stop := e.tally.count(it, r); stop != nil && e.sender != nil {
		e.stop(stop)
	}
}
