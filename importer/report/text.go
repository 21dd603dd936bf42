package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// How much of a long list the text for people shows.
const (
	topReasons       = 3
	topOrganizations = 5
)

// WriteText writes what a person wants to know at the end of a run: what was done,
// the rows by outcome, which statuses changed, why rows need attention, to whom leads
// went, where the files lie and what to do next. Lines are at most width characters (0: 80), but for paths
// and commands that are longer.
func (s *Summary) WriteText(w io.Writer, width int) error {
	if width <= 0 {
		width = 80
	}
	p := &page{width: width, figures: len(humanize.Comma(int64(s.Rows.Read)))}
	s.headline(p)
	s.rows(p)
	s.transitions(p)
	s.reasons(p)
	s.Checks.checks(p)
	s.Checks.checkMapping(p)
	s.notes(p)
	s.places(p)
	s.files(p)
	s.next(p)
	_, err := io.WriteString(w, p.String())
	return err
}

func (s *Summary) headline(p *page) {
	name := s.activity()
	need, faults := s.Rows.attention(s.DryRun), s.Checks.faults()
	why := strings.TrimRight(s.StopReason, ".")
	switch {
	case s.Outcome == "interrupted":
		p.text(fmt.Sprintf("%s interrupted: %s.", name, s.progress()))
	case s.Outcome == "stopped":
		p.text(fmt.Sprintf("%s stopped early: %s.", name, why))
		p.text(fmt.Sprintf("Until then, %s.", s.progress()))
	case need > 0:
		p.text(fmt.Sprintf("%s finished: %s of %s %s attention%s.", name,
			humanize.Comma(int64(need)), english.Plural(s.Rows.Read, "row", ""), english.PluralWord(need, "needs", "need"), joined(", and ", faults)))
	case len(faults) > 0:
		p.text(fmt.Sprintf("%s finished: no row needs attention%s.", name, joined(", but ", faults)))
	case s.Rows.Read == 0:
		p.text(name + " complete: there were no rows.")
	default:
		p.text(fmt.Sprintf("%s complete: %s, nothing needs attention.", name, english.Plural(s.Rows.Read, "row", "")))
	}
	p.text(s.traffic())
	for _, in := range s.Inputs {
		if in.Changed {
			p.text(fmt.Sprintf("Mind: %s changed while it was read; this run may lack some of it.", in.Path))
		}
	}
}

// joined is the faults behind a word that leads to them, or nothing.
func joined(by string, faults []string) string {
	if len(faults) == 0 {
		return ""
	}
	return by + strings.Join(faults, ", and ")
}

// activity names what was done, as the subject of a sentence.
func (s *Summary) activity() string {
	switch {
	case s.Command == "validate":
		return "Validation"
	case s.DryRun:
		return "Dry run of the " + s.Command
	case s.Command == "":
		return "Run"
	}
	return strings.ToUpper(s.Command[:1]) + s.Command[1:]
}

func (s *Summary) progress() string {
	return fmt.Sprintf("%s of %s read %s done", humanize.Comma(int64(s.Rows.Read-s.Rows.attention(false))),
		english.Plural(s.Rows.Read, "row", ""), english.PluralWord(s.Rows.Read, "was", "were"))
}

// traffic says what left for the service.
func (s *Summary) traffic() string {
	took := time.Duration(s.DurationS * float64(time.Second)).Round(time.Millisecond)
	if took >= 10*time.Second {
		took = took.Round(100 * time.Millisecond)
	}
	switch {
	case s.DryRun && s.Command == "validate":
		return fmt.Sprintf("Nothing was sent: this was a check. It took %s.", took)
	case s.DryRun:
		return fmt.Sprintf("Nothing was sent: this was a dry run. It took %s.", took)
	case s.Requests.Create+s.Requests.Update == 0:
		return fmt.Sprintf("Nothing was sent to the service. The run took %s.", took)
	}
	return fmt.Sprintf("Sent in %s: %s and %s.", took,
		english.Plural(s.Requests.Create, "create request", ""), english.Plural(s.Requests.Update, "update", ""))
}

func (s *Summary) rows(p *page) {
	p.heading("Rows")
	p.figure(s.Rows.Read, "read")
	for _, o := range s.Rows.outcomes() {
		if o.name == "pending" && s.DryRun {
			o.meaning = s.Checks.fate()
		}
		if o.rows > 0 {
			p.figure(o.rows, fmt.Sprintf("%-9s  %s", o.name, o.meaning))
		}
	}
}

func (s *Summary) reasons(p *page) {
	if s.Rows.attention(s.DryRun) == 0 {
		return
	}
	shown := 0
	for _, r := range s.Errors {
		switch r.Outcome {
		case "created", "updated", "unchanged", "skipped", "pending":
			continue
		case "invalid": // a rehearsal lists them check by check
			if s.Checks != nil {
				continue
			}
		}
		if shown++; shown > topReasons {
			return
		}
		if shown == 1 {
			p.heading("Most frequent reasons")
		}
		p.figure(r.Rows, fmt.Sprintf("%-9s  %s", r.Outcome, Escape(r.Error)))
		if len(r.Examples) > 0 {
			p.hang("for example " + r.Examples[0].File + ":" + strconv.Itoa(r.Examples[0].Line))
		}
	}
}

// notes are remarks that concern no single outcome.
func (s *Summary) notes(p *page) {
	for i, text := range s.Notes {
		if i == 0 {
			p.heading("Notes")
		}
		p.wrap("  ", "  ", text)
	}
}

func (s *Summary) places(p *page) {
	for i, o := range s.Organizations {
		if i == 0 {
			p.heading("Assigned to")
		}
		if i == topOrganizations {
			p.figure(rest(s.Organizations[i:]), "to "+english.Plural(len(s.Organizations)-i, "other", ""))
			return
		}
		p.figure(o.Leads, strings.TrimSpace(o.ID+"  "+Escape(o.Location)))
	}
}

func rest(others []Organization) (leads int) {
	for _, o := range others {
		leads += o.Leads
	}
	return leads
}

func (s *Summary) files(p *page) {
	paths := slices.Concat([]string{s.ResultsPath}, s.RejectsPaths, []string{s.SummaryPath})
	names := slices.Concat([]string{"results"}, slices.Repeat([]string{"rejects"}, len(s.RejectsPaths)), []string{"summary"})
	first := true
	for i, path := range paths {
		if path == "" {
			continue
		}
		if first {
			p.heading("Files")
		}
		first = false
		p.verbatim(names[i] + "  " + path)
	}
}
