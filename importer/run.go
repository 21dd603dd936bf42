package importer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/meter"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/failpoint"
	"leadferry/internal/spelling"
	"leadferry/leadapi"
)

var errNoIdentity = errors.New("the mapping has neither key nor external_id nor lead_id, so a changed row finds " +
	"no lead\n" +
	"hint: name the column that makes a row the same row on the next run: key: \"{column}\"")

// Run carries out a command, which Options name:
//
//   - import creates the leads of the inputs' rows and links their ExternalIDs.
//   - sync brings Status, ExternalID and Content of leads that are known in step with the inputs' rows, by updates of
//     what differs from what was last confirmed. Rows find their lead by key, by the lead's ID, or by ExternalID.
//   - reconcile compares each row with what was last confirmed of its lead and with what the service holds now. It
//     changes nothing on the service. What it saw is stored beside what was confirmed.
//   - validate reads, maps and checks every row of every input, runs the mapping's tests and sends nothing. It needs
//     neither service nor checkpoint, and ends before the inputs do for an interruption only.
//
// It returns the run's summary, also when the run ended early; an error means that nothing was sent. With DryRun import
// and sync plan against the checkpoint and send and write nothing.
func Run(ctx context.Context, o Options) (*report.Summary, error) { return newRun(o).execute(ctx) }

// run is one command, from its options to its summary.
type run struct {
	Options
	planner
	planFor func(*item) Step // of the planner: forImport, forSync, forReconcile or asNew
	matches bool             // rows find their lead by its IDs, too
	intake  *intake
	meter   *meter.Meter
	retrier *delivery.Retrier

	ledger *checkpoint.Ledger // nil for validate, and for a dry run without checkpoint
	// of each input: which columns, key and namespace make its rows leads; nil once the checkpoint knows that, which
	// stores it with the first claim
	shapes  []atomic.Pointer[checkpoint.Shape]
	client  *leadapi.Client     // nil: nothing is ever sent
	sender  Sender              // the same
	member  *member             // nil: the run is no worker of a fleet
	opened  checkpoint.Info     // what it knew before the first row; what it lacked then does not come back
	judged  *checkpoint.Verdict // by witnesses, before a person was asked
	stopped *Stop               // why the run ended before its input; the engine's lock guards it

	// of the collector, which counts how rows end; the engine's lock guards it
	tally  *tally
	dry    *dryRun           // of a run that sends nothing; else nil
	drift  *drift            // of a reconciliation; else nil
	pulls  *pulls            // nil: no pull file is wanted
	record func(*item) error // of the recorder: takes each row after its outcome is durable
	before *report.Before    // what needed attention in the run before
	began  time.Time         // of the run
	shown  time.Time         // when Live was told last
	unkept []report.Unkept   // as many as may be claimed at a time at most
}

func newRun(o Options) *run {
	r := &run{Options: o, meter: meter.New(time.Now()), shapes: make([]atomic.Pointer[checkpoint.Shape], len(o.Inputs))}
	r.planner = planner{
		o: &r.Options, conflicts: conflicts{o.Conflict, o.Mapping.Conflicts},
		digests: newDigester(checkpoint.NewDigester(nil)),
	}
	r.intake = &intake{options: &r.Options}
	r.tally = newTally(len(o.Inputs), o.Limits, slotsPerPlace*o.Concurrency)
	r.tally.place = r.intake.place
	if o.Command == "validate" || o.DryRun {
		r.dry, r.intake.caught = newDryRun(&r.Options, r.intake), true
	}
	r.matches = o.Command == "sync" || o.Command == "reconcile"
	r.intake.fields, r.intake.keepGoing = r.matches, o.Command == "validate"
	switch o.Command {
	case "sync":
		r.planFor, r.Require = r.forSync, o.Require || !o.Mapping.HasLeadID()
	case "reconcile":
		r.planFor, r.Require, r.since = r.forReconcile, true, time.Now().Add(-o.Reconciling.Fresh)
		r.drift = &drift{most: o.Reconciling.Sample}
	case "validate":
		r.planFor = asNew
	default:
		r.planFor = r.forImport
	}
	if o.Files.Pull != "" {
		r.pulls = newPulls(o.Mapping, &r.conflicts)
	}
	r.retrier = &delivery.Retrier{
		Breaker: delivery.NewBreaker(o.MaxWait, o.Concurrency, o.Rate), Retries: o.Retries,
		Resend: o.ResendOn, Retried: func() { r.meter.Retried() },
	}
	return r
}

