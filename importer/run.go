package importer

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/meter"
	"leadferry/importer/report"
	"leadferry/internal/failpoint"
	"leadferry/leadapi"
)

// run is one Import, Sync or Validate, from its options to its summary.
type run struct {
	Options
	collector
	planner
	planFor func(*Case) Step // of the planner: forImport, forSync or forReconcile
	matches bool             // rows find their lead by its IDs, too
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
	shown   time.Time           // when Live was told last
	stopped *Stop               // why the run ended before its input
}

func newRun(o Options) *run {
	r := &run{Options: o, meter: meter.New()}
	r.planner = planner{o: &r.Options, conflicts: conflicts{o.Conflict, o.Mapping.Conflicts()}}
	r.intake = &intake{options: &r.Options, items: newItems()}
	r.collector = collector{tally: newTally(len(o.Inputs), o.Limits, slotsPerPlace*o.Concurrency), options: &r.Options}
	r.tally.place = r.intake.place
	if o.Files.Pull != "" {
		r.pulls = newPulls(o.Mapping, &r.conflicts)
	}
	r.retrier = &delivery.Retrier{
		Breaker: delivery.NewBreaker(o.MaxWait, o.Concurrency, o.Rate), Retries: o.Retries,
		Resend: o.ResendOn, Retried: r.meter.Retried,
	}
	return r
}

// carryOut connects the run to service and checkpoint and performs it.
func (r *run) carryOut(ctx context.Context) (*report.Summary, error) {
	if r.matches && r.Mapping.KeyFrom() == "row" && !r.Mapping.HasLeadID() {
		return nil, errNoIdentity
	}
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

// connect makes the client. It sends nothing.
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

// perform announces the run, opens its files, signs in, takes the rows to their outcomes and writes the summary.
func (r *run) perform(ctx context.Context) (*report.Summary, error) {
	r.intake.caught = r.dry != nil
	if err := r.announce(); err != nil {
		return nil, err
	}
	r.began = time.Now() // a person may have been asked, who takes their time
	if r.meter.Begin(r.began); r.dry == nil {
		parents, own := []string{report.RunsFolder}, r.Files.Folder()
		if own != "" {
			parents = append(parents, filepath.Dir(filepath.Clean(own)))
		}
		r.before = report.ReadBefore(parents, own, r.named())
	}
	rec, err := r.openFiles()
	if err != nil {
		return nil, err
	}
	if r.pulls != nil {
		defer r.pulls.close()
	}
	end := r.member.start(ctx) // signing in keeps to the rate, too
	if r.client != nil {
		if err := r.noteStart(context.Background()); err != nil {
			r.stopped = ledgerFailed(err)
		}
	}
	if r.stopped == nil {
		r.takeRows(ctx)
	}
	if rec != nil {
		if err := rec.close(); err != nil {
			r.stopped = graver(r.stopped, filesFailed(err))
		}
	}
	r.findAbsent(ctx, rec)
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

func (r *run) takeRows(ctx context.Context) { r.stopped = newEngine(ctx, r).run(ctx) }

const liveEvery = time.Second // between looks at a run for those who watch it

// sample notes for the timeline how far the run is.
func (r *run) sample() { r.meter.Sample(r.tally.ended(), r.retrier.Breaker.Paused() != "") }

func (r *run) progress() {
	r.sample()
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

// openFiles opens the run's files; nil: none are wanted.
func (r *run) openFiles() (*recorder, error) {
	r.record = r.intake.items.add
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
		r.record = rec.add
	}
	return rec, nil
}

// announce says what is about to happen. The caller may still refuse it.
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

// finish completes the run's files and closes the checkpoint. The summary, which is last, says what could not be written.
func (r *run) finish(s *report.Summary, rec *recorder) {
	for _, in := range s.Inputs {
		if in.Changed {
			r.Log.Warn("the input changed while it was read", "file", in.Path)
		}
	}
	if rec != nil && r.pulls != nil && r.stopped == nil {
		if err := rec.files.Pull(r.pulls.lines()); err != nil {
			halt(s, filesFailed(err))
		}
	}
	r.leaveFleet(s)
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

// halt makes the summary say that the run stopped after all.
func halt(s *report.Summary, stop *Stop) {
	if stop.replacesCode(s.ExitCode) {
		s.Outcome, s.StopReason, s.ExitCode = "stopped", stop.Reason, stop.Code
		s.Hint, s.Same = s.Holding(stop.Hint), stop.Same
	}
}
