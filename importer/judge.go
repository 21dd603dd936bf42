package importer

import "leadferry/checkpoint"

// plan asks the planner and acts on its step; false means that the row cannot go
// on now, and has not been taken. in is the row's lane when it waited in one.
func (e *engine) plan(it *item, known *checkpoint.Entry, in *lane) bool {
	step := e.planner.Plan(&it.rec, it.digest, known)
	if step.Action != Nothing && e.sender == nil {
		if in == nil {
			e.accept()
		}
		e.tally.plan(step.Action)
		e.show(it, step, known)
		e.finish(it, &result{outcome: Pending})
		return true
	}
	if step.Action == Nothing {
		if in == nil {
			e.accept()
		}
		e.finish(it, &result{outcome: step.Outcome, entry: *known, text: step.Reason})
		e.next(it.rec.Key, in)
		return true
	}
	if e.free == 0 || !e.mayCreate(step) {
		if e.free == 0 {
			e.ledger.Hurry()
		}
		return false
	}
	if in == nil {
		e.accept()
		e.lanes[it.rec.Key] = &lane{}
	}
	e.start(&job{it: it, step: step, entry: *known})
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

// start gives the job a slot; a create first becomes a durable claim.
func (e *engine) start(j *job) {
	e.free--
	e.flying++
	e.touched[j.it.rec.Key] = struct{}{}
	if j.step.Action != Create {
		e.ready <- j
		return
	}
	e.tally.creating++
	j.claimed = true
	e.ledger.Claim(e.intent(j), func(err error) {
		if err != nil {
			e.post(event{job: j, outcome: Pending, err: err})
			return
		}
		e.ready <- j
	})
	if e.idle.Load() > 0 || e.free == 0 {
		e.ledger.Hurry()
	}
}

// end takes back the slot of a job and records its row.
func (e *engine) end(ev event) {
	j := ev.job
	e.free++
	e.flying--
	e.touched[j.it.rec.Key] = struct{}{}
	r := &result{outcome: ev.outcome, entry: j.entry, text: j.text, attempts: j.attempts, sent: j.attempts > 0}
	if ev.err != nil {
		r.text = "the checkpoint could not be written"
		e.stop(ledgerFailed(ev.err))
		if r.sent && ev.outcome != Pending {
			r.outcome = InDoubt
		}
	}
	if j.claimed {
		e.tally.created(r)
	}
	e.finish(j.it, r)
	if ev.stop != nil {
		e.stop(ev.stop)
	}
	e.next(j.it.rec.Key, e.lanes[j.it.rec.Key])
}

// next lets the next row of a lane have its turn.
func (e *engine) next(key string, l *lane) {
	if l == nil {
		return
	}
	if len(l.waiting) == 0 {
		delete(e.lanes, key)
		return
	}
	e.turn = append(e.turn, l.waiting[0])
	l.waiting = l.waiting[1:]
	e.parked--
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

// show hands the request of a row to whoever asked for the first few.
func (e *engine) show(it *item, step Step, known *checkpoint.Entry) {
	if e.shown >= e.Show || e.Request == nil {
		return
	}
	e.shown++
	if err := e.Request(requestOf(e.Target.TrunkID, e.rows.names[it.input], it, step, known)); err != nil {
		e.stop(outputClosed(err))
	}
}
