// Package importer carries rows from files into the lead service, once each. It is the only package that knows the
// order of steps. Import, sync, reconcile and validate are one engine that decides in different ways. One item holds a
// row all the way (item.go), with what is known of its lead and how the row ends.
//
//	files ─▶ intake.go     run           one goroutine reads (source/file.go: Next); one for each batch makes Records
//	           │ batches                 of its rows (mapping/record.go: Map) and their digests
//	         engine.go     dispatchBatch the dispatcher, a goroutine: one look-up for a batch (Store.Find), then a Step
//	           │                         for each row (plan.go: forImport, forSync; compare.go: compare, decide).
//	           │                         endOrBegin ends the row or begins a lane; or the row waits (lanes.wait)
//	         lane.go       start         a goroutine carries one row after another; those that waited are looked up
//	           │                         again and decided here (next)
//	         carry.go      carry, create claim (Ledger.Do) ─▶ Deliver (leadapi/leads.go: Create) ─▶ settle (partial)
//	           │                         ─▶ link ─▶ settle. delivery/delivery.go: Deliver decides when a request
//	           │                         leaves, and sends it again where that is safe
//	           │  update.go look         read ─▶ decide again
//	           │            update       mark ─▶ Deliver (Update) ─▶ compare ─▶ settle, maybe once more; the mark
//	           │                         stays if it may have been applied. patch, store, settle are in carry.go
//	         lane.go       carried       back under the engine's lock; the next row of the lead may have its turn
//	         collector.go  collect       the tally counts, the limiter (stop.go) may end the run
//	           │ batches
//	         writer.go     add, write    one goroutine writes batches (report/rows.go: Results, Reject) to results.csv
//	                                     and the others, with a buffer of 64 KiB; if the disk is slow, the run waits
//
// Claim, mark and settle wait in Ledger.Do until they are on disk; one goroutine commits those of many rows together. A
// kill before the claim or the mark leaves nothing. Between claim and settle the row is in doubt, between the two
// settles of a new lead partial, between mark and settle unsettled. After the last settle only lines of the results are
// missing. After the checkpoint is closed, files get their names, the summary last.
//
// Promises: no create leaves before its claim is durable, no update before the checkpoint has marked its lead (a link
// needs no mark: its lead is partial), and no outcome is shown before it is durable. A create that may have been
// applied is sent again only if a person asks for it. A row that may have a lead already is not sent. An update counts
// only if the answer shows it. Rows of a lead go one after another, in file order. Outcomes add up to the rows read.
package importer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/meter"
	"leadferry/importer/report"
	"leadferry/internal/failpoint"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Run carries out one command (Options.Command). import creates the leads of the inputs' rows and links their
// ExternalIDs. sync sends the values that differ from those last confirmed; a row finds its lead by key, lead ID or
// ExternalID. reconcile compares each row with what was confirmed and with what the service holds now, and changes
// nothing there. validate maps and checks every row, and needs neither service nor checkpoint.
//
// Run returns the summary, also if the run ended early. An error means that nothing was sent. With DryRun, import and
// sync decide by the checkpoint, but send and write nothing.
func Run(ctx context.Context, o Options) (*report.Summary, error) {
	r := newRun(o)
	if err := r.fits(); err != nil {
		return nil, err
	}
	if err := r.intake.bind(); err != nil {
		return nil, err
	}
	switch {
	case r.Command == "validate":
		r.dry.examine()
		return r.perform(ctx)
	case !r.DryRun:
		trace := r.Client.Observe
		r.Client.Leave = r.breaker.MayLeave
		r.Client.Observe = func(c leadapi.Call) {
			if r.meter.Observe(c); trace != nil {
				trace(c)
			}
		}
		client, err := leadapi.New(r.Client)
		if err != nil {
			return nil, err
		}
		defer client.Close()
		r.sender, r.breaker.Reach = client, client.Reach
	}
	l, err := openLedger(&r.Options)
	if err != nil {
		return nil, err
	}
	if l != nil {
		defer l.Drop() // after a refusal; else finish has closed it
		if err := r.prepare(ctx, l); err != nil {
			return nil, err
		}
	}
	return r.perform(ctx)
}

// run is one command, from its options to its summary.
type run struct {
	Options
	planner
	intake  *intake
	meter   *meter.Meter
	breaker *delivery.Breaker

	sender  Sender  // nil: nothing is ever sent
	member  *member // nil: the run is no worker of a fleet
	stopped *Stop   // why the run ended before its input; the engine's lock guards it
	ledgerState
	collector
}

