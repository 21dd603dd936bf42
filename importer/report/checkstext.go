package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// topChecks is how much of each list the text for people shows.
const topChecks = 10

// text shows what was found in the rows, and then what is said of the mapping.
func (c *Checks) text(p *printer) {
	list(p, "Checks that rows fail", c.Rules, topChecks, func(r Rule) {
		p.figure(r.Rows, fmt.Sprintf("%-9s  %s", r.Rule, r.Sentence()))
		p.hang(r.places())
	}, func(others []Rule) { p.more(len(others), "check") })
	list(p, "Statuses that are not mapped", c.Statuses, 0, func(w Word) { p.figure(w.Rows, w.named()+", first at "+w.Place.String()) }, nil)
	list(p, "Texts that a map lacks", c.Lacking, 0, p.lacking, nil)
	list(p, "Texts that only else takes", c.Caught, topChecks, p.lacking, func(others []Lacking) {
		p.indented(fmt.Sprintf("and %s more: --strict --problems FILE lists all.", english.Plural(len(others), "text", "")))
	})
	list(p, "Files that could not be read to their end", c.LostFiles, 0, p.fault, nil)
	c.assigned(p)
	c.projected(p)
	c.tests(p)
	list(p, "What the mapping lacks to make leads", c.CannotCreate, 0, p.fault, nil)
	list(p, "Guesses that nobody has confirmed yet (take the mark ? away where one is right)", c.Unconfirmed, 0, func(g Guess) {
		what := g.Place.String() + ": "
		if g.Of != "" {
			what += g.Of + ": "
		}
		p.wrap("  ", "    ", what+g.Why)
	}, nil)
}

// lacking shows a text, or others, by what the mapping calls the value.
func (p *printer) lacking(l Lacking) {
	text := l.named()
	if !l.Others {
		text = l.Value + "  " + text
	}
	p.figure(l.Rows, text+", first at "+l.Place.String())
}

// Sentence says what is wrong, and in which column.
func (r *Rule) Sentence() string {
	if r.Column == "" {
		return r.Error
	}
	return "column " + r.Column + ": " + r.Error
}

// places lists where the rows stand, of which there may be more than are known.
func (r *Rule) places() string {
	var list []string
	for _, at := range r.Places {
		list = append(list, at.String())
	}
	if r.Rows > len(list) {
		list = append(list, "…")
	}
	return strings.Join(list, ", ")
}

// String is how people and editors name the place.
func (at Place) String() string { return at.File + ":" + strconv.Itoa(at.Line) }

// assigned previews to whom leads would go, as far as anybody can tell.
func (c *Checks) assigned(p *printer) {
	if len(c.Assignments) == 0 {
		return
	}
	p.heading("Would be assigned")
	shown, further, located := 0, 0, false
	for _, a := range c.Assignments { // organizations come first
		switch {
		case a.OrganizationID != "" && shown < topOrganizations:
			shown++
		case a.OrganizationID != "", a.Others == "organizations":
			further += a.Rows
			continue
		case further > 0:
			p.figure(further, "to other organizations")
			further = 0
		}
		located = located || a.LocatorID != ""
		p.figure(a.Rows, a.Whom())
	}
	if further > 0 {
		p.figure(further, "to other organizations")
	}
	if located {
		p.indented("Which organization a locator picks cannot be predicted: its settings on the service decide when the lead is made.")
	}
}

// Whom says to whom the rows would go.
func (a *Assignment) Whom() string {
	switch {
	case a.OrganizationID != "":
		return "to " + a.OrganizationID
	case a.LocatorID != "":
		return fmt.Sprintf("by the locator %s (entry %d of assign)", a.LocatorID, a.Entry)
	case a.Others != "":
		return "by other " + a.Others
	}
	return "to nobody: the mapping has no assign"
}

func (c *Checks) projected(p *printer) {
	if text := c.WouldSend(); text != "" {
		p.heading("Would be sent")
		p.indented(text)
	}
}

// WouldSend says what a run would send, and how long that takes where it is known; "": nothing.
func (c *Checks) WouldSend() string {
	if !c.sends() {
		return ""
	}
	n := c.Projected
	text := requests(n.Create, n.Update)
	if n.AtMost {
		text += " at most"
	}
	if n.Rate > 0 {
		took := time.Duration(n.DurationS * float64(time.Second)).Round(time.Second)
		text += fmt.Sprintf(": at --rate %v that takes %s or longer", n.Rate, max(took, time.Second))
	}
	return text + "."
}

func (c *Checks) tests(p *printer) {
	t := &c.Tests
	if t.Run == 0 {
		return
	}
	result := english.Plural(t.Run, "test", "") + english.PluralWord(t.Run, " passes.", ": all pass.")
	if t.Failed > 0 {
		result = t.failed(english.Plural(t.Run, "test", "")) + "."
	}
	p.heading("Tests of the mapping")
	p.indented(result)
	for i, f := range t.Failures {
		if i == topChecks {
			p.more(len(t.Failures)-i, "test")
			return
		}
		p.verbatim(fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column))
		for _, d := range f.Differences {
			p.wrap("    ", "    ", d)
		}
	}
}

