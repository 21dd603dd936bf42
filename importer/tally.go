package importer

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/importer/findings"
	"leadferry/importer/report"
)

// Bounds of what the tally keeps apart, so that memory does not grow with the input.
const (
	maxReasons       = 1000
	maxOrganizations = 10000
	maxDoubts        = 200
)

// reason is one text by which rows ended.
type reason struct {
	reasonKey
	findings.Rows
}

// doubt is a row in doubt with what the checkpoint knows of it.
type doubt struct {
	at    findings.Spot
	entry checkpoint.Entry
}

// tally counts a run. The engine's loop alone writes it.
type tally struct {
	limits Limits
	shared bool // with a fleet
	slots  int

	rows          []int // read, by input
	total         int
	dropped       int // values that on_invalid left out
	outcomes      [outcomeCount]int
	common        [outcomeCount]int   // of a fleet: the same, with what workers before this one did in their runs
	fellows       map[string]struct{} // these runs
	reasons       map[reasonKey]*reason
	organizations map[report.Organization]int
	moves         map[report.Transition]int // leads by the change of status that a run confirmed
	doubts        []doubt                   // the first ones

	statusByOthers int // leads whose status somebody else changed
	ownerByOthers  int // leads that belong to another organization now
	unread         int // leads that --check-remote could not read
	kept           int // leads whose status on the service stands against the file's

	creating        int  // leads made or perhaps being made
	made            int  // leads made or perhaps made
	newDoubts       int  // rows that fell in doubt in this run
	held            int  // rows in doubt that an incomplete checkpoint holds
	sent            int  // rows of which a request left
	refusedOrFailed int  // those among them that were rejected or failed
	known           int  // rows for which nothing was sent
	refusal         int  // status by which all rows sent so far were refused; -1: not all
	updates         bool // one of them was an update of a lead
	address         bool // there was a key that looks like an e-mail address
}

type reasonKey struct {
	outcome Outcome
	text    string
}

func newTally(inputs int, l Limits, slots int) *tally {
	return &tally{
		limits: l, slots: slots, rows: make([]int, inputs),
		reasons: map[reasonKey]*reason{}, organizations: map[report.Organization]int{}, moves: map[report.Transition]int{},
	}
}

func (t *tally) read(it *item) {
	t.rows[it.input]++
	t.total++
	if it.fault == nil {
		t.dropped += len(it.rec.Dropped)
	}
}

// ended is how many rows have an outcome.
func (t *tally) ended() (n int) {
	for _, rows := range t.outcomes {
		n += rows
	}
	return n
}

// created gives back a create's share of --max-creates where no lead can have come of it.
func (t *tally) created(r *result, elsewhere bool) {
	switch {
	case r.outcome == Created, r.outcome == Partial, r.outcome == InDoubt && !elsewhere:
		t.made++
	default:
		t.creating--
	}
}

// count adds a row and says whether a limit ends the run.
func (t *tally) count(it *item, r *result) *Stop {
	t.outcomes[r.outcome]++
	if t.shared {
		t.common[t.first(r)]++
	}
	if r.text != "" {
		t.because(it, r)
	}
	if r.outcome == InDoubt && (r.entry.Reason == checkpoint.ReasonIncomplete || r.attempts == 0 && r.entry.State != checkpoint.InDoubt) {
		t.held++
	}
	if r.outcome == InDoubt && len(t.doubts) < maxDoubts {
		t.doubts = append(t.doubts, doubt{spotOf(it), r.entry})
	}
	t.moved(&r.moved)
	if r.unread {
		t.unread++
	}
	if r.kept {
		t.kept++
	}
	if r.attempts > 0 && r.entry.Organization != "" && (r.outcome == Created || r.outcome == Partial) {
		o := report.Organization{ID: r.entry.Organization, Location: r.entry.Location}
		countUp(t.organizations, maxOrganizations, o, report.Organization{ID: "others"})
	}
	if r.attempts == 0 {
		t.known++
	} else {
		t.sent++
		t.refused(r)
		switch r.outcome {
		case InDoubt:
			t.newDoubts++
		case Rejected, Failed:
			t.refusedOrFailed++
		}
	}
	return t.limit()
}

// share makes the tally that of a worker in a place where others were before, in these runs.
func (t *tally) share(runs []string) {
	t.shared, t.fellows = true, map[string]struct{}{}
	for _, run := range runs {
		t.fellows[run] = struct{}{}
	}
}

// first is how a row ended for the first worker of its shard that took it to its end.
func (t *tally) first(r *result) Outcome {
	if _, fellow := t.fellows[r.entry.Run]; !fellow || r.outcome != Unchanged {
		return r.outcome
	}
	if r.entry.Synced {
		return Updated
	}
	return Created
}

