package importer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/mapping"
)

// ledgerState is the checkpoint of a run, and what is known of it.
type ledgerState struct {
	ledger *checkpoint.Ledger    // nil for validate, and for a dry run without checkpoint
	opened checkpoint.Info       // what it knew before the first row; what it lacked then does not come back
	judged *checkpoint.Judgement // by the witnesses, before a person is asked
	// of each input: which columns, key and namespace make its rows leads; nil once the checkpoint knows that, which
	// stores it with the first claim
	shapes []atomic.Pointer[checkpoint.Shape]
}

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
		if err := r.findShapes(ctx); err != nil {
			return err
		}
	}
	return r.judgeCheckpoint(ctx)
}

// makes reports whether the run may make leads.
func (r *run) makes() bool { return !r.matches || r.Missing == MissingCreate }

// judgeCheckpoint judges the checkpoint by its witnesses. Questions to a person come when the run is announced.
func (r *run) judgeCheckpoint(ctx context.Context) (err error) {
	if err := checkpoint.RefuseHalfAdopted(ctx, r.ledger); err != nil {
		return err
	}
	if r.Witnesses != nil {
		r.Witnesses.Looks, r.Witnesses.Flags = r.DryRun, r.Flags
		r.Witnesses.Named = r.Mapping.Target != (mapping.Target{})
	}
	if r.judged, err = checkpoint.Judge(ctx, r.ledger, r.Witnesses, r.makes(), r.kinds()); err != nil {
		return err
	}
	if err := r.judged.RefuseOlder(); err != nil || r.DryRun || !r.makes() || r.Witnesses == nil || r.Witnesses.Sandbox {
		return err
	}
	return checkpoint.OnThisMachine(ctx, r.ledger, r.Machine, false)
}

// kinds are the kinds of inputs from which this checkpoint has made no leads yet.
func (r *run) kinds() (kinds []checkpoint.Kind) {
	for i := range r.shapes {
		if shape := r.shapes[i].Load(); shape != nil && len(shape.Columns) > 0 {
			kinds = append(kinds, checkpoint.KindOf(shape))
		}
	}
	return kinds
}

// heedDoubts counts the rows in doubt, and finds out whether the run before stopped because of doubts. Rows that are
// sent again do not raise that number.
func (r *run) heedDoubts(ctx context.Context) (err error) {
	l := &r.Limits
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
	runs, err := checkpoint.Runs(ctx, r.ledger)
	runs = slices.DeleteFunc(runs, func(i checkpoint.RunInfo) bool { return i.Finished.IsZero() })
	if n := len(runs); n > 0 && runs[n-1].Outcome == "stopped" && runs[n-1].Counts[InDoubt.String()] > 0 {
		r.breaker.StartCautiously()
	}
	return err
}

func (r *run) keepIn(l *checkpoint.Ledger) {
	r.ledger, r.opened, r.intake.sums, r.digests = l, l.Info(), l.Digests(), newDigester(l.Digests())
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
	g := checkpoint.Gathering{
		Slots: slotsPerPlace * o.Concurrency, Places: o.Concurrency, Far: checkpoint.IsAddress(store.Info().Path),
	}
	return checkpoint.NewLedger(store, g), nil
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