// failed says how many of the tests, which are named so, fail.
func (t *Tests) failed(of string) string {
	return fmt.Sprintf("%s of %s %s", humanize.Comma(int64(t.Failed)), of, english.PluralWord(t.Failed, "fails", "fail"))
}

// fault shows a fault at its place, with its hint.
func (p *printer) fault(f Fault) {
	at := f.File
	for _, n := range []int{f.Line, f.Column} {
		if n > 0 {
			at += ":" + strconv.Itoa(n)
		}
	}
	p.wrap("  ", "    ", at+": "+f.Error)
	if f.Hint != "" {
		p.wrap("    ", "    ", "hint: "+f.Hint)
	}
}

// more ends a list that is longer than what is shown of it.
func (p *printer) more(n int, thing string) {
	p.indented(fmt.Sprintf("and %s more %s: see checks in --summary FILE.", humanize.Comma(int64(n)), english.PluralWord(n, thing, "")))
}

// faults are what needs attention beside rows.
func (c *Checks) faults() []string {
	if c == nil {
		return nil
	}
	var faults []string
	if c.Tests.Failed > 0 {
		faults = append(faults, c.Tests.failed(english.Plural(c.Tests.Run, "test", "")+" of the mapping"))
	}
	if len(c.CannotCreate) > 0 {
		faults = append(faults, "the mapping cannot make leads yet")
	}
	for _, f := range c.LostFiles {
		faults = append(faults, f.File+" could not be read to its end")
	}
	return append(faults, c.strictFaults()...)
}

// strictFaults are those that count where a check is strict only.
func (c *Checks) strictFaults() (faults []string) {
	if !c.Strict {
		return nil
	}
	for _, f := range []struct {
		n                  int
		thing, one, others string
	}{
		{c.Repeats.Rows, "row", "repeats a key", "repeat a key"},
		{c.LookAlikes.Rows, "row", "has a key that looks like another", "have keys that look like others"},
		{c.DroppedRows, "row", "has values that are left out", "have values that are left out"},
		{c.CaughtRows, "row", "has a text that only else takes", "have texts that only else takes"},
		{len(c.UnusedColumns), "column", "is used by nothing", "are used by nothing"},
		{len(c.Unconfirmed), "guess", "is not confirmed", "are not confirmed"},
	} {
		if f.n > 0 {
			faults = append(faults, english.Plural(f.n, f.thing, map[string]string{"guess": "guesses"}[f.thing])+" "+english.PluralWord(f.n, f.one, f.others))
		}
	}
	return faults
}

// sends reports whether a run would send anything.
func (c *Checks) sends() bool { return c.Projected.Create+c.Projected.Update > 0 }

// fate is what would become of the good rows.
func (c *Checks) fate() string {
	if c == nil || !c.sends() {
		return "good"
	}
	return "good, would be sent"
}

// The rules that an edit of the mapping settles for all rows at once.
const (
	ruleStatus = "status"
	ruleAssign = "assign"
	ruleMap    = "map"
)

// byMapping says whether the mapping is all that there is to correct.
func (c *Checks) byMapping() bool {
	return c != nil && len(c.Rules) > 0 && !slices.ContainsFunc(c.Rules, func(r Rule) bool { return !slices.Contains([]string{ruleStatus, ruleAssign, ruleMap}, r.Rule) })
}

// steps are what to do about the mapping and the files themselves.
func (c *Checks) steps(todo *steps, mapping string) {
	unassigned := sum(c.Rules, func(r Rule) int {
		if r.Rule != ruleAssign {
			return 0
		}
		return r.Rows
	})
	todo.add(len(c.CannotCreate) > 0, "Complete "+mapping+": what it lacks, only a person can decide.")
	todo.add(c.Tests.Failed > 0, "Correct the mapping, or what its tests expect.")
	todo.add(len(c.Statuses) > 0, "Name the statuses under lead.status.map in "+mapping+", or say with else what becomes of the others.")
	todo.add(len(c.Lacking) > 0, "Add the texts that a map lacks to it or to its table, with what they become, or say with else what becomes of the others.")
	todo.add(unassigned > 0, fmt.Sprintf("Add an entry under assign in %s for the %s that none fits, or fill in what they lack.", mapping, english.Plural(unassigned, "row", "")))
	todo.add(len(c.strictFaults()) > 0, "Mend what the notes and lists above say of the file and the mapping, or check without --strict, which counts it.")
	todo.add(len(c.LostFiles) > 0, "Mend the files that could not be read to their end, or get whole copies of them.")
}
