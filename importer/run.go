package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/meter"
	"leadferry/importer/report"
	"leadferry/internal/failpoint"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// run is one Import, Sync or Validate, from its options to its summary.
type run struct {
	Options
	collector
	planner Planner
	matches bool // rows find their lead by its IDs, too
	intake  *intake
	meter   *meter.Meter
	retrier *delivery.Retrier

	ledger  *checkpoint.Ledger  // nil for validate, and for a dry run without checkpoint
	shapes  shapes              // by what rows are made leads; nil where none is
	client  *leadapi.Client     // nil: nothing is ever sent
	sender  Sender              // the same
	member  *member             // nil: the run is no worker of a fleet
	opened  *Start              // what was known before the first row
	judged  *checkpoint.Verdict // by witnesses, before a person was asked
	started time.Time
	shown   time.Time // when Live was told last
	stopped *Stop     // why the run ended before its input
}

func newRun(o Options, p Planner) *run {
	r := &run{Options: o, planner: p, meter: meter.New()}
	r.intake = &intake{options: &r.Options, items: newItems()}
	r.collector = collector{tally: newTally(len(o.Inputs), o.Limits, slotsPerPlace*o.Concurrency), options: &r.Options, place: r.intake.place}
	if o.Files.Pull != "" {
		r.pulls = newPulls(&o)
	}
	r.retrier = &delivery.Retrier{Breaker: delivery.NewBreaker(o.MaxWait, o.Concurrency, o.Rate), Retries: o.Retries, Resend: o.ResendOn, Retried: r.meter.Retried}
	return r
}

// carryOut connects the run to service and checkpoint and performs it.
func (r *run) carryOut(ctx context.Context) (*report.Summary, error) {
	var err error
	if r.intake.sharding, err = newSharding(r.Shard, r.Mapping); err != nil {
		return nil, err
	}
	if err := r.intake.bind(); err != nil {
		return nil, err
	}
	if r.DryRun {
		r.dry = newDryRun(&r.Options, r.intake)
	} else {
		if err := r.connect(); err != nil {
			return nil, err
		}
		defer r.client.Close()
	}
	l, err := openLedger(&r.Options)
	if err != nil {
		return nil, err
	}
	if l != nil {
		defer l.Drop() // of a run that was refused; else it is closed by then
		if err := r.prepare(ctx, l); err != nil {
			return nil, err
		}
	}
	return r.perform(ctx)
}

// connect makes the client; nothing leaves yet.
func (r *run) connect() error {
	trace := r.Client.Observe
	r.Client.Leave = r.retrier.Breaker.Leaves
	r.Client.Observe = func(c leadapi.Call) {
		if c.Sent > 0 {
			r.meter.Observe(c)
		}
		if trace != nil {
			trace(c)
		}
	}
	client, err := leadapi.New(r.Client)
	if err != nil {
		return err
	}
	r.client, r.sender, r.retrier.Reach = client, client, client.Reach
	return nil
}

