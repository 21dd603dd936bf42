package importer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/findings"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/rowkey"
	"leadferry/internal/spelling"
)

// collector counts how rows end, hands them to the files and makes the summary. The engine's lock guards it.
type collector struct {
	tally    *tally
	limiter  *limiter
	dry      *dryRun             // nil, unless the run sends nothing
	drift    *drift              // nil, unless it is a reconciliation
	pulls    *pulls              // nil: no pull file is wanted
	handOver func(*item) error   // writer.add: takes each row after its outcome is durable
	before   *report.LastRejects // what needed attention in the run before
	began    time.Time           // when the run began
	liveAt   time.Time           // when Live was last called, once a second
	unkept   []report.Unkept     // leads whose ID was not stored; at most one for each claim that may be open
}

// countRead counts a row that was read. A reconciliation also notes the lead that the row names.
func (r *run) countRead(it *item) {
	if r.drift != nil && r.drift.named != nil { // by the key of its lead and by the row's
		r.drift.named[it.entry.State.HasLead()].Add(it.entry.Key)
		if it.entry.Key != it.rec.Key {
			r.drift.named[false].Add(it.rec.Key)
		}
	}
	r.tally.rows[it.input]++
	r.tally.counts.Read++
	r.limiter.counts.Read++
	if it.faults == nil {
		r.tally.dropped += len(it.rec.Dropped)
	}
	if r.dry != nil {
		r.dry.read(it)
	}
}

// collect counts a row that has ended, and returns why the run ends, or nil. From then on the row is the writer's.
func (r *run) collect(it *item, how ending) *Stop {
	it.ending = how
	if r.drift != nil && it.outcome != Pending {
		r.drift.verdicts[it.found.verdict]++
	}
	if r.pulls != nil {
		r.pulls.add(it)
	}
	if it.outcome.Attention() && r.dry == nil {
		rej := rejectOf(it)
		before := r.before.Since(&rej)
		it.since = cmp.Or(before, spelling.Time(r.began, time.RFC3339))
		if before == "" || it.outcome == InDoubt || it.outcome == Partial || it.outcome == Failed {
			r.tally.news++
		}
	}
	if it.unkept {
		namespace, key := rowkey.Split(it.rec.Key)
		r.unkept = append(r.unkept, report.Unkept{Key: key, Namespace: namespace, LeadID: it.entry.LeadID, RunID: r.RunID})
	}
	r.tally.count(it, r.intake.place(it))
	why := r.limiter.count(it)
	if r.dry != nil {
		why = nil
	}
	if err := r.handOver(it); err != nil && why == nil {
		why = delivery.StopFor(report.Unwritten(err))
	}
	return why
}

func (r *run) notePace() {
	r.meter.Sample(time.Now(), r.tally.counts.Ended(), r.breaker.Paused() != "")
}

// tally counts a run for its summary. Only the engine, under its lock, writes it.
type tally struct {
	counts  report.RowCounts
	rows    []int // rows read, by input
	dropped int   // values that on_invalid left out
	service report.InService
	news    int // rows that count as new (--attention new), except pending ones

	reasons       *findings.Kinds
	organizations map[report.Organization]int
	moves         map[report.Transition]int // leads whose status the run changed, by change
	doubts        []report.Doubt            // the first ones, with what a person needs to look them up
	remarks       [remarkCount]int
}

func newTally(inputs int) *tally {
	return &tally{
		rows: make([]int, inputs), reasons: findings.NewKinds(),
		organizations: map[report.Organization]int{}, moves: map[report.Transition]int{},
	}
}

func (t *tally) count(it *item, at report.Place) {
	*t.counts.Of(it.outcome)++
	if it.text != "" {
		text := it.text
		if strings.ContainsAny(text, "0123456789") { // maybe a place or a time, which differ in each row
			text = spelling.WithoutPlaces(text)
		}
		t.reasons.Add(at, findings.Kind{Outcome: it.outcome.String(), Text: text}, text)
	}
	e := &it.entry
	if it.outcome == InDoubt {
		const lost = checkpoint.ReasonIncomplete
		it.remarks[rowHeld] = e.Reason == lost || it.text == doubtReason(lost, 0)
		it.remarks[answeredDoubt] = it.row.Answered
		if len(t.doubts) < report.MostDoubts {
			t.doubts = append(t.doubts, report.Doubt{
				Place: at, SentAt: e.Updated, OrganizationID: OrganizationOf(e), Reason: Explain(e),
				RequestID: e.RequestID,
			})
		}
	}
	if s := &t.service; it.outcome != Skipped {
		s.Of++
		switch {
		case it.outcome == InDoubt || e.State == checkpoint.InDoubt:
			s.InDoubt++
		case e.State.HasLead():
			s.Rows++
		default:
			s.None++
		}
	}
	if made := it.outcome == Created || it.outcome == Partial; made && it.attempts > 0 && e.Organization != "" {
		of := report.Organization{ID: e.Organization, Location: e.Location}
		report.CountLead(t.organizations, of, report.Organization{ID: "others"})
	}
	if m := it.moved; m.From != m.To {
		t.moves[m]++
	}
	for i, is := range it.remarks {
		if is {
			t.remarks[i]++
		}
	}
}

