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

// content is what the template shows: a method for each part of the page that is more than a figure of the summary. No list that
// a summary may have long is shown whole.
type content struct {
	*report.Summary
	Sentences []string  // its headline
	Total     int       // rows that are to be read; 0: nobody knows
	Time      *timeline // nil: none was taken
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

func (c *content) Running() bool { return c.Outcome == report.Running }

// Done is how many percent of the rows were read, if that is known.
func (c *content) Done() int { return 100 * min(c.Rows.Read, c.Total) / max(c.Total, 1) }

// verdict is how the run ended, in a word and a picture.
type verdict struct{ Class, Word string }

func (c *content) Verdict() verdict {
	switch {
	case c.Running():
		return verdict{"idle", "Running"}
	case c.Outcome == "interrupted":
		return verdict{"bad", "Interrupted"}
	case c.Outcome == "stopped":
		return verdict{"bad", "Stopped early"}
	case c.Rows.InDoubt > 0:
		return verdict{"warn", "Done, with rows in doubt"}
	case c.Outcome == "attention" || c.ExitCode != 0:
		return verdict{"warn", "Done, with something to look at"}
	}
	return verdict{"good", "It worked"}
}

// tile is the short answer to a question.
type tile struct{ Question, Figure, Note string }

// Tiles answer how many, how fast, what is left and what needs a person.
func (c *content) Tiles() []tile {
	s, n, need, total := c.Summary, c.Rows, c.Attention(), c.Total
	rows := tile{"How many", comma(n.Read), english.PluralWord(n.Read, "row read", "rows read")}
	if c.Running() && total > 0 {
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
	case c.Running() && total > 0:
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

func (c *content) Reasons() clipped[report.Reason] { return clip(c.Asking(), mostErrors) }

func (c *content) Doubts() clipped[report.Doubt] {
	byPlace := func(a, b report.Doubt) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) }
	list := clip(slices.SortedStableFunc(slices.Values(c.InDoubt), byPlace), mostDoubts)
	list.More = max(0, c.Rows.InDoubt-len(list.Items))
	return list
}

type answer struct {
	Status string
	Count  int
}

func (c *content) Answers() (list []answer) {
	for status, n := range c.Requests.ByStatus {
		list = append(list, answer{status, n})
	}
	slices.SortFunc(list, func(a, b answer) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Status, b.Status)) })
	return clip(list, mostListed).Items
}

// FaultsShown are what keeps the run from beginning.
func (c *content) FaultsShown() clipped[report.Fault] {
	return clip(slices.Concat(c.Checks.LostFiles, c.Checks.CannotCreate), mostListed)
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
