package importer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"leadferry/checkpoint"
	"leadferry/importer/report"
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
	e := newEngine(o, importPlanner{
		retryRejected: o.RetryRejected, resendDoubt: o.ResendInDoubt, ignoreChanged: o.IgnoreChanged,
	})
	if err := e.rows.bind(); err != nil {
		return nil, err
	}
	if !o.DryRun {
		e.Client.Observe = e.meter.Observe
		client, err := leadapi.New(e.Client)
		if err != nil {
			return nil, err
		}
		defer client.Close()
		e.client, e.sender = client, &metered{client, e.meter}
	}
	db, err := openLedger(&o)
	if err != nil {
		return nil, err
	}
	if db != nil {
		e.ledger, e.db, e.rows.digest = db, db, digestOf(db)
	}
	s, err := e.perform(ctx)
	if db == nil {
		return s, err
	}
	if cerr := db.Close(); cerr != nil && s != nil {
		halt(s, ledgerFailed(cerr))
	}
	return s, err
}

// Validate reads, maps and checks every row and sends nothing. It needs neither
// service nor checkpoint.
func Validate(ctx context.Context, o Options) (*report.Summary, error) {
	e := newEngine(o, validatePlanner{})
	if err := e.rows.bind(); err != nil {
		return nil, err
	}
	return e.perform(ctx)
}

func newEngine(o Options, p Planner) *engine {
	e := &engine{Options: o, planner: p, meter: newMeter()}
	e.rows = &reader{inputs: o.Inputs, mapping: o.Mapping, runID: o.RunID, limit: o.Limit}
	e.tally = newTally(len(o.Inputs), o.Limits, slotsPerWorker*o.Concurrency)
	e.courier = newCourier(&o, o.MaxWait, e.meter)
	return e
}

func newCourier(o *Options, maxWait time.Duration, m *meter) *courier {
	c := &courier{gate: newGate(maxWait), retries: o.Retries, resend: o.ResendOn, retried: m.retried}
	if o.Rate > 0 {
		c.limiter = rate.NewLimiter(rate.Limit(o.Rate), 1)
	}
	return c
}

// openLedger opens the checkpoint; a dry run does without one that is not there.
func openLedger(o *Options) (*checkpoint.DB, error) {
	opening := o.Opening
	opening.ReadOnly = o.DryRun
	if !o.DryRun && !opening.Require {
		if err := os.MkdirAll(filepath.Dir(o.Checkpoint), 0o700); err != nil {
			return nil, fmt.Errorf("make the checkpoint's folder: %w\nhint: name another file with --checkpoint", err)
		}
	}
	db, err := checkpoint.Open(o.Checkpoint, o.Target, opening)
	if o.DryRun && !opening.Require && errors.Is(err, checkpoint.ErrMissing) {
		return nil, nil
	}
	return db, err
}

// perform tells what is about to happen, opens the run's files, signs in, runs the
// engine and closes the files with the summary.
func (e *engine) perform(ctx context.Context) (*report.Summary, error) {
	started := time.Now()
	if e.sender == nil && !e.NoRepeats {
		e.repeats = newRepeats()
	}
	if err := e.begin(); err != nil {
		return nil, err
	}
	var rec *recorder
	if e.Files != (report.Files{}) {
		files, err := report.OpenRun(e.Files)
		if err != nil {
			return nil, fmt.Errorf("%w\nhint: name another place with --out, --results, --rejects or --summary", err)
		}
		rec = newRecorder(files, e.Inputs)
		e.recorder = rec
	}
	if e.client == nil || e.noteStart(started) && e.signIn(ctx) {
		e.run(ctx)
	}
	s := e.summary(started)
	e.finishFiles(s, rec)
	return s, nil
}

// begin announces the run; the caller may still refuse it.
func (e *engine) begin() error {
	s := &Start{Target: e.Target, KeyFrom: e.Mapping.KeyFrom(), Unused: e.rows.unused()}
	if e.db != nil {
		s.Checkpoint, s.New, s.Leads, s.InDoubt = e.db.Path(), e.db.New(), e.db.Leads(), e.db.InDoubt()
		s.Warnings = e.db.Warnings()
	}
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
	err := e.db.AddRun(checkpoint.RunInfo{ID: e.RunID, Command: e.Command, Started: started, Outcome: unfinished})
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
	c := newCourier(&e.Options, min(signInWait, e.MaxWait), e.meter)
	c.stopping = waiting
	_, err := c.deliver(ctx, true, e.client.SignIn)
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

// finishFiles completes the run's files; where the disk refuses them, the summary
// says so and the checkpoint keeps the truth.
func (e *engine) finishFiles(s *report.Summary, rec *recorder) {
	for _, in := range s.Inputs {
		if in.Changed {
			e.Log.Warn("the input changed while it was read", "file", in.Path)
		}
	}
	if e.db != nil && e.sender != nil {
		if err := e.db.AddRun(runInfo(s)); err != nil && e.stopped == nil {
			halt(s, ledgerFailed(err))
		}
	}
	if rec == nil {
		return
	}
	if err := rec.close(); err != nil && e.stopped == nil {
		halt(s, filesFailed(err))
	}
	rec.files.Finish(s) // says in the summary itself what it could not write
}

// halt makes the summary of a run that ended well say that it did not after all.
func halt(s *report.Summary, stop *Stop) {
	if s.ExitCode == CodeInterrupted {
		return
	}
	s.Outcome, s.StopReason, s.ExitCode, s.Hint = "stopped", stop.Reason, stop.Code, stop.Hint
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
