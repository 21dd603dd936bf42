package importer

import (
	"context"
	"maps"
	"slices"

	"leadferry/checkpoint"
)

// advance takes one row a step further and reports false when none can go on now.
func (s *scheduler) advance(ctx context.Context) bool {
	switch {
	case s.stopped != nil:
		return false
	case len(s.queues.ready) > 0:
		return s.advanceReady(ctx)
	case s.batch == nil:
		return false
	case s.batch.at < len(s.batch.items):
		return s.approach(ctx, s.batch.items[s.batch.at])
	}
	if s.batch.err != nil {
		s.inputStop = inputEnded(s.batch.err) // no more rows come; those before it have their turn
	}
	s.batch = nil
	return false
}

// approach takes a row to its lead: behind the rows that came before it, or into its plan.
func (s *scheduler) approach(ctx context.Context, it *item) bool {
	if r := it.left(); r != nil {
		s.accept(it)
		s.finishRow(it, r)
		return true
	}
	c := s.lookups.remembered(it, s.batch.at)
	ns := s.lookups.names(c)
	if s.late.behind(it, &ns) {
		s.accept(it)
		s.late.add(it, &ns)
		return true
	}
	l := s.queues.find(&ns)
	if l == nil && s.lookups.isTouched(&ns) {
		var err error
		if c, err = s.lookups.fresh(ctx, it); s.failed(err) {
			return false
		}
		ns = s.lookups.names(c)
		l = s.queues.find(&ns)
	}
	switch {
	case l == nil:
		return s.plan(c, &ns, false)
	case s.queues.full():
		return false
	}
	s.accept(it)
	s.queues.park(it, l, &ns)
	return true
}

// advanceReady goes on with a row that waited for its queue.
func (s *scheduler) advanceReady(ctx context.Context) bool {
	it := s.queues.ready[0]
	c, err := s.lookups.fresh(ctx, it)
	if s.failed(err) {
		return false
	}
	ns := s.lookups.names(c)
	if !s.queues.rejoin(it, &ns) && !s.plan(c, &ns, true) {
		return false
	}
	s.queues.ready = s.queues.ready[1:]
	return true
}

// accept counts the batch's next row as read: from here on it must end in an outcome.
func (s *scheduler) accept(it *item) {
	if s.drift != nil {
		s.drift.name(it.rec.Key, &s.lookups.batch.known[s.batch.at])
	}
	s.batch.at++
	if it.late {
		return
	}
	s.tally.read(it)
	switch {
	case s.dry != nil:
		s.dry.read(it)
	case it.fault == nil && !s.tally.address && isAddress(it.rec.Key):
		s.tally.address = true
		s.options.Log.Warn(addressWarning, "file", s.intake.names[it.input], "line", it.row.Line)
	}
}

// plan asks the planner and acts on its step; false means that the row cannot go
// on now, and has not been taken. waited says that it had to wait in its queue.
func (s *scheduler) plan(c *Case, ns *leadNames, waited bool) bool {
	it, known := c.it, c.Known
	step := s.planner.Plan(c)
	if s.dry != nil {
		s.accept(it)
		if err := s.dry.plan(it, &step, known); err != nil {
			s.stop(outputClosed(err))
		}
		if step.Action.sends() {
			s.finishRow(it, &s.dry.pending)
		} else {
			s.end(it, result{outcome: step.Outcome, entry: *known, text: step.Reason, kind: step.Kind})
		}
		return true
	}
	if step.Action == Nothing {
		if waited {
			s.queues.leave(it)
		} else {
			s.accept(it)
		}
		if step.Outcome == InDoubt && s.putOff(it, ns) {
			return true
		}
		s.end(it, result{outcome: step.Outcome, entry: *known, text: step.Reason, kind: step.Kind, kept: step.Keep, unread: step.Unread, found: step.Found})
		return true
	}
	if !s.carriers.free() || step.Action.sends() && s.tally.onTrial(s.carriers.out()) || step.Action == Create && !s.mayCreate() {
		return false
	}
	if !waited {
		s.accept(it)
		s.queues.enter(it, ns)
	}
	s.hand(it, step, known, ns)
	return true
}

// mayCreate holds creates back while those under way could use up --max-creates,
// and stops the run when the leads made have.
func (s *scheduler) mayCreate() bool {
	if s.enough { // what was claimed is sent first
		if s.carriers.out() == 0 {
			s.stop(ledgerFailed(checkpoint.ErrEnough))
		}
		return false
	}
	most := s.options.MaxCreates
	if most == 0 || s.tally.creating < most {
		return true
	}
	if s.tally.made >= most {
		s.stop(&Stop{Reason: "as many leads as --max-creates allows have been made", Code: CodeStopped})
	}
	return false
}

func (s *scheduler) hand(it *item, step Step, known *checkpoint.Entry, ns *leadNames) {
	s.lookups.touch(ns)
	if step.Action.sends() {
		if s.options.Sends != nil {
			s.options.Sends()
		}
		s.lookups.digests.ofRequest(it)
		s.lookups.digests.ofContent(it)
	}
	if step.Action == Create {
		s.tally.creating++
	}
	s.carriers.hand(it, step, known, ns)
}

