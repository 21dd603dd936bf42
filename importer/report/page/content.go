package page

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"

	"leadferry/importer/report"
)

// How much of each list a page shows.
const (
	mostErrors        = 30
	mostDoubts        = 200
	mostOrganizations = 20
	mostStatuses      = 12
	mostListed        = 50
)

// content is what the template shows. It has no text of its own but what it takes from the
// summary, and shows no list whole that a summary may have long.
type content struct {
	*report.Summary
	Headlines []string
	Verdict   verdict
	Tiles     []tile
	Steps     []report.Step
	Left      []report.NamedFile
	Running   bool
	Done      int // percent of the rows that are to be read, if that is known

	Outcomes      *outcomes
	Reasons       clipped[report.Reason]
	Doubts        clipped[report.Doubt]
	Time          *timeline
	Moves         *matrix
	Organizations *bars
	Assigned      *bars // of a check
	Statuses      *matrix
	Verdicts      *bars
	Owners        clipped[report.Transition]
	Answers       []answer
}

// clipped is the beginning of a list, and how many it does not show.
type clipped[T any] struct {
	Items []T
	More  int
}

// inTheOpen is how much of a long list stands in the way of what comes after it.
const inTheOpen = 8

// First are those that stand in the open.
func (c clipped[T]) First() []T { return c.Items[:min(len(c.Items), inTheOpen)] }

// Rest are those that a reader opens.
func (c clipped[T]) Rest() []T { return c.Items[len(c.First()):] }

func clip[T any](items []T, most int) clipped[T] {
	n := min(len(items), most)
	return clipped[T]{items[:n], len(items) - n}
}

// listed is what a page shows of a list of any type.
type listed struct {
	Items any
	More  int
}

func shown(list any) listed {
	all := reflect.ValueOf(list)
	n := min(all.Len(), mostListed)
	return listed{all.Slice(0, n).Interface(), all.Len() - n}
}

func contentOf(s *report.Summary, headline []string, total int) *content {
	c := &content{
		Summary: s, Headlines: headline[1:], Verdict: verdictOf(s), Tiles: tilesOf(s, total), Running: s.Outcome == report.Running,
		Left: clip(s.Left(), mostListed).Items, Outcomes: outcomesOf(s), Time: timelineOf(s), Doubts: doubtsIn(s), Answers: answersOf(s),
	}
	c.Verdict.Sentence = headline[0]
	if total > 0 {
		c.Done = 100 * min(s.Rows.Read, total) / total
	}
	c.Steps = clip(s.Steps(), mostListed).Items
	c.Reasons = clip(s.Asking(), mostErrors)
	c.Moves = matrixOf("moves", "Changes of status that the service confirmed", [3]string{"from", "to", "not known"}, s.Transitions)
	c.Organizations = organizationsOf(s.Organizations)
	if r := s.Reconciliation; r != nil {
		c.Statuses = matrixOf("statuses", "Status in the file and on the service", [3]string{"in the file", "on the service", "none"}, r.Statuses)
		c.Verdicts, c.Owners = verdictsOf(r.Verdicts), clip(r.Owners, mostListed)
	}
	if s.Checks != nil {
		c.Assigned = assignedOf(s.Checks.Assignments)
	}
	return c
}

// verdict is how the run ended, in a word, a picture and a sentence.
type verdict struct{ Class, Word, Sentence string }

func verdictOf(s *report.Summary) verdict {
	switch {
	case s.Outcome == report.Running:
		return verdict{Class: "idle", Word: "Running"}
	case s.Outcome == "interrupted":
		return verdict{Class: "bad", Word: "Interrupted"}
	case s.Outcome == "stopped":
		return verdict{Class: "bad", Word: "Stopped early"}
	case s.Rows.InDoubt > 0:
		return verdict{Class: "warn", Word: "Done, with rows in doubt"}
	case s.Outcome == "attention" || s.ExitCode != 0:
		return verdict{Class: "warn", Word: "Done, with something to look at"}
	}
	return verdict{Class: "good", Word: "It worked"}
}

// tile is the short answer to a question.
type tile struct{ Question, Figure, Note string }

