package importer

import (
	"cmp"
	"fmt"
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
	tally  *tally
	dry    *dryRun           // of a run that sends nothing; else nil
	drift  *drift            // of a reconciliation; else nil
	pulls  *pulls            // nil: no pull file is wanted
	write  func(*item) error // writer.add: takes each row after its outcome is durable
	before *report.Before    // what needed attention in the run before
	began  time.Time         // of the run
	shown  time.Time         // when Live was told last
	unkept []report.Unkept   // as many as may be claimed at a time at most
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
	if it.faults == nil {
		r.tally.dropped += len(it.rec.Dropped)
	}
	if r.dry != nil {
		r.dry.read(it)
	}
}

// collect takes a row that has ended and returns why the run ends, or nil. The writer, which may reuse the row, is last.
func (r *run) collect(it *item) *Stop {
	if r.drift != nil && it.outcome != Pending {
		r.drift.verdicts[it.found.verdict]++
	}
	if r.pulls != nil {
		r.pulls.add(it)
	}
	if it.outcome.toRejects() && r.dry == nil {
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
	why := r.tally.count(it, r.intake.place(spotOf(it)))
	if r.dry != nil {
		why = nil
	}
	if err := r.write(it); err != nil && why == nil {
		why = filesFailed(err)
	}
	return why
}

const liveEvery = time.Second // between looks at a run for those who watch it

// sample notes for the timeline how far the run is.
func (r *run) sample() { r.meter.Sample(time.Now(), r.tally.ended(), r.breaker.Paused() != "") }

func (r *run) progress() {
	r.sample()
	if now := time.Now(); r.Live != nil && now.Sub(r.shown) >= liveEvery {
		r.shown = now
		r.Live(r.soFar())
	}
}

// maxOrganizations is how many are counted apart, so that memory does not grow with the input.
const maxOrganizations = 10000

// tally counts a run. Only the engine, under its lock, writes it.
type tally struct {
	limits Limits
	counts checkpoint.Counts // for the limits

	rows     []int // read, by input
	dropped  int   // values that on_invalid left out
	outcomes [outcomeCount]int
	held     int // rows in doubt that an incomplete checkpoint holds
	service  report.InService
	news     int // rows that count as new (--attention new), except pending ones

	reasons       *findings.Kinds
	organizations map[report.Organization]int
	moves         map[report.Transition]int // leads whose status the run changed, by change
	doubts        []report.Doubt            // the first ones, with what a person needs to look them up
	remarks       [remarkCount]int

	creates int  // made, or perhaps being made (--max-creates)
	enough  bool // the fleet may make no more
	first   int  // so many rows sent and all refused with one status show that every row is wrong
	refused int  // that status so far; -1: they differ, or a row was accepted
	fleet   bool // its limits are checked by member, except this worker's own one on the first rows
}

func newTally(inputs int, l Limits, first int) *tally {
	return &tally{
		limits: l, first: first, rows: make([]int, inputs), reasons: findings.NewKinds(),
		organizations: map[report.Organization]int{}, moves: map[report.Transition]int{},
	}
}

func (t *tally) ended() (n int) {
	for _, rows := range t.outcomes {
		n += rows
	}
	return n
}

// created counts a create that has ended. If it made no lead, its share of --max-creates is free again.
func (t *tally) created(it *item, elsewhere bool) {
	made := it.outcome == Created || it.outcome == Partial
	if !made && (it.outcome != InDoubt || elsewhere || it.refusedAs != 0) {
		t.creates--
	}
}

// count counts a row, and returns why a limit ends the run, or nil.
func (t *tally) count(it *item, at report.Place) *Stop {
	t.outcomes[it.outcome]++
	if it.text != "" {
		text := reasonOf(it.text)
		t.reasons.Add(at, findings.Kind{Outcome: it.outcome.String(), Text: text}, text)
	}
	if it.faults != nil {
		t.counts.Invalid++
	}
	if it.outcome == InDoubt {
		t.doubt(it, at)
	}
	t.inService(it)
	if it.attempts > 0 {
		t.sent(it)
	}
	if m := it.moved; m.From != m.To {
		t.moves[m]++
	}
	for i, is := range it.remarks {
		if is {
			t.remarks[i]++
		}
	}
	return t.limit()
}

func (t *tally) inService(it *item) {
	switch s := &t.service; {
	case it.outcome == Skipped:
		return
	case it.outcome == InDoubt || it.entry.State == checkpoint.InDoubt:
		s.InDoubt++
	case it.entry.State.HasLead():
		s.Rows++
	default:
		s.None++
	}
	t.service.Of++
}

// doubt keeps the first rows in doubt, and counts those that an incomplete checkpoint holds.
func (t *tally) doubt(it *item, at report.Place) {
	if it.entry.Reason == checkpoint.ReasonIncomplete || it.text == doubtReason(checkpoint.ReasonIncomplete, 0) {
		t.held++
	}
	it.remarks[answeredDoubt] = it.row.Answered
	if e := &it.entry; len(t.doubts) < report.MostDoubts {
		t.doubts = append(t.doubts, report.Doubt{
			Place: at, SentAt: e.Updated, OrganizationID: AskedFor(e), Reason: Explain(e), RequestID: e.RequestID,
		})
	}
}

func (t *tally) sent(it *item) {
	t.counts.Sent++
	status := it.refusedAs
	if it.outcome == Rejected {
		status = it.entry.Code
	}
	if status != 0 && (t.refused == 0 || t.refused == status) {
		t.refused = status
	} else {
		t.refused = -1
	}
	switch {
	case it.outcome == Rejected, it.outcome == Failed, it.refusedAs != 0:
		t.counts.Refused++
	case it.outcome == InDoubt:
		t.counts.Doubts++
	case it.outcome == Created, it.outcome == Partial:
		if e := &it.entry; e.Organization != "" {
			one := report.Organization{ID: e.Organization, Location: e.Location}
			report.CountIn(t.organizations, one, report.Organization{ID: "others"}, maxOrganizations)
		}
	}
}

// rowCounts are the rows read, by outcome.
func (t *tally) rowCounts() report.RowCounts {
	n := &t.outcomes
	return report.RowCounts{
		Read: t.counts.Read, Created: n[Created], Updated: n[Updated], Unchanged: n[Unchanged], Changed: n[Changed],
		Skipped: n[Skipped], Invalid: n[Invalid], Rejected: n[Rejected], Failed: n[Failed], Partial: n[Partial],
		InDoubt: n[InDoubt], Unmatched: n[Unmatched], Conflict: n[Conflict], Pending: n[Pending],
	}
}

func (t *tally) report(s *report.Summary) {
	s.Rows, s.Sent = t.rowCounts(), t.counts.Sent
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

// mayLeave reports whether one more row may be sent while underWay are. why, if not nil, ends the run.
func (t *tally) mayLeave(a Action, underWay int) (may bool, why *Stop) {
	switch most := t.limits.MaxCreates; {
	case a.sends() && t.noneAccepted() && underWay > 0 && t.counts.Sent+underWay >= t.first:
		return false, nil // enough are under way to show that something is wrong with every row
	case a != Create:
		return true, nil
	case t.limits.doubts(0): // of earlier runs
		text := fmt.Sprintf("%d rows are in doubt from earlier runs, more than --max-in-doubt allows (%d): no lead is "+
			"made", t.limits.Standing, t.limits.MaxInDoubt)
		return false, lastingStop(CodeStopped, text, "settle them first: leadferry checkpoint export --state in_doubt "+
			"lists them, and leadferry checkpoint resolve takes the list back; then go on with the same command")
	case !t.enough && (most == 0 || t.creates < most):
		return true, nil
	case underWay > 0: // one of these rows may make no lead
		return false, nil
	}
	return false, ledgerFailed(checkpoint.ErrEnough)
}

// noneAccepted reports whether no row has shown so far that the service accepts rows: all sent ones were refused with
// one status, or none was sent. --max-rejects 0 turns that check off.
func (t *tally) noneAccepted() bool {
	return !t.limits.MaxRejects.none() && (t.refused > 0 || t.counts.Sent == 0)
}

// limit returns why the run must end, or nil.
func (t *tally) limit() *Stop {
	if stop := t.limits.reached(&t.counts); !t.fleet && stop != nil {
		return stop
	}
	if t.noneAccepted() && t.counts.Sent >= max(t.first, 1) {
		reason := fmt.Sprintf("the first %d rows sent were all refused with HTTP %d", t.counts.Sent, t.refused)
		return stopFor(reason, "see the service's words: check the account's rights, the trunk ID and the addresses, "+
			"and what all rows send alike; then send them again with --retry-rejected. --max-rejects 0 turns this "+
			"limit off")
	}
	return nil
}