// execute connects the run to service and checkpoint, and performs it.
func (r *run) execute(ctx context.Context) (*report.Summary, error) {
	if r.Command != "validate" && r.makes() {
		if err := r.Mapping.ForCreate(); err != nil {
			return nil, err
		}
	}
	if r.matches && r.Mapping.KeyForm() == "" && !r.Mapping.HasLeadID() {
		return nil, errNoIdentity
	}
	if r.Shard.Of > 1 && !r.Mapping.OneIdentity() {
		return nil, errManyIdentities
	}
	if err := r.intake.bind(); err != nil {
		return nil, err
	}
	switch {
	case r.Command == "validate":
		r.dry.examine()
		return r.perform(ctx)
	case !r.DryRun:
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
	if err := r.announce(); err != nil {
		return nil, err
	}
	r.began = time.Now() // a person may have been asked, who takes their time
	if r.meter = meter.New(r.began); r.dry == nil {
		parents, own := []string{report.RunsFolder}, r.Files.Dir
		if own != "" {
			parents = append(parents, filepath.Dir(filepath.Clean(own)))
		}
		r.before = report.ReadBefore(parents, own, r.named())
	}
	rec, err := r.openFiles()
	if err != nil {
		return nil, err
	}
	end := r.member.start(ctx) // signing in keeps to the rate, too
	if r.client != nil {
		if err := r.noteStart(context.Background()); err != nil {
			r.stopped = ledgerFailed(err)
		}
	}
	if r.stopped == nil {
		newEngine(ctx, r).takeAll()
	}
	if err := rec.close(); err != nil {
		r.stopped = graver(r.stopped, filesFailed(err))
	}
	r.findAbsent(ctx, rec)
	end()
	if r.pulls != nil && r.stopped == nil {
		r.pulls.settle()
		if err := rec.files.Pull(r.pulls.lines); err != nil {
			r.stopped = filesFailed(err)
		}
	}
	s := r.summary()
	r.finish(s, rec)
	return s, nil
}

// announce says what is about to happen. The caller may still refuse it.
func (r *run) announce() error {
	s := &Start{Target: r.Target, Verdict: r.judged, Checkpoint: r.opened}
	if r.ledger != nil {
		s.Warnings = slices.Concat(r.opened.Warnings, r.judged.Warnings)
		if err := r.judged.Refuse(r.Answer); err != nil && r.DryRun {
			s.Warnings = append(s.Warnings, err.Error())
		}
	}
	if r.dry == nil {
		s.Warnings = slices.Concat(s.Warnings, r.warnings(), r.shared())
		if s.Notes = r.remarks(); r.drift != nil {
			s.Notes = append(s.Notes, r.drift.cost)
		}
	}
	s.Warnings = append(s.Warnings, r.Warnings...)
	if r.Begin == nil {
		return nil
	}
	return r.Begin(s)
}

// finish completes the run's files and closes the checkpoint. The summary is last: it says what could not be written.
func (r *run) finish(s *report.Summary, rec *recorder) {
	for _, in := range s.Inputs {
		if in.Changed {
			r.Log.Warn("the input changed while it was read", "file", in.Path)
		}
	}
	r.leaveFleet(s)
	failpoint.At("before run is noted")
	if r.ledger != nil {
		if err := r.closeLedger(s); err != nil {
			r.stopAfter(s, ledgerFailed(err))
		}
	}
	failpoint.At("before files are finished")
	if rec.files != nil {
		rec.files.Finish(s) // says in the summary itself what it could not write
	}
}

// stopAfter makes the summary say that the run stopped after all, unless it did for a graver reason.
func (r *run) stopAfter(s *report.Summary, stop *Stop) {
	r.stopped = graver(r.stopped, stop)
	r.verdict(s)
}

// summary is the figures of the run (INTERFACE, "Files that a run writes").
func (r *run) summary() *report.Summary {
	s := r.soFar()
	if r.dry != nil {
		r.dry.findRepeats()
	}
	r.verdict(s)
	if r.ledger != nil {
		known := r.ledger.Info()
		s.Checkpoint.ID, s.Checkpoint.Sequence = known.ID, known.Sequence
	}
	for i, f := range r.Inputs {
		changed, in := f.Changed(), f.Info()
		s.Inputs[i] = report.Input{
			Path: in.Path, Format: in.Format, Bytes: in.Bytes, Rows: r.tally.rows[i], Blank: in.Blank,
			SHA256: in.SHA256, Changed: changed, Unread: r.Shard.Of < 2 && in.Rows > r.tally.rows[i],
		}
	}
	if r.tally.limits.doubts(0) {
		s.Standing = r.tally.limits.Standing
	}
	if r.dry != nil {
		s.Checks = r.dry.found()
	} else {
		s.Asks = &report.Attentions{Rows: s.Attention(), New: r.tally.news + r.tally.outcomes[Pending]}
		if r.before != nil {
			s.Asks.Since = r.before.At
		}
		if r.drift == nil {
			s.InService = &r.tally.service
		}
	}
	s.Notes, s.Unkept = r.notes(), r.unkept
	if r.pulls != nil {
		var note string
		if s.Wordless, note = r.pulls.left(); note != "" {
			s.Notes = append(s.Notes, note)
		}
	}
	return s
}

// named is a summary of nothing but what run it is of.
func (r *run) named() *report.Summary {
	s := &report.Summary{
		RunID: r.RunID, Command: r.Command, Version: r.Version, DryRun: r.DryRun || r.ledger == nil, Flags: r.Flags,
		Resent: r.ResendInDoubt && !r.DryRun, Mapping: r.MappingFile, Target: report.Target(r.Target),
	}
	if r.Terms != nil {
		s.Fleet, s.Shard = r.Terms.Fleet, fmt.Sprintf("%d/%d", r.Shard.Index, r.Shard.Of)
	}
	return s
}

// soFar is the summary of a run that goes on. It shares no memory with the run, and reads no file.
func (r *run) soFar() *report.Summary {
	s, now := r.named(), time.Now()
	took := now.Sub(r.began)
	s.Outcome, s.StartedAt, s.FinishedAt = report.Running, r.began.UTC(), now.UTC()
	s.DurationS, s.DroppedValues = took.Seconds(), r.tally.dropped
	s.Checkpoint = report.Checkpoint{Path: r.opened.Path, New: r.opened.New, Leads: r.opened.Leads}
	for i, name := range r.intake.paths {
		s.Inputs = append(s.Inputs, report.Input{Path: name, Rows: r.tally.rows[i]})
	}
	if took > 0 {
		s.ThroughputRowsPerS = float64(r.tally.ended()) / took.Seconds()
	}
	r.sample()
	r.meter.Report(s)
	_, s.PeakInFlight = r.retrier.Breaker.InFlight()
	s.Paused = r.retrier.Breaker.Paused()
	r.tally.report(s)
	if r.drift != nil {
		r.drift.report(s, r.ReadByExternalID)
	}
	return s
}

// verdict says in the summary how the run ended, and its exit code (INTERFACE, "Exit status").
func (r *run) verdict(s *report.Summary) {
	s.Outcome, s.ExitCode = "complete", CodeComplete
	switch bad := r.badRows(); {
	case r.dry != nil && r.dry.fails(), bad > 0 && !r.Tolerate.covers(bad, r.tally.counts.Read),
		r.pulls != nil && len(r.pulls.wordless) > 0, slices.ContainsFunc(r.Inputs, (*source.File).Changed):
		s.Outcome, s.ExitCode = "attention", CodeAttention
	case bad > 0:
		s.Outcome = "attention"
	}
	if r.tally.outcomes[InDoubt] > 0 {
		s.ExitCode = CodeInDoubt
	}
	if stop := r.stopped; stop != nil {
		s.Outcome, s.StopReason, s.Hint, s.Same = "stopped", stop.Reason, s.Holding(stop.Hint), stop.Same
		if stop.Code == CodeInterrupted {
			s.Outcome = "interrupted"
		}
		if s.ExitCode < stop.Code || stop.replacesCode(s.ExitCode) {
			s.ExitCode = stop.Code
		}
	}
}

// badRows is how many rows need attention. With --strict, doubtful rows count too.
func (r *run) badRows() int {
	bad := r.tally.attention(r.sender == nil)
	if r.OnlyNew && r.dry == nil {
		bad = r.tally.news + r.tally.outcomes[Pending]
	}
	if r.dry != nil && r.Strict {
		bad += r.dry.repeated.Same.Rows + r.dry.repeated.Alike.Rows + r.dry.suspect.Count
	}
	return bad
}

// warnings are those of the mapping file, one line each.
func (r *run) warnings() []string {
	var list []string
	for _, w := range slices.Concat(r.Mapping.Warnings, r.intake.doubts) {
		text := fmt.Sprintf("%s:%d:%d: %s: %s", w.File, w.Line, w.Column, w.Text, w.Hint)
		list = append(list, strings.TrimSuffix(text, ": "))
	}
	return list
}

// shared warns of inputs that another run is reading now. If it used the same checkpoint, it would have waited for this
// run: with another checkpoint, each row may become two leads.
func (r *run) shared() []string {
	if r.Terms != nil { // its other workers read the same inputs
		return nil
	}
	var texts []string
	for _, f := range r.Inputs {
		if !f.Claim() {
			texts = append(texts, f.Info().Path+
				": another run is reading this file, with another checkpoint: if it sends to the same service, every "+
				"lead is made twice (Ctrl-C stops this run in order)")
		}
	}
	return texts
}

// remarks are what mapping and headers show before the first row.
func (r *run) remarks() []string {
	var notes []string
	if r.Mapping.KeyForm() == "" && !r.matches {
		notes = append(notes, "The mapping has no key and no external_id, so a row is known by its own data: "+
			"correcting a row makes another lead.")
	}
	if guesses := r.Mapping.Unconfirmed; len(guesses) > 0 && r.dry == nil {
		notes = append(notes, fmt.Sprintf("The mapping holds %s that nobody has confirmed, the first on line %d: "+
			"validate names them.", english.Plural(len(guesses), "guess", "guesses"), guesses[0].Line))
	}
	nameless := func(name string) bool { return strings.TrimSpace(name) == "" }
	if names := slices.DeleteFunc(slices.Clone(r.intake.unused), nameless); len(names) > 0 {
		notes = append(notes, fmt.Sprintf("No part of the mapping uses %s %s.", columns(names),
			spelling.List(names, mostListed, nil)))
	}
	if names := r.Mapping.SearchedOnly(); len(names) > 0 && r.makes() {
		notes = append(notes, fmt.Sprintf("A locator searches by %s %s, but no content key holds %s: the service "+
			"asks for the parts of an address in the content too.",
			columns(names), spelling.List(names, mostListed, nil), english.PluralWord(len(names), "it", "them")))
	}
	return notes
}

func columns(names []string) string {
	return "the " + english.PluralWord(len(names), "column", "columns")
}

const mostListed = 20 // names in a remark

// notes are remarks for people. A run that sends nothing also shows here what other runs say at their start.
func (r *run) notes() []string {
	var notes []string
	if r.dry != nil {
		notes = slices.Concat(r.warnings(), r.remarks(), r.dry.notes())
	}
	if bad := r.badRows(); bad > 0 && r.Tolerate.covers(bad, r.tally.counts.Read) {
		notes = append(notes,
			fmt.Sprintf("Rows that are not good, but tolerated: %d (--tolerate allows %s).", bad, r.Tolerate))
	}
	notes = append(notes, r.tally.notes()...)
	if r.drift != nil && r.drift.named == nil && r.ledger != nil {
		notes = append(notes, absentUntold)
	}
	for i, f := range r.Inputs {
		for _, text := range f.Warnings() {
			notes = append(notes, r.intake.paths[i]+": "+text)
		}
	}
	return notes
}