// count takes a row back from its carrier and lets the next one of its lead go on.
func (s *scheduler) count(j *job) {
	s.carriers.counted(j)
	s.lookups.touch(&j.names)
	s.queues.leave(j.it)
	if j.step.Action == Create {
		s.tally.created(&j.result, j.elsewhere)
	}
	s.enough = s.enough || j.enough
	if j.elsewhere && s.putOff(j.it, &j.names) {
		return
	}
	j.kept = j.step.Keep && j.entry.Seen.Kept && (j.outcome == Unchanged || j.outcome == Updated)
	s.finishRow(j.it, &j.result)
	if j.stop != nil {
		s.stop(j.stop)
	}
	if end := s.breaker.Over(); end != nil {
		s.stop(stopAt(end))
	}
}

// end finishes a row that no carrier took. Its result stays in one place, since a run that
// finds everything done would leave one behind for each row.
func (s *scheduler) end(it *item, r result) {
	s.ended = r
	s.finishRow(it, &s.ended)
}

// finishRow records a row's outcome and ends the run where a limit says so. The row is
// gone then: what else is wanted of it comes before.
func (s *scheduler) finishRow(it *item, r *result) {
	if s.drift != nil {
		s.drift.count(it, r)
	}
	if s.pulls != nil {
		s.pulls.add(it, r)
	}
	if stop := s.tally.count(it, r); stop != nil && s.dry == nil {
		s.stop(stop)
	}
	if err := s.recorder.add(it, r); err != nil {
		s.stop(filesFailed(err))
	}
}

// sink takes what became of each row, after it is durable.
type sink interface {
	add(it *item, r *result) error // the row is the sink's now, r is not
}

// lookups asks the checkpoint what it knows of rows: of a batch in one read, while the batch before it is planned, and of
// a row once more where the run has acted on its lead since.
type lookups struct {
	ledger  *checkpoint.Ledger // nil: nothing is known of any row
	info    checkpoint.Info    // of the beginning: what an incomplete checkpoint lacks does not come back
	matches bool               // rows find their lead by its IDs, too
	alikes  bool               // keys that look like the row's matter
	run     string
	digests *digester

	batch, next, again lookup
	begun              int              // reads of batches
	touched            map[leadName]int // by leads that were acted on since the batch's read began: reads that had begun then
}

// lookup is what the checkpoint knows of some rows, each by its place among them.
type lookup struct {
	queries []checkpoint.Query
	known   []checkpoint.Entry
	found   []checkpoint.Match
	alike   []checkpoint.Likeness
	row     Case // room for the one that is asked about
}

// begin says that the next batch is about to be read: what is acted on from now on, it may know or not.
func (l *lookups) begin() { l.begun++ }

// read looks the next batch up. It may go on beside all else until it is turned to.
func (l *lookups) read(ctx context.Context, items []*item) error { return l.ask(ctx, &l.next, items) }

// turn makes the batch that was read last the one that is planned.
func (l *lookups) turn() {
	l.batch, l.next = l.next, l.batch
	maps.DeleteFunc(l.touched, func(_ leadName, begun int) bool { return begun < l.begun })
}

func (l *lookups) ask(ctx context.Context, a *lookup, items []*item) error {
	n := len(items)
	a.known = slices.Grow(a.known[:0], n)[:n]
	if l.ledger == nil {
		for i, it := range items {
			a.known[i].Key = it.rec.Key
		}
		return nil
	}
	a.queries, a.found, a.alike = slices.Grow(a.queries[:0], n)[:n], slices.Grow(a.found[:0], n)[:n], slices.Grow(a.alike[:0], n)[:n]
	for i, it := range items {
		q := checkpoint.Query{Key: it.rec.Key}
		if l.matches {
			q.LeadID, q.ExternalID = it.rec.LeadID, it.rec.ExternalID
		}
		if a.alike[i] = (checkpoint.Likeness{}); l.alikes {
			q.Alike = &a.alike[i]
		}
		a.queries[i] = q
	}
	return l.ledger.Find(ctx, a.queries, a.known, a.found)
}

// remembered is what the checkpoint knew of the batch's i-th row when the batch was read.
func (l *lookups) remembered(it *item, i int) *Case { return l.caseOf(&l.batch, it, i) }

// fresh is what the checkpoint knows of a row now.
func (l *lookups) fresh(ctx context.Context, it *item) (*Case, error) {
	err := l.ask(ctx, &l.again, []*item{it})
	return l.caseOf(&l.again, it, 0), err
}

func (l *lookups) caseOf(a *lookup, it *item, i int) *Case {
	c := &a.row
	*c = Case{Record: &it.rec, Known: &a.known[i], Run: l.run, it: it, digests: l.digests}
	if l.ledger != nil {
		c.Found, c.Alike, c.MayLack = a.found[i], a.alike[i], l.info.MayLack(c.Known)
	}
	return c
}

// names are those of the row's lead.
func (l *lookups) names(c *Case) leadNames { return namesOf(c.it, c.Known, l.matches) }

// touch notes that the run acts on a lead, so that what a batch knows of it is old.
func (l *lookups) touch(ns *leadNames) {
	for _, n := range ns.all() {
		l.touched[n] = l.begun
	}
}

func (l *lookups) isTouched(ns *leadNames) bool {
	for _, n := range ns.all() {
		if _, ok := l.touched[n]; ok {
			return true
		}
	}
	return false
}
