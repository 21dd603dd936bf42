package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// How much of what a rehearsal found the text for people shows.
const (
	topRules    = 10
	topStatuses = 10
	topFailures = 10
)

// checks shows what a rehearsal found in rows; checkMapping what it says of the mapping.
func (c *Checks) checks(p *page) {
	if c == nil {
		return
	}
	c.rules(p)
	c.statuses(p)
	c.lost(p)
	c.assigned(p)
	c.projected(p)
}

func (c *Checks) checkMapping(p *page) {
	if c == nil {
		return
	}
	c.tests(p)
	for i, f := range c.CannotCreate {
		if i == 0 {
			p.heading("What the mapping lacks to make leads")
		}
		p.fault(f)
	}
}

func (c *Checks) rules(p *page) {
	for i, r := range c.Rules {
		if i == 0 {
			p.heading("Checks that rows fail")
		}
		if i == topRules {
			p.more(len(c.Rules)-i, "check")
			return
		}
		p.figure(r.Rows, fmt.Sprintf("%-9s  %s", r.Rule, Escape(r.sentence())))
		p.hang(places(r.Places, r.Rows))
	}
}

func (r *Rule) sentence() string {
	if r.Column == "" {
		return r.Error
	}
	return "column " + r.Column + ": " + r.Error
}

// places lists where rows stand, of which there may be more than are known.
func places(known []Place, rows int) string {
	list := make([]string, len(known), len(known)+1)
	for i, at := range known {
		list[i] = at.String()
	}
	if rows > len(known) {
		list = append(list, "…")
	}
	return strings.Join(list, ", ")
}

// String is how people and editors name the place.
func (at Place) String() string { return at.File + ":" + strconv.Itoa(at.Line) }

func (c *Checks) statuses(p *page) {
	for i, w := range c.Statuses {
		if i == 0 {
			p.heading("Statuses that are not mapped")
		}
		if i == topStatuses {
			p.more(len(c.Statuses)-i, "text")
			return
		}
		text := `"` + w.Status + `"`
		if w.Hidden != "" {
			text = w.Hidden
		}
		p.figure(w.Rows, text+", first at "+w.Place.String())
	}
}

func (c *Checks) lost(p *page) {
	for i, f := range c.LostFiles {
		if i == 0 {
			p.heading("Files that could not be read to their end")
		}
		p.fault(f)
	}
}

// assigned previews to whom leads would go, as far as anybody can tell.
func (c *Checks) assigned(p *page) {
	if len(c.Assignments) == 0 {
		return
	}
	p.heading("Would be assigned")
	shown, further, located := 0, 0, false
	for _, a := range c.Assignments {
		switch {
		case a.Others == "organizations", a.OrganizationID != "" && shown == topOrganizations:
			further += a.Rows
		case a.OrganizationID != "":
			shown++
			p.figure(a.Rows, a.whom())
		}
	}
	if further > 0 {
		p.figure(further, "to other organizations")
	}
	for _, a := range c.Assignments {
		if a.OrganizationID == "" && a.Others != "organizations" {
			located = located || a.LocatorID != ""
			p.figure(a.Rows, a.whom())
		}
	}
	if located {
		p.wrap("  ", "  ", "Which organization a locator picks cannot be predicted: its settings on the service decide when the lead is made.")
	}
}

func (a *Assignment) whom() string {
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

// projected says what a run would send, and how long that takes where it is known.
func (c *Checks) projected(p *page) {
	n := c.Projected
	if n.Create+n.Update == 0 {
		return
	}
	p.heading("Would be sent")
	text := english.Plural(n.Create, "create request", "") + " and " + english.Plural(n.Update, "update", "")
	if n.AtMost {
		text += " at most"
	}
	if n.Rate > 0 {
		took := time.Duration(n.DurationS * float64(time.Second)).Round(time.Second)
		text += fmt.Sprintf(": at --rate %v that takes %s or longer", n.Rate, max(took, time.Second))
	}
	p.wrap("  ", "  ", text+".")
}

func (c *Checks) tests(p *page) {
	t := &c.Tests
	if t.Run == 0 {
		return
	}
	p.heading("Tests of the mapping")
	if t.Failed == 0 {
		p.wrap("  ", "  ", english.Plural(t.Run, "test", "")+english.PluralWord(t.Run, " passes.", ": all pass."))
		return
	}
	p.wrap("  ", "  ", fmt.Sprintf("%s of %s %s.", humanize.Comma(int64(t.Failed)), english.Plural(t.Run, "test", ""), english.PluralWord(t.Failed, "fails", "fail")))
	for i, f := range t.Failures {
		if i == topFailures {
			p.more(len(t.Failures)-i, "test")
			return
		}
		p.verbatim(fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column))
		for _, d := range f.Differences {
			p.wrap("    ", "    ", Escape(d))
		}
	}
}

// fault shows a fault at its place, with its hint.
func (p *page) fault(f Fault) {
	at := f.File
	for _, n := range []int{f.Line, f.Column} {
		if n > 0 {
			at += ":" + strconv.Itoa(n)
		}
	}
	p.wrap("  ", "    ", at+": "+Escape(f.Error))
	if f.Hint != "" {
		p.wrap("    ", "    ", "hint: "+Escape(f.Hint))
	}
}

// more ends a list that is longer than what is shown of it.
func (p *page) more(n int, thing string) {
	p.wrap("  ", "  ", fmt.Sprintf("and %s more %s: see checks in --summary FILE.", humanize.Comma(int64(n)), english.PluralWord(n, thing, "")))
}