func newRun(o Options) *run {
	r := &run{Options: o, meter: meter.New(time.Now())}
	r.shapes = make([]atomic.Pointer[checkpoint.Shape], len(o.Inputs))
	r.planner = planner{o: &r.Options, rules: o.Mapping.Conflicts, digests: checkpoint.NewDigester(nil)}
	r.rules.All = o.Conflict
	r.intake = &intake{options: &r.Options, over: make(chan []*item, max(8/max(o.Shard.Of, 1), 2))}
	r.tally = newTally(len(o.Inputs))
	r.limiter = &limiter{limits: &r.Limits, first: slotsPerPlace * o.Concurrency}
	if o.Command == "validate" || o.DryRun {
		r.dry, r.intake.caught = newDryRun(&r.Options, r.intake), true
	}
	r.matches = o.Command == "sync" || o.Command == "reconcile"
	switch o.Command {
	case "sync":
		r.planFor, r.Require = r.forSync, o.Require || !o.Mapping.HasLeadID()
	case "reconcile":
		r.planFor, r.Require, r.since = r.forReconcile, true, time.Now().Add(-o.Reconciling.Fresh)
		r.drift = &drift{most: o.Reconciling.Sample, verdicts: map[Verdict]int{}}
	case "validate":
		r.planFor = func(*item) Step { return ends(Created, "").after(Create) } // it knows no checkpoint
	default:
		r.planFor = r.forImport
	}
	if o.Files.Pull != "" {
		r.pulls = &pulls{mapping: o.Mapping, ahead: map[string]report.Pulled{}, unnamed: map[string]bool{}}
	}
	r.breaker = delivery.NewBreaker(o.MaxWait, o.Concurrency, o.Rate)
	r.breaker.Retries, r.breaker.Resend, r.breaker.Retried = o.Retries, o.ResendOn, func() { r.meter.Retried() }
	return r
}

// openLedger opens the checkpoint. It returns nil for a dry run that finds none.
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

// prepare reads from the checkpoint what must be known before the run is announced.
func (r *run) prepare(ctx context.Context, l *checkpoint.Ledger) (err error) {
	r.keepIn(l)
	if r.drift == nil && !r.DryRun && r.mayCreate() {
		err = r.checkDoubts(ctx)
	}
	r.join(l.Store)
	if err == nil && r.drift != nil {
		err = r.prepareReconciliation(ctx)
	}
	if err == nil && r.mayCreate() { // which inputs have a shape that is new?
		shapes := r.inputShapes()
		var fresh []bool
		fresh, err = checkpoint.NewShapes(ctx, l, shapes, r.NewKey)
		for i, is := range fresh {
			if is {
				r.shapes[i].Store(&shapes[i])
			}
		}
	}
	if err != nil {
		return err
	}
	return r.judgeCheckpoint(ctx)
}

func (r *run) keepIn(l *checkpoint.Ledger) {
	r.ledger, r.opened, r.digests = l, l.Info(), l.Digests()
	r.intake.digest = func(it *item) { it.requestDigest(r.digests) }
	if r.matches {
		r.intake.digest = func(it *item) { it.contentDigests(r.digests) }
	}
}

// judgeCheckpoint refuses a checkpoint that is half adopted, older than its witnesses know, or another machine's.
// Questions for a person come later, with announce.
func (r *run) judgeCheckpoint(ctx context.Context) (err error) {
	if err := checkpoint.RefuseHalfAdopted(ctx, r.ledger); err != nil {
		return err
	}
	if r.Witnesses != nil {
		r.Witnesses.Looks, r.Witnesses.Flags = r.DryRun, r.Flags
		r.Witnesses.Named = r.Mapping.Target != (mapping.Target{})
	}
	var kinds []checkpoint.Kind // of inputs from which this checkpoint has made no leads yet
	for i := range r.shapes {
		if shape := r.shapes[i].Load(); shape != nil && len(shape.Columns) > 0 {
			kinds = append(kinds, checkpoint.KindOf(shape))
		}
	}
	if r.judged, err = checkpoint.Judge(ctx, r.ledger, r.Witnesses, r.mayCreate(), kinds); err != nil {
		return err
	}
	err = r.judged.RefuseOlder()
	if err != nil || r.DryRun || !r.mayCreate() || r.Witnesses == nil || r.Witnesses.Sandbox {
		return err
	}
	return checkpoint.OnThisMachine(ctx, r.ledger, r.Machine, false, r.Flags)
}

