package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"leadferry/importer/report"
)

// mostRepeats is how many repeated rows are named.
const mostRepeats = 3

// warnings are those of the mapping file, by itself and beside the inputs, each in one
// line.
func (e *engine) warnings() []string {
	var list []string
	for _, w := range slices.Concat(e.Mapping.Warnings(), e.rows.doubts) {
		list = append(list, fmt.Sprintf("%s:%d:%d: %s: %s", w.File, w.Line, w.Column, w.Text, w.Hint))
	}
	return list
}

// shared names the inputs that another run reads at this moment. One with the same
// checkpoint would have waited: its leads and ours are two each.
func (e *engine) shared() []string {
	var texts []string
	for _, f := range e.Inputs {
		if !f.Claim() {
			texts = append(texts, f.Info().Path+": another run is reading this file, with another checkpoint: if it sends to the same service, every lead is made twice (Ctrl-C stops this run in order)")
		}
	}
	return texts
}

// remarks are what the mapping and the headers show before any row is read.
func (e *engine) remarks() []string {
	var notes []string
	if e.Mapping.KeyFrom() == "row" && !e.matches {
		notes = append(notes, "The mapping has no key and no external_id, so a row is known by its own data: correcting a row makes another lead.")
	}
	nameless := func(name string) bool { return strings.TrimSpace(name) == "" }
	if names := slices.DeleteFunc(slices.Clone(e.rows.unused), nameless); len(names) > 0 {
		notes = append(notes, fmt.Sprintf("No part of the mapping uses %s %s.", columns(names), listed(names)))
	}
	if slices.ContainsFunc(e.rows.unused, nameless) {
		notes = append(notes, "A column without a name in the header is never sent.")
	}
	if names := e.Mapping.SearchedOnly(); len(names) > 0 && (!e.matches || e.Missing == MissingCreate) {
		notes = append(notes, fmt.Sprintf("A locator searches by %s %s, but no content key holds %s: the service asks for the parts of an address in the content too.",
			columns(names), listed(names), english.PluralWord(len(names), "it", "them")))
	}
	return notes
}

func columns(names []string) string {
	return "the " + english.PluralWord(len(names), "column", "columns")
}

// mostListed is how many names a remark lists.
const mostListed = 20

func listed(names []string) string {
	if len(names) <= mostListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostListed], ", "), len(names)-mostListed)
}

const whyHeld = ": the checkpoint is incomplete, and their leads may exist. `leadferry checkpoint resolve` settles them one by one; " +
	"results of earlier runs may know their lead IDs. `leadferry checkpoint check --accept-loss` gives up what is missing, so that they are sent."

// notes are remarks for people that concern no single outcome.
func (e *engine) notes() []string {
	var notes []string
	if e.rehearsal != nil {
		notes = e.rehearsed()
	}
	if n := e.tally.held; n == 1 {
		notes = append(notes, "1 row was held, not sent"+whyHeld)
	} else if n > 1 {
		notes = append(notes, fmt.Sprintf("%d rows were held, not sent", n)+whyHeld)
	}
	notes = append(notes, e.elsewhere()...)
	for i, f := range e.Inputs {
		for _, text := range f.Warnings() {
			notes = append(notes, e.rows.names[i]+": "+text)
		}
	}
	return notes
}

// rehearsed are the remarks of a rehearsal, which tells at its end also what a run
// that sends says at its beginning.
func (e *engine) rehearsed() []string {
	h := e.rehearsal
	notes := append(e.warnings(), e.remarks()...)
	if h.lacking != nil && h.updates {
		notes = append(notes, "The mapping serves sync alone: it lacks what import makes leads with, which is assign, lead.type_key and lead.type_label.")
	}
	if n := h.addresses.rows; n > 0 {
		notes = append(notes, fmt.Sprintf("Rows whose key looks like an e-mail address: %d, first at %s. Keys are kept in the checkpoint: take something that is nobody's name or address.",
			n, e.place(h.addresses.places[0])))
	}
	if same := &h.repeated.same; same.rows > 0 {
		notes = append(notes, fmt.Sprintf("Rows whose key stands in an earlier row: %d. They are judged in file order: the same data count as unchanged, other data as changed. %s", same.rows, e.examples(same)))
	}
	if alike := &h.repeated.alike; alike.rows > 0 {
		notes = append(notes, fmt.Sprintf("Rows whose key looks like that of an earlier row, but for leading zeros, blanks or capitals: %d. An import holds them as conflicts, unless --look-alikes create is given. %s", alike.rows, e.examples(alike)))
	}
	return notes
}

func (e *engine) examples(a *again) string {
	text := "For example"
	for i, r := range a.first {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s:%d (first at %s:%d)", e.rows.names[r.Input], r.Line, e.rows.names[r.FirstInput], r.FirstLine)
	}
	return text + "."
}

func (e *engine) place(at spot) report.Place {
	return report.Place{File: e.rows.names[at.input], Line: at.line}
}

// elsewhere are remarks on what others did to the leads that the run changed.
func (e *engine) elsewhere() []string {
	var notes []string
	if n := e.tally.statusElsewhere; n > 0 {
		notes = append(notes, fmt.Sprintf("Leads whose status was changed on the service since it was confirmed: %d. The checkpoint and the results say what it is now.", n))
	}
	if n := e.tally.ownerElsewhere; n > 0 {
		notes = append(notes, fmt.Sprintf("Leads that belong to another organization than before: %d. The checkpoint and the results say to which.", n))
	}
	if n := e.unchecked.Load(); n > 0 {
		notes = append(notes, fmt.Sprintf("Leads that --check-remote could not read before they were changed, for want of a known ExternalID: %d.", n))
	}
	return notes
}