func (t *tally) notes() (notes spelling.Texts) {
	for i, rows := range t.remarks {
		notes.Add(rows > 0, remarkNotes[i], rows)
	}
	return notes
}

func (r *run) summary() *report.Summary {
	s := r.soFar()
	if r.dry != nil {
		s.Checks = r.dry.found()
	}
	r.setOutcome(s)
	if r.ledger != nil {
		known := r.ledger.Info()
		s.Checkpoint.ID, s.Checkpoint.Sequence = known.ID, known.Sequence
	}
	for i, f := range r.Inputs {
		changed, in := f.Changed(), f.Info()
		s.Inputs[i] = report.Input{
			Path: in.Path, Format: in.Format, Bytes: in.Bytes, Rows: r.tally.rows[i], Blank: in.Blank,
			SHA256: in.SHA256, Changed: changed, Unread: !in.Whole || r.Shard.Of < 2 && in.Rows > r.tally.rows[i],
		}
	}
	if r.Limits.Doubts(0) {
		s.Standing = r.Limits.Standing
	}
	if r.dry == nil {
		s.Asks = &report.Attentions{Rows: s.Attention(), New: r.tally.news + r.tally.counts.Pending}
		if r.before != nil {
			s.Asks.Since = r.before.At
		}
		if r.drift == nil {
			s.InService = &r.tally.service
		}
	}
	if s.Notes, s.Unkept = r.notes(s), r.unkept; r.pulls != nil {
		s.Pulled, s.Wordless = len(r.pulls.lines), r.pulls.lacking
	}
	return s
}

// summaryHead returns a summary that only says which run it belongs to.
func (r *run) summaryHead() *report.Summary {
	s := &report.Summary{
		RunID: r.RunID, Command: r.Command, Version: r.Version, DryRun: r.DryRun || r.ledger == nil, Flags: r.Flags,
		Resent: r.ResendInDoubt && !r.DryRun, Mapping: r.MappingFile, Target: report.Target(r.Target),
	}
	if r.Terms != nil {
		s.Fleet, s.Shard = r.Terms.Fleet, fmt.Sprintf("%d/%d", r.Shard.Index, r.Shard.Of)
	}
	return s
}

// soFar returns the summary of a run that goes on. It shares no memory with the run, and reads no file.
func (r *run) soFar() *report.Summary {
	s, now := r.summaryHead(), time.Now()
	took := now.Sub(r.began)
	s.Outcome, s.StartedAt, s.FinishedAt = report.Running, r.began.UTC(), now.UTC()
	s.DurationS, s.DroppedValues = took.Seconds(), r.tally.dropped
	s.Checkpoint = report.Checkpoint{Path: r.opened.Path, New: r.opened.New, Leads: r.opened.Leads}
	for i, name := range r.intake.paths {
		s.Inputs = append(s.Inputs, report.Input{Path: name, Rows: r.tally.rows[i]})
	}
	s.ThroughputRowsPerS = float64(r.tally.counts.Ended()) / max(took.Seconds(), 1e-3)
	r.notePace()
	r.meter.Report(s)
	s.InFlight, s.PeakInFlight = r.breaker.InFlight()
	s.Paused = r.breaker.Paused()
	t := r.tally
	s.Rows, s.Sent, s.Errors, s.InDoubt = t.counts, r.limiter.counts.Sent, t.reasons.List(), slices.Clone(t.doubts)
	s.Organizations, s.Transitions = report.Organizations(t.organizations), report.Transitions(t.moves)
	if r.drift != nil {
		r.drift.report(s, r.ReadByExternalID)
	}
	return s
}