// prepare finds out what has to be known of the checkpoint before the run is announced.
func (r *run) prepare(ctx context.Context, l *checkpoint.Ledger) (err error) {
	r.keepIn(l)
	if r.drift == nil && !r.DryRun && (!r.matches || r.Missing == MissingCreate) {
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

// makes says that the run may make leads.
func (r *run) makes() bool { return !r.matches || r.Missing == MissingCreate }

// hear judges the checkpoint by its witnesses. What a person has to answer is asked when the run is announced.
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

// doubtfulKinds are those that may be at the wrong place: none where the mapping itself names the target.
func (r *run) doubtfulKinds() []checkpoint.Kind {
	if r.Mapping.Target() != (mapping.Target{}) {
		return nil
	}
	return r.kinds()
}

// kinds are those of the inputs of which the checkpoint has not noted yet that leads were made of them.
func (r *run) kinds() (kinds []checkpoint.Kind) {
	for i := range r.shapes {
		if shape := r.shapes.of(i); shape != nil && len(shape.Columns) > 0 {
			kinds = append(kinds, checkpoint.KindOf(shape))
		}
	}
	return kinds
}

// heedDoubts counts the rows that stand in doubt, and finds out whether the run before stopped while some did. Of rows that
// are sent again no more come to stand than before.
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
	for _, before := range slices.Backward(runs) {
		if before.Finished.IsZero() {
			continue
		}
		if before.Outcome == "stopped" && before.Counts[InDoubt.String()] > 0 {
			r.retrier.Breaker.Beware()
		}
		break
	}
	return err
}

// keepIn gives the run its ledger.
func (r *run) keepIn(l *checkpoint.Ledger) {
	r.ledger, r.intake.sums = l, l.Digests()
}

// join makes the run a worker of its fleet: from then on limits and rate are what all its workers share.
func (r *run) join(s checkpoint.Store) {
	if r.Terms == nil || r.DryRun {
		return
	}
	f := r.Fleet(s)
	r.member = newMember(f, r.Limits, r.retrier.Breaker, r.Rate, r.MaxWait)
	r.tally.share(f.Before())
}

// openLedger opens the checkpoint; a dry run does without one that is not there.
func openLedger(o *Options) (*checkpoint.Ledger, error) {
	store, err := o.Open(o.Require, o.DryRun)
	if o.DryRun && !o.Require && errors.Is(err, checkpoint.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return checkpoint.NewLedger(store, checkpoint.Gathering{Slots: slotsPerPlace * o.Concurrency, Places: o.Concurrency}), nil
}

// perform tells what is about to happen, opens the run's files, signs in, takes the rows
// to their outcomes and closes the files with the summary.
func (r *run) perform(ctx context.Context) (*report.Summary, error) {
	r.intake.caught = r.dry != nil
	if err := r.announce(); err != nil {
		return nil, err
	}
	r.started = time.Now() // a person may have been asked, who takes their time
	r.meter.Begin(r.started)
	if r.began = r.started; r.dry == nil {
		r.before = r.lastAttention()
	}
	rec, err := r.openFiles()
	if err != nil {
		return nil, err
	}
	if r.pulls != nil {
		defer r.pulls.close()
	}
	end := r.member.start(ctx) // signing in keeps to the rate, too
	if r.client == nil || r.noteStart() && (r.Reconciling.None || r.signIn(ctx)) {
		r.takeRows(ctx)
		r.findAbsent(ctx, rec)
	}
	end()
	if r.pulls != nil && r.stopped == nil {
		if err := r.pulls.settle(); err != nil {
			r.stopped = filesFailed(err)
		}
	}
	s := r.summary()
	r.finish(s, rec)
	return s, nil
}

// lastAttention is what needed attention in the last run like this one, by the run folders at hand.
func (r *run) lastAttention() *report.Before {
	like := &report.Summary{Command: r.Command, Mapping: r.MappingFile, Target: report.Target(r.Target)}
	if r.Terms != nil {
		like.Fleet, like.Shard = r.Terms.Fleet, fmt.Sprintf("%d/%d", r.Shard.Index, r.Shard.Of)
	}
	parents, own := []string{report.RunsFolder}, r.Files.Folder()
	if own != "" {
		parents = append(parents, filepath.Dir(filepath.Clean(own)))
	}
	return report.ReadBefore(parents, own, like)
}

// takeRows takes every row to its outcome.
func (r *run) takeRows(ctx context.Context) {
	phases := newPhases(ctx)
	defer phases.sendNoMore()
	r.stopped = newEngine(r, phases).run(ctx)
}

// liveEvery is how often a run is shown to those who watch it.
const liveEvery = time.Second

// sample notes for the timeline how far the run is.
func (r *run) sample() { r.meter.Sample(r.tally.ended(), r.retrier.Breaker.Paused() != "") }

// progress tells whoever listens how far the run is.
func (r *run) progress() {
	r.sample()
	r.member.keep(r.soFar)
	if now := time.Now(); r.Live != nil && now.Sub(r.shown) >= liveEvery {
		r.shown = now
		r.Live(r.soFar())
	}
	if r.Progress == nil {
		return
	}
	t := r.tally
	inFlight, _ := r.retrier.Breaker.InFlight()
	r.Progress(report.Tick{
		Read: t.counts.Read, Sent: t.counts.Sent, Known: t.known, Attention: t.attention(true),
		InDoubt: t.outcomes[InDoubt], InFlight: inFlight, Paused: r.retrier.Breaker.Paused(),
	})
}

// openFiles opens the run's files; nil where none are wanted.
func (r *run) openFiles() (*recorder, error) {
	r.recorder = &unrecorded{items: &r.intake.items}
	if !r.Files.Wanted() {
		return nil, nil
	}
	var own *ownColumns
	if r.OwnColumns {
		own = newOwnColumns(r.Inputs)
		r.Files.Columns = own.names
	}
	r.Files.Namespaced = r.Mapping.Namespace() != ""
	files, err := report.OpenRun(r.Files)
	if err != nil {
		return nil, fmt.Errorf("%w\nhint: name another place with --out, or with the flag that names this file", err)
	}
	rec := newRecorder(files, r.Inputs, &r.intake.items, own)
	rec.strict, rec.values = r.Strict, r.Files.ProblemValues
	if files.TakesRows() {
		r.recorder = rec
	}
	return rec, nil
}

// announce tells what is about to happen; the caller may still refuse it.
func (r *run) announce() error {
	s := &Start{Target: r.Target, Verdict: r.judged}
	if r.ledger != nil {
		s.Checkpoint = r.ledger.Info()
		s.Warnings = slices.Concat(s.Checkpoint.Warnings, r.judged.Warnings)
		if err := r.judged.Refuse(r.Answer); err != nil && r.DryRun {
			s.Warnings = append(s.Warnings, err.Error())
		}
	}
	if r.dry == nil {
		s.Warnings = append(s.Warnings, r.warnings()...)
		if s.Notes = r.remarks(); r.drift != nil {
			s.Notes = append(s.Notes, r.drift.cost)
		}
		s.Warnings = append(s.Warnings, r.shared()...)
	}
	s.Warnings = append(s.Warnings, r.Warnings...)
	r.opened = s
	if r.Begin == nil {
		return nil
	}
	return r.Begin(s)
}

// unfinished is the outcome of a run that has not ended, or was killed.
const unfinished = "unfinished"

// noteStart makes the checkpoint list the run from its beginning, so that one that is killed is seen too, and writes its
// witness: only then may anything be claimed.
func (r *run) noteStart() bool {
	err := r.beginWitness(context.Background())
	if err != nil {
		r.stopped = ledgerFailed(err)
	}
	return err == nil
}

func (r *run) beginWitness(ctx context.Context) error {
	unlock, err := r.Witnesses.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	// Again, since a person may have been asked for a long time: who was answered is answered, others are not.
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
	if err := checkpoint.PutRun(ctx, r.ledger, checkpoint.RunInfo{ID: r.RunID, Command: r.Command, Started: r.started, Outcome: unfinished}); err != nil {
		return err
	}
	t, err := r.Witnesses.Begin(ctx, r.ledger, checkpoint.Witness{
		Run: r.RunID, Command: r.Command, Process: os.Getpid(), Started: r.started, Kinds: r.kinds(),
	}, r.Files.Folder())
	if err != nil {
		return err
	}
	r.ledger.Attest(t)
	return nil
}

// signInWait bounds how long a run waits for the first token.
const signInWait = time.Minute

// signIn gets the first token, so that a wrong secret is known before the first row.
func (r *run) signIn(ctx context.Context) bool {
	waiting, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	var ended *Stop // of the fleet
	watch.Go(func() {
		select {
		case <-r.Interrupt:
			cancel()
		case ended = <-r.member.over():
			cancel()
		case <-waiting.Done():
		}
	})
	r.retrier.Breaker.MaxWait = min(signInWait, r.MaxWait)
	_, err := r.retrier.Deliver(ctx, waiting, delivery.Repeatable, new(delivery.Pass),
		func(ctx context.Context, _ bool) error { return r.client.SignIn(ctx) })
	r.retrier.Breaker.MaxWait = r.MaxWait
	interrupt := waiting.Err() != nil
	cancel()
	watch.Wait()
	stop, _ := stopOf(err)
	switch {
	case ended != nil:
		r.stopped = ended
	case err == nil:
		return true
	case stop != nil:
		r.stopped = stop
	case interrupt:
		r.stopped = interrupted()
	default:
		r.stopped = &Stop{Reason: "sign-in failed: " + err.Error(), Code: CodeStopped}
	}
	return false
}

// finish completes the run's files and closes the checkpoint. What the disk refuses is
// said in the summary, which comes last, and in the run's history where it can be.
func (r *run) finish(s *report.Summary, rec *recorder) {
	for _, in := range s.Inputs {
		if in.Changed {
			r.Log.Warn("the input changed while it was read", "file", in.Path)
		}
	}
	if rec != nil {
		err := rec.close()
		if err == nil && r.pulls != nil && r.stopped == nil {
			err = rec.files.Pull(r.pulls.columns, r.pulls.lines())
		}
		if err != nil {
			halt(s, filesFailed(err))
		}
	}
	r.leave(s)
	failpoint.At("before run is noted")
	if r.ledger != nil {
		if err := r.closeLedger(s); err != nil {
			halt(s, ledgerFailed(err))
		}
	}
	failpoint.At("before files are finished")
	if rec != nil {
		rec.files.Finish(s) // says in the summary itself what it could not write
	}
}

// leave tells the fleet how the worker ended. What it cannot be told stays what it was told before.
func (r *run) leave(s *report.Summary) {
	if r.member == nil {
		return
	}
	stop, err := r.member.leave(r.tally, s)
	if err != nil {
		r.Log.Warn("the report of the fleet lacks how this worker ended", "cause", err)
	}
	if r.stopped == nil {
		r.stopped = stop
	}
}

// closeLedger notes how the run ended and closes the checkpoint, which may still write.
func (r *run) closeLedger(s *report.Summary) error {
	var noted, closed error
	if r.sender != nil {
		noted = checkpoint.PutRun(context.Background(), r.ledger, checkpoint.RunInfo{
			ID: s.RunID, Command: s.Command, Started: s.StartedAt, Finished: s.FinishedAt, Outcome: s.Outcome, Counts: s.Rows.ByName(),
		})
	}
	gone := false
	if r.stopped != nil {
		gone, closed = r.ledger.Drop()
	} else {
		closed = r.ledger.Close()
	}
	if s.Checkpoint.Sequence = r.ledger.Info().Sequence; gone { // a later run that finds another checkpoint there has nothing to compare it with
		s.Checkpoint.ID, s.Checkpoint.Sequence = "", 0
	}
	return cmp.Or(noted, closed)
}

// halt makes the summary of a run that ended better say that it did not after all.
func halt(s *report.Summary, stop *Stop) {
	if stop.outranks(s.ExitCode) {
		s.Outcome, s.StopReason, s.ExitCode, s.Hint, s.Same = "stopped", stop.Reason, stop.Code, s.Holding(stop.Hint), stop.Same
	}
}
