package importer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/internal/failpoint"
	"leadferry/leadapi"
)

// signInWait bounds how long a run waits for the first token.
const signInWait = time.Minute

// Import creates the leads of the inputs' rows and links their ExternalIDs. It
// returns the run's summary, also when the run ended early; an error means that
// nothing was sent. With DryRun it plans against the checkpoint and sends and
// writes nothing.
func Import(ctx context.Context, o Options) (*report.Summary, error) {
	if err := o.Mapping.ForCreate(); err != nil {
		return nil, err
	}
	return newImport(o).carryOut(ctx)
}

func newImport(o Options) *engine { return newEngine(o, creating(&o)) }

func creating(o *Options) importPlanner {
	return importPlanner{
		retryRejected: o.RetryRejected, resendDoubt: o.ResendInDoubt, ownData: o.Mapping.KeyFrom() == "row",
		ignoreChanged: o.IgnoreChanged, updateChanged: o.UpdateChanged,
	}
}

// Sync brings Status, ExternalID and Content of leads that are known in step with the
// inputs' rows, by updates of what differs from what was last confirmed. Rows find
// their lead by key, by the lead's ID, or by ExternalID. It returns as Import does.
func Sync(ctx context.Context, o Options) (*report.Summary, error) {
	if o.Missing == MissingCreate {
		if err := o.Mapping.ForCreate(); err != nil {
			return nil, err
		}
	}
	if o.Mapping.KeyFrom() == "row" && !o.Mapping.HasLeadID() {
		return nil, errNoIdentity
	}
	o.Require = o.Require || !o.Mapping.HasLeadID()
	return newSync(o).carryOut(ctx)
}

func newSync(o Options) *engine {
	e := newEngine(o, syncPlanner{importPlanner: creating(&o), missing: o.Missing, holdReopen: o.HoldReopen})
	e.matches, e.rows.fields = true, true
	return e
}

var errNoIdentity = errors.New("the mapping has neither key nor external_id nor lead_id, so a changed row finds no lead\n" +
	"hint: name the column that makes a row the same row on the next run: key: \"{column}\"")

// carryOut connects the engine to service and checkpoint and performs the run.
func (e *engine) carryOut(ctx context.Context) (*report.Summary, error) {
	o := &e.Options
	if err := e.rows.bind(); err != nil {
		return nil, err
	}
	if !o.DryRun {
		e.Client.Observe, e.Client.Leave = e.meter.Observe, e.retrier.breaker.leaves
		client, err := leadapi.New(e.Client)
		if err != nil {
			return nil, err
		}
		defer client.Close()
		e.client, e.sender = client, &metered{client, e.meter}
		e.retrier.reach = client.Reach
	}
	db, err := openLedger(o, e.hungry)
	if err != nil {
		return nil, err
	}
	if o.DryRun {
		e.rehearsal = newRehearsal(o)
	}
	if db != nil {
		e.db = db
		e.keepIn(newCalls(ctx, db))
		defer db.Drop() // of a run that was refused; else it is closed by then
		if err := e.compareShapes(); err != nil {
			return nil, err
		}
	}
	return e.perform(ctx)
}

// Validate reads, maps and checks every row of every input, runs the mapping's tests
// and sends nothing. It needs neither service nor checkpoint, and ends before the
// inputs do for an interruption only.
func Validate(ctx context.Context, o Options) (*report.Summary, error) {
	e := newEngine(o, validatePlanner{})
	e.rows.tough = true
	if err := e.rows.bind(); err != nil {
		return nil, err
	}
	e.rehearsal = newRehearsal(&o)
	e.rehearsal.examine(o.Mapping)
	return e.perform(ctx)
}

func newEngine(o Options, p Planner) *engine {
	e := &engine{Options: o, planner: p, meter: newMeter()}
	e.rows = &reader{inputs: o.Inputs, mapping: o.Mapping, runID: o.RunID, limit: o.Limit}
	e.tally = newTally(len(o.Inputs), o.Limits, slotsPerWorker*o.Concurrency)
	e.retrier = &retrier{breaker: newBreaker(o.MaxWait, o.Concurrency, o.Rate), retries: o.Retries, resend: o.ResendOn, retried: e.meter.retried}
	return e
}

// keepIn gives the engine its ledger.
func (e *engine) keepIn(l Ledger) {
	e.ledger, e.digests, e.rows.digests = l, newDigester(l), newDigester(l)
}

