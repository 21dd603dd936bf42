package importer

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/mapping"
)

// prepare reads from the checkpoint what must be known before the run is announced.
func (r *run) prepare(ctx context.Context, l *checkpoint.Ledger) (err error) {
	r.keepIn(l)
	if r.drift == nil && !r.DryRun && r.makes() {
		if err := r.heedDoubts(ctx); err != nil {
			return err
		}
	}
	r.join(l.Store)
	if r.drift != nil {
		if err := r.prepareReconciliation(ctx); err != nil {
			return err
		}
	}
	if r.makes() {
		if r.shapes, err = newShapes(ctx, &r.Options, l); err != nil {
			return err
		}
	}
	return r.hear(ctx)
}

// makes reports whether the run may make leads.
func (r *run) makes() bool { return !r.matches || r.Missing == MissingCreate }

// hear judges the checkpoint by its witnesses. Questions to a person come when the run is announced.
func (r *run) hear(ctx context.Context) (err error) {
	if err := checkpoint.RefuseHalfAdopted(ctx, r.ledger); err != nil {
		return err
	}
	if r.Witnesses != nil {
		r.Witnesses.Looks = r.DryRun
	}
	if r.judged, err = checkpoint.Judge(ctx, r.ledger, r.Witnesses, r.makes(), r.doubtfulKinds()); err != nil {
		return err
	}
	r.judged.Flags = r.Flags
	if err := r.judged.RefuseOlder(); err != nil || r.DryRun || !r.makes() || r.Witnesses == nil {
		return err
	}
	return checkpoint.OnThisMachine(ctx, r.ledger, r.Machine, false)
}

// doubtfulKinds are the kinds that may belong to another target; none if the mapping names the target.
func (r *run) doubtfulKinds() []checkpoint.Kind {
	if r.Mapping.Target() != (mapping.Target{}) {
		return nil
	}
	return r.kinds()
}

// kinds are the kinds of inputs of which this checkpoint has not made leads yet.
func (r *run) kinds() (kinds []checkpoint.Kind) {
	for i := range r.shapes {
		if shape := r.shapes.of(i); shape != nil && len(shape.Columns) > 0 {
			kinds = append(kinds, checkpoint.KindOf(shape))
		}
	}
	return kinds
}

// heedDoubts counts the rows in doubt, and finds out whether the run before stopped because of doubts. Rows that are
// sent again do not raise that number.
func (r *run) heedDoubts(ctx context.Context) (err error) {
	l := &r.tally.limits
	if l.MaxInDoubt > 0 {
		if l.Standing, err = r.ledger.Standing(ctx); err != nil {
			return err
		}
	}
	switch {
	case r.ResendInDoubt && r.Terms != nil: // what others send again is not known here
		l.Standing = 0
	case r.ResendInDoubt && l.MaxInDoubt > 0:
		l.MaxInDoubt = max(l.MaxInDoubt, l.Standing)
	}
	r.Limits = *l
	runs, err := checkpoint.Runs(ctx, r.ledger)
	runs = slices.DeleteFunc(runs, func(i checkpoint.RunInfo) bool { return i.Finished.IsZero() })
	if n := len(runs); n > 0 && runs[n-1].Outcome == "stopped" && runs[n-1].Counts[InDoubt.String()] > 0 {
		r.retrier.Breaker.Beware()
	}
	return err
}

func (r *run) keepIn(l *checkpoint.Ledger) {
	r.ledger, r.intake.sums = l, l.Digests()
}

// join makes the run a worker of its fleet: from then on all workers share limits and rate.
func (r *run) join(s checkpoint.Store) {
	if r.Terms == nil || r.DryRun {
		return
	}
	f := r.Fleet(s)
	r.member = newMember(f, r.Limits, r.retrier.Breaker, r.Rate, r.MaxWait)
	r.tally.share(f.Before())
}

// openLedger opens the checkpoint; nil for a dry run without one.
func openLedger(o *Options) (*checkpoint.Ledger, error) {
	store, err := o.Open(o.Require, o.DryRun)
	if o.DryRun && !o.Require && errors.Is(err, checkpoint.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g := checkpoint.Gathering{Slots: slotsPerPlace * o.Concurrency, Places: o.Concurrency}
	return checkpoint.NewLedger(store, g), nil
}

// noteStart lists the run in the checkpoint, so that it is seen even if it is killed, and writes its witness. Only then
// may anything be claimed.
func (r *run) noteStart(ctx context.Context) error {
	unlock, err := r.Witnesses.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	// Judge again, because a person may have taken long to answer. What was answered holds; anything new is refused.
	now, err := checkpoint.Judge(ctx, r.ledger, r.Witnesses, r.makes(), r.doubtfulKinds())
	if err != nil {
		return err
	}
	if !r.judged.Covers(now) {
		now.Flags = r.Flags
		return now.Refuse("")
	}
	if err := now.Answer(ctx, r.ledger); err != nil {
		return err
	}
	if err := checkpoint.PutRun(ctx, r.ledger,
		checkpoint.RunInfo{ID: r.RunID, Command: r.Command, Started: r.began, Outcome: "unfinished"}); err != nil {
		return err
	}
	t, err := r.Witnesses.Begin(ctx, r.ledger, checkpoint.Witness{
		Run: r.RunID, Command: r.Command, Process: os.Getpid(), Started: r.began, Kinds: r.kinds(),
	}, r.Files.Folder())
	if err != nil {
		return err
	}
	r.ledger.Attest(t)
	return nil
}

func (r *run) leaveFleet(s *report.Summary) {
	if r.member == nil {
		return
	}
	stop, err := r.member.reportEnd(r, s)
	if err != nil {
		r.Log.Warn("the report of the fleet lacks how this worker ended", "cause", err)
	}
	if r.stopped == nil {
		r.stopped = stop
	}
}

func (r *run) closeLedger(s *report.Summary) error {
	var noted, closed error
	if r.sender != nil {
		noted = checkpoint.PutRun(context.Background(), r.ledger, checkpoint.RunInfo{
			ID: s.RunID, Command: s.Command, Started: s.StartedAt, Finished: s.FinishedAt, Outcome: s.Outcome,
			Counts: s.Rows.ByName(),
		})
	}
	gone := false
	if r.stopped != nil {
		gone, closed = r.ledger.Drop()
	} else {
		closed = r.ledger.Close()
	}
	// a later run that finds another checkpoint there has nothing to compare it with
	if s.Checkpoint.Sequence = r.ledger.Info().Sequence; gone {
		s.Checkpoint.ID, s.Checkpoint.Sequence = "", 0
	}
	return cmp.Or(noted, closed)
}