// tilesOf answers how many, how fast, what is left and what needs a person.
func tilesOf(s *report.Summary, total int) []tile {
	n, need := s.Rows, s.Attention()
	rows := tile{"How many", comma(n.Read), english.PluralWord(n.Read, "row read", "rows read")}
	if s.Outcome == report.Running && total > 0 {
		rows.Note = "of " + comma(total) + " rows, " + percent(min(n.Read, total), total)
	} else if made := n.Created + n.Partial; made > 0 {
		rows.Note += ", " + comma(made) + english.PluralWord(made, " lead made", " leads made")
	}
	speed := tile{"How fast", strconv.FormatFloat(roundTo2(s.ThroughputRowsPerS), 'f', -1, 64) + " rows/s", "in " + seconds(s.DurationS)}
	if s.ThroughputRowsPerS >= 100 {
		speed.Figure = comma(int(min(s.ThroughputRowsPerS, 1e15))) + " rows/s"
	}
	if s.LatencyMs.P95 > 0 {
		speed.Note += "; 95 % of answers within " + milliseconds(s.LatencyMs.P95)
	}
	unsent := n.Pending + n.Failed + n.Partial
	left := tile{"What is left", comma(unsent), english.PluralWord(unsent, "row to send", "rows to send") + " by the next run"}
	switch {
	case s.DryRun:
		left = tile{"What is left", comma(n.Pending), english.PluralWord(n.Pending, "good row: nothing was sent", "good rows: nothing was sent")}
	case s.Outcome == report.Running && total > 0:
		left = tile{"What is left", comma(max(0, total-n.Read)), "rows to read"}
	case unsent == 0:
		left.Note = "every row had its turn"
	}
	return []tile{rows, speed, left, {"What needs a person", comma(need), wanting(s, need)}}
}

// wanting names the outcomes that want a person's eye, by their rows.
func wanting(s *report.Summary, need int) string {
	if need == 0 {
		return "no row needs attention"
	}
	var list []report.OutcomeCount
	for _, o := range s.Outcomes() {
		if o.Attention && o.Rows > 0 {
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(a, b report.OutcomeCount) int { return cmp.Compare(b.Rows, a.Rows) })
	const named = 3
	var words []string
	for _, o := range list[:min(named, len(list))] {
		words = append(words, comma(o.Rows)+" "+spoken(o.Name))
	}
	if len(list) > named {
		words = append(words, "and others")
	}
	return strings.Join(words, ", ")
}

// spoken is the name of an outcome or verdict without its underscore.
func spoken(name string) string { return strings.ReplaceAll(name, "_", " ") }

// doubtsOf are the rows in doubt of one file, which stand together.
type doubtsOf struct {
	File string
	Rows []report.Doubt
}

// byFile arranges rows in doubt, which are in order.
func byFile(list []report.Doubt) (files []doubtsOf) {
	for _, d := range list {
		if n := len(files); n == 0 || files[n-1].File != d.File {
			files = append(files, doubtsOf{File: d.File})
		}
		last := &files[len(files)-1]
		last.Rows = append(last.Rows, d)
	}
	return files
}

func doubtsIn(s *report.Summary) clipped[report.Doubt] {
	byPlace := func(a, b report.Doubt) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) }
	list := clip(slices.SortedStableFunc(slices.Values(s.InDoubt), byPlace), mostDoubts)
	list.More = max(0, s.Rows.InDoubt-len(list.Items))
	return list
}

type answer struct {
	Status string
	Count  int
}

func answersOf(s *report.Summary) (list []answer) {
	for status, n := range s.Requests.ByStatus {
		list = append(list, answer{status, n})
	}
	slices.SortFunc(list, func(a, b answer) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Status, b.Status)) })
	return clip(list, mostListed).Items
}

// FaultsShown are what keeps the run from beginning.
func (c *content) FaultsShown() clipped[report.Fault] {
	return clip(slices.Concat(c.Checks.LostFiles, c.Checks.CannotCreate), mostListed)
}

// repeated is a kind of rows that a check found beside others.
type repeated struct {
	What string
	report.Repeats
}

// RepeatsShown are rows whose keys stand, or seem to stand, in other rows.
func (c *content) RepeatsShown() (list []repeated) {
	for _, r := range []repeated{
		{english.PluralWord(c.Checks.Repeats.Rows, "row repeats a key", "rows repeat a key"), c.Checks.Repeats},
		{english.PluralWord(c.Checks.LookAlikes.Rows, "row has a key that looks like another", "rows have keys that look like others"), c.Checks.LookAlikes},
	} {
		if r.Rows > 0 {
			r.Places = clip(r.Places, 3).Items
			list = append(list, r)
		}
	}
	return list
}

// examples are the first places of a group, a file named once.
func examples(at []report.Place) string {
	var list []string
	for i, p := range clip(at, 3).Items {
		if i > 0 && at[i-1].File == p.File {
			list = append(list, strconv.Itoa(p.Line))
		} else {
			list = append(list, place(p))
		}
	}
	return strings.Join(list, ", ")
}

func roundTo2(f float64) float64 {
	r, _ := strconv.ParseFloat(fmt.Sprintf("%.2g", f), 64)
	return r
}
