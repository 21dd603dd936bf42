package importer

import (
	"cmp"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/importer/findings"
	"leadferry/importer/report"
	"leadferry/internal/rowkey"
	"leadferry/internal/spelling"
)

// collector is what counts how rows end, and tells of it. The engine's lock guards it.
type collector struct {
	tally   *tally
	limiter *limiter
	dry     *dryRun             // of a run that sends nothing; else nil
	drift   *drift              // of a reconciliation; else nil
	pulls   *pulls              // nil: no pull file is wanted
	write   func(*item) error   // writer.add: takes each row after its outcome is durable
	before  *report.LastRejects // what needed attention in the run before
	began   time.Time           // of the run
	shown   time.Time           // when Live was told last
	unkept  []report.Unkept     // as many as may be claimed at a time at most
}

// countRead counts a row that was read, and notes the lead that it names, if that is known. A row that was put off was
// counted then.
func (r *run) countRead(it *item) {
	if it.late {
		return
	}
	if r.drift != nil && r.drift.named != nil { // by both keys
		r.drift.named.Add(it.entry.Key)
		if it.entry.Key != it.rec.Key {
			r.drift.named.Add(it.rec.Key)
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

// collect takes a row that has ended and returns why the run ends, or nil. The writer, which may reuse the row, is
// last.
func (r *run) collect(it *item) *Stop {
	if r.drift != nil && it.outcome != Pending {
		r.drift.verdicts[it.found.verdict]++
	}
	if r.pulls != nil {
		r.pulls.add(it)
	}
	if it.outcome.Attention() && r.dry == nil {
		rej := rejectOf(it)
		before := r.before.Since(&rej)
		it.since = cmp.Or(before, stamp(r.began, bySeconds))
		if before == "" || it.outcome == InDoubt || it.outcome == Partial || it.outcome == Failed {
			r.tally.news++
		}
	}
	if it.unkept {
		namespace, key := rowkey.Split(it.rec.Key)
		r.unkept = append(r.unkept,
			report.Unkept{Key: key, Namespace: namespace, LeadID: it.entry.LeadID, RunID: r.RunID})
	}
	r.tally.count(it, r.intake.place(spotOf(it)))
	why := r.limiter.count(it)
	if r.dry != nil {
		why = nil
	}
	if err := r.write(it); err != nil && why == nil {
		why = filesFailed(err)
	}
	return why
}

const liveEvery = time.Second // between looks at a run for those who watch it

// notePace notes for the timeline how far the run is.
func (r *run) notePace() {
	r.meter.Sample(time.Now(), r.tally.counts.Ended(), r.breaker.Paused() != "")
}

// tally counts a run for its summary. Only the engine, under its lock, writes it.
type tally struct {
	counts  report.RowCounts
	rows    []int // read, by input
	dropped int   // values that on_invalid left out
	held    int   // rows in doubt that an incomplete checkpoint holds
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
		text := reasonOf(it.text)
		t.reasons.Add(at, findings.Kind{Outcome: it.outcome.String(), Text: text}, text)
	}
	e := &it.entry
	if it.outcome == InDoubt {
		if e.Reason == checkpoint.ReasonIncomplete || it.text == doubtReason(checkpoint.ReasonIncomplete, 0) {
			t.held++
		}
		it.remarks[answeredDoubt] = it.row.Answered
		if len(t.doubts) < report.MostDoubts {
			t.doubts = append(t.doubts, report.Doubt{
				Place: at, SentAt: e.Updated, OrganizationID: AskedFor(e), Reason: Explain(e), RequestID: e.RequestID,
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
		report.CountLead(t.organizations, report.Organization{ID: e.Organization, Location: e.Location})
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

func (t *tally) report(s *report.Summary) {
	s.Rows = t.counts
	s.Organizations, s.Transitions = report.Organizations(t.organizations), report.Transitions(t.moves)
	s.Errors, s.InDoubt = t.reasons.List(), slices.Clone(t.doubts)
}

const whyHeld = ": the checkpoint is incomplete, and their leads may exist. `leadferry checkpoint resolve` settles " +
	"them one by one; results of earlier runs may know their lead IDs. `leadferry checkpoint check --accept-loss` " +
	"gives up what is missing and sends them."

// notes are remarks for people: on rows that were held, and on what others did to leads.
func (t *tally) notes() (notes spelling.Texts) {
	notes.Add(t.held > 0, "%s held, not sent%s", english.Plural(t.held, "row was", "rows were"), whyHeld)
	for i, leads := range t.remarks {
		notes.Add(leads > 0, remarkNotes[i], leads)
	}
	return notes
}