func (t *tally) moved(m *moved) {
	if m.from != m.to {
		t.moves[report.Transition{From: m.from, To: m.to}]++
	}
	if m.statusByOthers {
		t.statusByOthers++
	}
	if m.ownerByOthers {
		t.ownerByOthers++
	}
}

func (t *tally) because(it *item, r *result) {
	key := reasonKey{r.outcome, cmp.Or(r.kind, r.text)}
	known := t.reasons[key]
	if known == nil {
		if len(t.reasons) >= maxReasons {
			key.text = "other reasons"
		}
		if known = t.reasons[key]; known == nil {
			known = &reason{reasonKey: key}
			t.reasons[key] = known
		}
	}
	known.Add(spotOf(it))
}

// countUp counts one more of a kind, or of the others once so many kinds are told apart as there may be.
func countUp[K comparable](kinds map[K]int, most int, kind, others K) {
	if _, known := kinds[kind]; !known && len(kinds) >= most {
		kind = others
	}
	kinds[kind]++
}

func (t *tally) refused(r *result) {
	t.updates = t.updates || r.entry.LeadID != ""
	if r.outcome == Rejected && (t.refusal == 0 || t.refusal == r.entry.Code) {
		t.refusal = r.entry.Code
	} else {
		t.refusal = -1
	}
}

// makeUp counts the row at which the program itself failed: it was not sent.
func (t *tally) makeUp() {
	missing := t.total - t.ended()
	t.outcomes[Pending] += missing
	t.common[Pending] += missing
}

// attention is how many rows want a person's eye.
func (t *tally) attention(dry bool) int {
	return (&report.Summary{Rows: rowCounts(t.total, &t.outcomes), DryRun: dry}).Attention()
}

func rowCounts(read int, n *[outcomeCount]int) report.RowCounts {
	return report.RowCounts{
		Read: read, Created: n[Created], Updated: n[Updated], Unchanged: n[Unchanged], Changed: n[Changed],
		Skipped: n[Skipped], Invalid: n[Invalid], Rejected: n[Rejected], Failed: n[Failed], Partial: n[Partial],
		InDoubt: n[InDoubt], Unmatched: n[Unmatched], Conflict: n[Conflict], Pending: n[Pending],
	}
}

// report puts what was counted into the run's figures.
func (t *tally) report(s *report.Summary, at func(findings.Spot) report.Place) {
	s.Rows = rowCounts(t.total, &t.outcomes)
	s.Organizations, s.Transitions = report.Organizations(t.organizations), report.Transitions(t.moves)
	frequent := slices.SortedFunc(maps.Values(t.reasons), func(a, b *reason) int { // then in file order
		return cmp.Or(cmp.Compare(b.Count, a.Count), a.First[0].Compare(b.First[0]), cmp.Compare(a.text, b.text))
	})
	for _, r := range frequent {
		s.Errors = append(s.Errors, report.Reason{Outcome: r.outcome.String(), Error: r.text, Rows: r.Count, Examples: r.Places(at)})
	}
	// What a person needs to look rows in doubt up. Two rows of one key are one.
	for _, d := range t.doubts {
		s.InDoubt = append(s.InDoubt, report.Doubt{
			Place: at(d.at), SentAt: d.entry.Updated, OrganizationID: AskedFor(&d.entry), Reason: Explain(&d.entry), RequestID: d.entry.RequestID,
		})
	}
}

const whyHeld = ": the checkpoint is incomplete, and their leads may exist. `leadferry checkpoint resolve` settles them one by one; " +
	"results of earlier runs may know their lead IDs. `leadferry checkpoint check --accept-loss` gives up what is missing, so that they are sent."

// notes are remarks for people: on rows that were held, and on what others did to the leads
// that the run changed.
func (t *tally) notes() (notes []string) {
	if t.held > 0 {
		notes = append(notes, english.Plural(t.held, "row was", "rows were")+" held, not sent"+whyHeld)
	}
	for _, note := range []struct {
		leads int
		text  string
	}{
		{t.statusByOthers, "Leads whose status was changed on the service since it was confirmed: %d. The results say what it is now; --conflict says what a sync makes of them."},
		{t.ownerByOthers, "Leads that belong to another organization than before: %d. The run's files say to which."},
		{t.kept, "Leads whose status on the service stands against the file's: %d. --pull writes what the CRM should take over."},
		{t.unread, "Leads that --check-remote could not read, for want of a known ExternalID: %d. What others changed in them is not seen."},
	} {
		if note.leads > 0 {
			notes = append(notes, fmt.Sprintf(note.text, note.leads))
		}
	}
	return notes
}

