package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/internal/spelling"
)

// Section is a list in the report of a run. The text for people shows the first Top lines (0: all), the page more.
type Section struct {
	ID, Title string
	Lines     []Line
	Top       int
	Private   bool // holds words of cells: only for the terminal
}

// Line is one item of a Section: a count (0: nothing is counted), what it counts, and where: places, or a hint.
type Line struct {
	Count      int
	Name, Text string
	Where      string
	Attention  bool // a person should look at it
}

// Sections returns the report of a run, except times, rows in doubt and what to do. No section is empty.
func (s *Summary) Sections() []Section {
	rows := slices.DeleteFunc(s.Outcomes(), func(l Line) bool { return l.Count == 0 })
	all := append(s.Reconciliation.sections(),
		Section{ID: "rows", Title: "Rows", Lines: append([]Line{{Count: s.Rows.Read, Name: "read"}}, rows...)})
	all = append(all,
		Section{ID: "moves", Title: "Changes of status, confirmed", Top: 12, Lines: checkpoint.Map(s.Transitions,
			func(t Transition) Line {
				return Line{Count: t.Leads, Name: cmp.Or(t.From, "not known"), Text: "to " + t.To}
			})},
		Section{ID: "errors", Title: "Most frequent reasons", Top: 3, Lines: checkpoint.Map(s.reasonsToShow(), Reason.line)})
	all = append(all, s.Checks.sections()...)
	all = append(all,
		Section{ID: "notes", Title: "Notes", Lines: checkpoint.Map(s.Notes, func(t string) Line { return Line{Text: t} })},
		Section{ID: "organizations", Title: "Assigned to", Top: 10, Lines: assigned(s.Organizations)})
	return slices.DeleteFunc(all, func(of Section) bool { return len(of.Lines) == 0 })
}

// assigned lists organizations, one line each. Each is named by the location that got most of its leads.
func assigned(organizations []Organization) []Line {
	location, leads := map[string]string{}, map[Organization]int{}
	for _, o := range organizations {
		location[o.ID] = cmp.Or(location[o.ID], o.Location)
	}
	for _, o := range organizations {
		leads[Organization{ID: o.ID, Location: location[o.ID]}] += o.Leads
	}
	return checkpoint.Map(Organizations(leads), func(o Organization) Line {
		if o.Location == "" {
			return Line{Count: o.Leads, Name: o.ID}
		}
		return Line{Count: o.Leads, Name: o.Location, Text: spelling.Shorten(o.ID, 9)}
	})
}

func (r *Reconciliation) sections() []Section {
	if r == nil {
		return nil
	}
	verdicts := checkpoint.Map(r.Verdicts, func(v VerdictCount) Line {
		return Line{Count: v.Leads, Name: v.Verdict, Text: verdictMeanings[v.Verdict]}
	})
	verdicts = slices.DeleteFunc(verdicts, func(l Line) bool { return l.Count == 0 })
	return []Section{
		{ID: "reconciliation", Title: "Verdicts", Lines: verdicts},
		{ID: "sample", Title: "Sample", Lines: r.Sample.lines()},
	}
}

func (s *Sample) lines() []Line {
	if s == nil {
		return nil
	}
	text := fmt.Sprintf("%d of %d leads picked were read", s.Read, s.Picked)
	if s.Read > 0 {
		text += fmt.Sprintf(", and %d %s (%.1f %%). Between %.1f and %.1f %% of the leads that the file names differ "+
			"(95 %% confidence)",
			s.Differ, english.PluralWord(s.Differ, "differs", "differ"), 100*s.Share, 100*s.Low, 100*s.High)
	}
	return []Line{{Text: text}}
}

// sections returns what a check found: which checks rows fail, what else is wrong, and what would be sent to whom.
func (c *Checks) sections() (all []Section) {
	if c == nil {
		return nil
	}
	failed := checkpoint.Map(c.Rules, Reason.line)
	all = append(all, Section{ID: "rules", Title: "Checks that rows fail", Lines: failed, Top: topChecks})
	for _, k := range problemKinds {
		if k.title != "" {
			list := checkpoint.Map(c.of(k.rule), Problem.line)
			all = append(all, Section{ID: k.rule, Title: k.title, Lines: list, Top: k.top, Private: k.quotes})
		}
	}
	return append(all,
		Section{ID: "assigned", Title: "Would be assigned", Lines: assigned(c.Assignments), Top: topChecks},
		Section{ID: "sends", Title: "Would be sent", Lines: c.wouldSend()})
}

// line shows a problem with the number of its rows or, without one, with its place.
func (p Problem) line() Line {
	line := Line{Count: p.Rows, Name: p.Column, Text: p.Text}
	if p.Rows == 0 {
		line.Name, line.Text = "", Place{File: p.File, Line: p.Line}.String()+": "+p.Text
	}
	if p.Hint != "" {
		line.Where = "hint: " + p.Hint
	}
	return line
}

func (c *Checks) wouldSend() []Line {
	if !c.sends() {
		return nil
	}
	n := c.Projected
	text := requests(n.Create, n.Update)
	if c.Repeats > 0 {
		text += " (a row that repeats a key makes no lead of its own)"
	}
	return []Line{{Text: text + "."}}
}

// section prints a section in the text for people.
func (p *printer) section(of Section) {
	p.heading(of.Title)
	names := 0 // the width of the names: as for outcomes, or wider
	for _, l := range of.Lines {
		if l.Name != "" {
			names = max(names, len("unchanged"), min(len(l.Name), p.width/3))
		}
	}
	for i, l := range of.Lines {
		if i == of.Top && i > 0 {
			more, counted := fmt.Sprintf("and %d more", len(of.Lines)-i), 0
			for _, l := range of.Lines[i:] {
				counted += l.Count
			}
			if counted > 0 {
				more = fmt.Sprintf("%*s  %s", p.figures, humanize.Comma(int64(counted)), more)
			}
			p.indented(more)
			return
		}
		first, next, text := "  ", "    ", l.Text
		if l.Count > 0 || l.Name != "" {
			first = fmt.Sprintf("  %*s  ", p.figures, humanize.Comma(int64(l.Count)))
			next = strings.Repeat(" ", len(first))
		}
		if l.Name != "" {
			next += strings.Repeat(" ", names+2)
			text = fmt.Sprintf("%-*s  %s", names, spelling.EscapeLine(l.Name), text)
		}
		p.wrap(first, next, text)
		if l.Where != "" {
			p.wrap(next, next, l.Where)
		}
	}
}