// checkDoubts counts the rows in doubt of earlier runs: with --in-doubt resend, they do not stop this run. If the last
// run stopped with doubts, this one starts cautiously.
func (r *run) checkDoubts(ctx context.Context) (err error) {
	l := &r.Limits
	if l.Standing, err = r.ledger.Standing(ctx); err != nil {
		return err
	}
	switch {
	case r.ResendInDoubt && r.Terms != nil: // nobody knows here what other workers send again
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

// fits returns an error if the mapping cannot do what the run is for.
func (r *run) fits() (err error) {
	if r.Command != "validate" && r.mayCreate() {
		err = r.Mapping.ForCreate()
	}
	if err == nil && r.matches {
		err = r.Mapping.ForSync()
	}
	if err == nil && r.Shard.Of > 1 {
		err = r.Mapping.ForShards()
	}
	return err
}

func (r *run) mayCreate() bool { return !r.matches || r.Missing == MissingCreate }

// perform announces the run, opens its files, signs in, takes the rows to their outcomes and writes the summary.
func (r *run) perform(ctx context.Context) (*report.Summary, error) {
	if err := r.announce(); err != nil {
		return nil, err
	}
	r.began = time.Now() // announce may have waited for a person
	if r.meter = meter.New(r.began); r.dry == nil {
		r.before = report.ReadBefore(r.Files, r.summaryHead())
	}
	w, err := r.openFiles()
	if err != nil {
		return nil, err
	}
	e := newEngine(ctx, r)
	end := r.member.start(ctx, e) // signing in keeps to the rate, too
	if r.sender != nil {
		begins := checkpoint.Witness{Run: r.RunID, Command: r.Command, Started: r.began}
		if err := r.judged.Begin(ctx, r.ledger, begins, r.Files.Dir); err != nil {
			e.stop(ledgerFailed(err))
		}
	}
	e.carryAll() // starts intake.run and dispatch, and returns when all rows have ended
	if err := w.close(); err != nil {
		r.stopped = graver(r.stopped, delivery.StopFor(report.Unwritten(err)))
	}
	r.findAbsent(ctx, w)
	end()
	if r.pulls != nil && r.stopped == nil {
		r.pulls.finish()
		w.files.Pull(r.pulls.lines)
	}
	s := r.summary()
	r.finish(s, w)
	return s, nil
}

func (r *run) announce() error {
	s := &Start{Judgement: r.judged, Checkpoint: r.opened}
	if r.ledger != nil {
		s.Warnings = slices.Concat(r.opened.Warnings, r.judged.Warnings)
		if err := r.judged.Refuse(r.Answer); err != nil && r.DryRun {
			s.Warnings = slices.Concat(s.Warnings, strings.Split(err.Error(), "\n"))
		}
	}
	if r.dry == nil {
		s.Warnings = slices.Concat(s.Warnings, r.warnings())
		s.Notes = r.remarks()
	}
	if r.Begin == nil {
		return nil
	}
	return r.Begin(s)
}

// finish completes the run's files and closes the checkpoint. The summary is last: it says what could not be written.
func (r *run) finish(s *report.Summary, w *writer) {
	r.leaveFleet(s)
	failpoint.At("before run is noted")
	if r.ledger != nil {
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
		// it knew nothing and was removed: no later run may miss it
		if s.Checkpoint.Sequence = r.ledger.Info().Sequence; gone {
			s.Checkpoint.ID, s.Checkpoint.Sequence = "", 0
		}
		if err := cmp.Or(noted, closed); err != nil {
			r.stopAfter(s, ledgerFailed(err))
		}
	}
	failpoint.At("before files are finished")
	w.files.Finish(s) // says in the summary itself what it could not write
}

// stopAfter notes in the summary that the run stopped, unless it has already stopped for a graver reason.
func (r *run) stopAfter(s *report.Summary, stop *Stop) {
	r.stopped = graver(r.stopped, stop)
	r.setOutcome(s)
}

// ledgerState is the checkpoint of a run, and what is known of it.
type ledgerState struct {
	ledger *checkpoint.Ledger    // nil for validate, and for a dry run without checkpoint
	opened checkpoint.Info       // what it knew before the first row; what it has lost by then does not come back
	judged *checkpoint.Judgement // by the witnesses, before a person is asked
	// by input: the columns and key that its first claim stores; nil if they are known, and once they are stored
	shapes []atomic.Pointer[checkpoint.Shape]
}