// Limits end a run early (INTERFACE, "Run flags").
type Limits struct {
	MaxRejects Share // rows sent in this run that were rejected or failed, of those sent
	MaxInvalid Share // rows that are invalid, of those read
	MaxInDoubt int   // rows that fell in doubt in this run; 0 = no limit
	MaxCreates int   // leads made; 0 = no limit
}

// Share bounds a number of rows, by itself or in percent of others; both 0 = no limit.
type Share struct{ Rows, Percent int }

// percentFrom is how many rows there must be before a percentage says anything.
const percentFrom = 200

func (s Share) none() bool { return s == Share{} }

// exceeded reports whether n of a number of rows are too many.
func (s Share) exceeded(n, of int) bool {
	return s.Rows > 0 && n > s.Rows || s.Percent > 0 && of >= percentFrom && n*100 > s.Percent*of
}

// covers reports whether n of a number of rows are no more than the bound, which is none by itself.
func (s Share) covers(n, of int) bool {
	return !s.none() && (s.Percent == 0 && n <= s.Rows || s.Percent > 0 && n*100 <= s.Percent*of)
}

// String is the bound in words, before what it counts.
func (s Share) String() string {
	if s.Percent > 0 {
		return fmt.Sprintf("%d%% of the rows", s.Percent)
	}
	return english.Plural(s.Rows, "row", "")
}

// onTrial holds rows back, while some are under way, until one was not refused like all
// before it: no more are sent than show that something is wrong with every row.
func (t *tally) onTrial(underWay int) bool {
	return t.noneAccepted() && underWay > 0 && t.sent+underWay >= t.slots
}

// noneAccepted reports whether every row sent so far, if any, was refused with one status,
// where --max-rejects asks to look at that.
func (t *tally) noneAccepted() bool {
	return !t.limits.MaxRejects.none() && (t.refusal > 0 || t.sent == 0)
}

// counts are what limits are about.
type counts struct{ read, invalid, sent, refused, doubts int }

func (t *tally) counts() counts {
	return counts{read: t.total, invalid: t.outcomes[Invalid], sent: t.sent, refused: t.refusedOrFailed, doubts: t.newDoubts}
}

// limit returns why the run must end, or nil. Those of a fleet are judged by what all its workers did.
func (t *tally) limit() *Stop {
	if !t.shared {
		if stop := t.limits.reached(t.counts()); stop != nil {
			return stop
		}
	}
	if t.noneAccepted() && t.sent >= max(t.slots, 1) {
		return &Stop{
			Code: CodeStopped, Reason: fmt.Sprintf("the first %d rows sent were all refused with HTTP %d", t.sent, t.refusal),
			Hint: refusedHint(t.refusal, t.updates) + "; where the rows were right, the next run needs --retry-rejected, since what was refused is not sent again with the same data; --max-rejects 0 goes on regardless",
		}
	}
	return nil
}

// reached returns the limit that these counts exceed, or nil.
func (l *Limits) reached(c counts) *Stop {
	switch {
	case l.MaxInDoubt > 0 && c.doubts > l.MaxInDoubt:
		return &Stop{
			Code: CodeStopped, Reason: fmt.Sprintf("more than %d rows fell in doubt (--max-in-doubt)", l.MaxInDoubt),
			Hint: "find out why the service gives no usable answers before going on",
		}
	case l.MaxRejects.exceeded(c.refused, c.sent):
		return &Stop{
			Code: CodeStopped, Reason: fmt.Sprintf("more than %s sent were rejected or failed (--max-rejects)", l.MaxRejects),
			Hint: "look at the most frequent reasons first: rows that were rejected are not sent again, but those behind them may fare no better; --max-rejects 0 never stops",
		}
	case l.MaxInvalid.exceeded(c.invalid, c.read):
		return &Stop{
			Code: CodeStopped, Reason: fmt.Sprintf("more than %s read are invalid (--max-invalid)", l.MaxInvalid), Same: true,
			Hint: "the file or the mapping may be the wrong one: leadferry validate shows all that is wrong; mend that and run the same command again, which sends nothing twice, or add --max-invalid 0 to go on regardless",
		}
	}
	return nil
}

// refusedHint is what to look at when the service refuses everything with one status.
func refusedHint(status int, updates bool) string {
	switch {
	case status == http.StatusForbidden || status == http.StatusPaymentRequired:
		return "check the account's rights: its memberships and its role in the organizations that the rows name"
	case (status == http.StatusNotFound || status == http.StatusGone) && updates:
		return "check that the lead IDs belong to this base URL: the service says that it knows none of them"
	case status == http.StatusNotFound || status == http.StatusGone || status == http.StatusMethodNotAllowed:
		return "check the trunk ID and the leads URL, unless the service's words say that it is the organization or the locator of the rows that it does not know"
	}
	return "the service refuses what the requests hold: see its words, and mend the rows, or the mapping where they are the same for all"
}