// openLedger opens the checkpoint; a dry run does without one that is not there.
func openLedger(o *Options, idle func() bool) (*checkpoint.Ledger, error) {
	if !o.DryRun && !o.Require {
		if err := os.MkdirAll(filepath.Dir(o.Checkpoint), 0o700); err != nil {
			return nil, fmt.Errorf("make the checkpoint's folder: %w\nhint: name another file with --checkpoint", err)
		}
	}
	store, err := o.Open(o.Require, o.DryRun)
	if o.DryRun && !o.Require && errors.Is(err, checkpoint.ErrGone) {
		o.Log.Warn(err.Error())
	}
	if o.DryRun && !o.Require && errors.Is(err, checkpoint.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return checkpoint.NewLedger(store, checkpoint.Gathering{Slots: slotsPerWorker * o.Concurrency, Idle: idle}), nil
}

// perform tells what is about to happen, opens the run's files, signs in, runs the
// engine and closes the files with the summary.
func (e *engine) perform(ctx context.Context) (*report.Summary, error) {
	started := time.Now()
	if err := e.begin(); err != nil {
		return nil, err
	}
	rec, err := e.record()
	if err != nil {
		return nil, err
	}
	if e.client == nil || e.noteStart(started) && e.signIn(ctx) {
		e.run(ctx)
	}
	s := e.summary(started)
	e.finishRun(s, rec)
	return s, nil
}

// record opens the run's files; nil where none are wanted.
func (e *engine) record() (*recorder, error) {
	if !e.Files.Wanted() {
		return nil, nil
	}
	var own *ownColumns
	if e.OwnColumns {
		own = newOwnColumns(e.Inputs)
		e.Files.Columns = own.names
	}
	files, err := report.OpenRun(e.Files)
	if err != nil {
		return nil, fmt.Errorf("%w\nhint: name another place with --out, --results, --rejects or --summary", err)
	}
	rec := newRecorder(files, e.Inputs, &e.rows.items, own)
	e.recorder = rec
	return rec, nil
}

// begin announces the run; the caller may still refuse it.
func (e *engine) begin() error {
	s := &Start{Target: e.Target}
	if e.db != nil {
		known := e.db.Info()
		s.Checkpoint, s.New, s.Leads, s.InDoubt = known.Path, known.New, known.Leads, known.InDoubt
		s.Anew, s.Warnings = known.Anew, known.Warnings
		if f, ok := e.db.Store.(interface{ Checked() <-chan struct{} }); ok {
			s.Checked = f.Checked()
		}
		if s.Anew != "" {
			s.Warnings = slices.Concat(s.Warnings, []string{"a new checkpoint is begun; the one before " + s.Anew})
		}
	}
	if e.rehearsal == nil {
		s.Warnings = slices.Concat(s.Warnings, e.warnings())
		s.Notes = e.remarks()
		s.Warnings = append(s.Warnings, e.shared()...)
	}
	s.Warnings = append(s.Warnings, e.Warnings...)
	e.opened = s
	if e.Begin == nil {
		return nil
	}
	return e.Begin(s)
}

// unfinished is the outcome of a run that has not ended, or was killed.
const unfinished = "unfinished"

// noteStart makes the checkpoint list the run from its beginning, so that one that
// is killed is seen too.
func (e *engine) noteStart(started time.Time) bool {
	err := e.db.PutRun(context.Background(), checkpoint.RunInfo{ID: e.RunID, Command: e.Command, Started: started, Outcome: unfinished})
	if err != nil {
		e.stopped = ledgerFailed(err)
	}
	return err == nil
}

// signIn gets the first token, so that a wrong secret is known before the first row.
func (e *engine) signIn(ctx context.Context) bool {
	waiting, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-e.Interrupt:
			cancel()
		case <-waiting.Done():
		}
	})
	defer watch.Wait()
	defer cancel()
	e.retrier.stopping, e.retrier.breaker.maxWait = waiting, min(signInWait, e.MaxWait)
	_, err := e.retrier.deliver(ctx, nil, e.client.SignIn)
	e.retrier.breaker.maxWait = e.MaxWait
	var stop *Stop
	switch {
	case err == nil:
		return true
	case errors.As(err, &stop):
		e.stopped = stop
	case waiting.Err() != nil:
		e.stopped = interrupted()
	default:
		e.stopped = &Stop{Reason: "sign-in failed: " + err.Error(), Code: CodeStopped, Err: err}
	}
	return false
}

// finishRun completes the run's files and closes the checkpoint. What the disk refuses is
// said in the summary, which comes last, and in the run's history where it can be.
func (e *engine) finishRun(s *report.Summary, rec *recorder) {
	for _, in := range s.Inputs {
		if in.Changed {
			e.Log.Warn("the input changed while it was read", "file", in.Path)
		}
	}
	if rec != nil {
		if err := rec.close(); err != nil {
			halt(s, filesFailed(err))
		}
	}
	failpoint.At("before run is noted")
	if e.db != nil {
		if err := e.closeLedger(s); err != nil {
			halt(s, ledgerFailed(err))
		}
	}
	failpoint.At("before files are finished")
	if rec != nil {
		rec.files.Finish(s) // says in the summary itself what it could not write
	}
}

// closeLedger notes how the run ended and closes the checkpoint, which may still write.
func (e *engine) closeLedger(s *report.Summary) error {
	var err error
	if e.sender != nil {
		err = e.db.PutRun(context.Background(), runInfo(s))
	}
	end := func() (bool, error) { return false, e.db.Close() }
	if e.stopped != nil {
		end = e.db.Drop
	}
	gone, closed := end()
	if err == nil {
		err = closed
	}
	if s.Checkpoint.Sequence = e.db.Info().Sequence; gone { // no later one is another in its place
		s.Checkpoint.ID, s.Checkpoint.Sequence = "", 0
	}
	return err
}

// halt makes the summary of a run that ended better say that it did not after all.
func halt(s *report.Summary, stop *Stop) {
	if stop.outranks(s.ExitCode) {
		s.Outcome, s.StopReason, s.ExitCode, s.Hint, s.Same = "stopped", stop.Reason, stop.Code, stop.Hint, stop.Same
	}
}

func runInfo(s *report.Summary) checkpoint.RunInfo {
	return checkpoint.RunInfo{
		ID: s.RunID, Command: s.Command, Started: s.StartedAt, Finished: s.FinishedAt,
		Outcome: s.Outcome, Counts: s.Rows.ByName(),
	}
}

// metered counts the lead requests in flight.
type metered struct {
	Sender
	meter *meter
}

func (m *metered) Create(ctx context.Context, r *leadapi.CreateRequest) (*leadapi.Created, error) {
	defer m.meter.enter()()
	return m.Sender.Create(ctx, r)
}

func (m *metered) Update(ctx context.Context, leadID string, r *leadapi.UpdateRequest) (*leadapi.Lead, error) {
	defer m.meter.enter()()
	return m.Sender.Update(ctx, leadID, r)
}