func (r *run) setOutcome(s *report.Summary) {
	s.Outcome, s.ExitCode = "complete", report.CodeComplete
	switch bad := r.badRows(s); {
	case r.dry != nil && r.dry.fails(), bad > 0 && !r.Tolerate.Covers(bad, r.tally.counts.Read),
		r.pulls != nil && r.pulls.lacking > 0, slices.ContainsFunc(r.Inputs, (*source.File).Changed):
		s.Outcome, s.ExitCode = "attention", report.CodeAttention
	case bad > 0:
		s.Outcome = "attention"
	}
	if r.tally.counts.InDoubt > 0 {
		s.ExitCode = report.CodeInDoubt
	}
	if stop := r.stopped; stop != nil {
		s.Outcome, s.StopReason, s.Hint, s.Same = "stopped", stop.Reason, s.Holding(stop.Hint), stop.Same
		if stop.Code == report.CodeInterrupted {
			s.Outcome = "interrupted"
		}
		s.ExitCode = report.WorseExitCode(s.ExitCode, stop.Code)
	}
}

// badRows returns how many rows need attention: with --attention new only new ones, with --strict doubtful ones, too.
func (r *run) badRows(s *report.Summary) int {
	bad := s.Attention()
	if r.OnlyNew && r.dry == nil {
		bad = r.tally.news + r.tally.counts.Pending
	}
	if r.dry != nil && r.Strict {
		bad += r.dry.repeated.Same.Rows + r.dry.repeated.Alike.Rows + r.dry.suspect
	}
	return bad
}

func (r *run) warnings() (list spelling.Texts) {
	for _, w := range slices.Concat(r.Mapping.Warnings, r.intake.doubts) {
		list.Add(true, "%s:%d:%d: %s", w.File, w.Line, w.Column, strings.TrimSuffix(w.Text+": "+w.Hint, ": "))
	}
	return list
}

// remarks returns notes about the mapping and the headers, which are known before the first row.
func (r *run) remarks() (notes spelling.Texts) {
	notes.Add(r.Mapping.KeyForm() == "" && !r.matches, "The mapping has no key and no external_id, so a row is known "+
		"by its own data. Correct it in the rejects file, which names its key: elsewhere it becomes another lead.")
	if guesses := r.Mapping.Unconfirmed; len(guesses) > 0 {
		notes.Add(r.dry == nil, "The mapping holds %s that nobody has confirmed, the first on line %d: validate names "+
			"them.", english.Plural(len(guesses), "guess", "guesses"), guesses[0].Line)
	}
	names := slices.DeleteFunc(slices.Clone(r.intake.unused), func(n string) bool { return strings.TrimSpace(n) == "" })
	notes.Add(len(names) > 0, "No part of the mapping uses the %s %s.",
		english.PluralWord(len(names), "column", "columns"), spelling.List(names, mostListed, nil))
	lacking := spelling.List(r.intake.lacking, mostListed, nil)
	notes.Add(lacking != "", "None of the first JSON objects has what the mapping uses: %s.", lacking)
	return notes
}

const mostListed = 20 // names in a remark

// notes returns remarks for people at the end. A run that sends nothing adds those that other runs show at their start.
func (r *run) notes(s *report.Summary) (notes spelling.Texts) {
	if r.dry != nil {
		notes = slices.Concat(r.warnings(), r.remarks(), r.dry.notes())
	}
	bad := r.badRows(s)
	notes.Add(bad > 0 && r.Tolerate.Covers(bad, r.tally.counts.Read),
		"Rows that are not good, but tolerated: %d (--tolerate allows %s).", bad, r.Tolerate)
	notes.Add(s.DroppedValues > 0, "Values that break a rule and are left out, by on_invalid: %d.", s.DroppedValues)
	notes = append(notes, r.tally.notes()...)
	notes.Add(r.drift != nil && r.drift.named == nil && r.ledger != nil,
		"Leads that no row names are not listed as absent: the checkpoint also holds leads of other kinds of files, "+
			"and the mapping has no namespace.")
	for i, f := range r.Inputs {
		for _, text := range f.Warnings() {
			notes.Add(true, "%s: %s", r.intake.paths[i], text)
		}
	}
	if r.pulls != nil {
		statuses := spelling.List(slices.Sorted(maps.Keys(r.pulls.unnamed)), mostListed, nil)
		notes.Add(r.pulls.lacking > 0, "Leads that the pull file lacks, because the mapping has no word for their "+
			"status: %d (%s).", r.pulls.lacking, statuses)
	}
	return notes
}
