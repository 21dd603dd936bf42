package propose

import (
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
)

const (
	unfilled = "DECIDE" // no status of the service, so a forgotten one is refused

	// schemaLine lets editors check the file, once leadferry schema has been saved
	// beside it.
	schemaLine = "# yaml-language-server: $schema=leadferry.schema.json"
)

// render writes the draft down.
func render(t *table, d *draft) []byte {
	s := &sheet{}
	s.put(0, schemaLine, "")
	s.note(0, "Proposed by leadferry init for "+fileShown(t.in.File)+": "+t.in.size()+". Each comment says what a guess"+
		" rests on. Correct what is wrong, then try it: leadferry validate -m MAPPING FILE")
	s.put(0, "version: 1", "")
	t.renderSource(s)
	t.renderKey(s, d)
	t.renderAssign(s, d)
	s.blank()
	s.put(0, "lead:", "")
	s.note(1, "The category of these leads, for programs and for people; "+d.origin.why+". Adapt it.")
	s.put(1, "type_key: "+scalar(d.origin.key), "")
	s.put(1, "type_label: "+scalar(d.origin.label), "")
	t.renderStatus(s, d)
	if d.key.external && d.key.column != nil {
		s.note(1, "The lead's number in the CRM, linked to the lead once it is made.")
		s.put(1, "external_id: "+quoted(d.key.column.placeholder()), "")
	}
	t.renderContent(s, d)
	return s.bytes()
}

// size says how much of the file was looked at.
func (in *Input) size() string {
	read := english.Plural(len(in.Rows), "row", "") + " read"
	if in.Complete {
		read += " (the whole file)"
	}
	if in.Bad > 0 {
		read += ", " + itoa(in.Bad) + " more could not be read"
	}
	return read + ", " + english.Plural(len(in.Columns), "column", "")
}

// renderSource writes what a reader would not find out by itself.
func (t *table) renderSource(s *sheet) {
	in := &t.in
	var body sheet
	put := func(text, comment string) { body.put(1, text, comment) }
	if in.File == "-" && slices.Contains([]string{"csv", "tsv", "jsonl", "xlsx"}, in.Format) {
		put("format: "+in.Format, "standard input does not tell")
	}
	text := in.Format != "jsonl" && in.Format != "xlsx"
	if d := in.Delimiter; text && d != 0 && !strings.ContainsRune("\"\r\n\x00\uFEFF\uFFFD", d) && (d != ',' || in.Format == "tsv") {
		if d == '\t' {
			put("delimiter: tab", "")
		} else {
			put("delimiter: "+quoted(string(d)), "")
		}
	}
	if in.Encoding != "" && text {
		put("encoding: "+scalar(in.Encoding), "")
	}
	if in.Sheet != "" && in.Format == "xlsx" {
		put("sheet: "+quoted(in.Sheet), "")
	}
	if in.NoHeader && in.Format != "jsonl" && len(t.names) > 0 {
		put("header: false", "so the columns need names: give them better ones here and below")
		t.renderColumns(&body)
	}
	if len(t.null) > 0 {
		var list []string
		for _, marker := range t.null {
			list = append(list, quoted(marker))
		}
		put("null: ["+strings.Join(list, ", ")+"]", "cells that stand for nothing, as seen in the file")
	}
	if len(body.lines) > 0 {
		s.blank()
		s.put(0, "source:", "")
		s.lines = append(s.lines, body.lines...)
	}
}

// renderColumns lists made-up names, some to a line.
func (t *table) renderColumns(s *sheet) {
	line := "columns: ["
	for i, name := range t.names {
		item := scalar(name)
		if i < len(t.names)-1 {
			item += ","
		}
		if len(line)+len(item) > widest-4 {
			s.put(1, line, "")
			line = "  "
		}
		if i > 0 && line != "  " {
			line += " "
		}
		line += item
	}
	s.put(1, line+"]", "")
}

func (t *table) renderKey(s *sheet, d *draft) {
	s.blank()
	s.note(0, "What makes a row the same row on the next run.")
	for _, why := range d.key.why {
		s.note(0, why)
	}
	switch k := d.key; {
	case k.column != nil && k.lower:
		s.put(0, "key: {from: "+quoted(k.column.placeholder())+", apply: [lower]}", "")
	case k.column != nil:
		s.put(0, "key: "+quoted(k.column.placeholder()), "")
	case k.instead != nil:
		var texts []string
		for _, c := range k.instead {
			texts = append(texts, c.placeholder())
		}
		s.note(0, "These columns are together unique in "+t.extent()+"; take the # away if they never change:")
		s.offer(0, "key: "+quoted(strings.Join(texts, " / ")), "")
	}
}

func (t *table) renderStatus(s *sheet, d *draft) {
	st := d.status
	if st == nil {
		s.note(1, "No column tells a status that leadferry knows, so the leads become New.")
		return
	}
	name := shown(st.column.header)
	if !st.live {
		s.note(1, name+" may be a status, but "+st.silence()+", so the leads become New."+
			" To use it, replace each "+unfilled+" by one of "+strings.Join(statuses[:], ", ")+" and take the first # of the line away:")
		s.offer(1, "status: {from: "+quoted(st.column.placeholder())+", map: {"+strings.Join(st.offers(), ", ")+"}}", "")
		return
	}
	undecided := 0
	for _, w := range st.words {
		if w.status < 0 {
			undecided++
		}
	}
	s.note(1, name+": "+english.Plural(len(st.words), "word", "")+", placed by meaning."+emptyStatus(t.empties(st.column)))
	if undecided > 0 {
		s.note(1, "For a person: replace "+unfilled+" by one of "+strings.Join(statuses[:], ", ")+
			" and take the first # of the line away. Until then, rows with such a word are invalid.")
	}
	if d.otherStatus != nil {
		s.note(1, shown(d.otherStatus.column.header)+" tells a status too.")
	}
	s.put(1, "status:", "")
	s.put(2, "from: "+quoted(st.column.placeholder()), "")
	s.put(2, "map:", "")
	for _, w := range st.words {
		if w.status >= 0 {
			s.put(3, scalar(w.text)+": "+statuses[w.status], english.Plural(w.rows, "row", "")+doubt(w))
		} else {
			s.offer(3, scalar(w.text)+": "+unfilled, english.Plural(w.rows, "row", "")+" ? decide")
		}
	}
	s.put(2, `else: "{}"`, "the service's own words pass, others are told")
}

func doubt(w statusWord) string {
	if w.doubt {
		return ", a doubtful guess"
	}
	return ""
}

func emptyStatus(empties string) string {
	if empties == "" {
		return ""
	}
	return " It is " + empties + ": these leads become New."
}

// silence says why the words could not be placed.
func (st *statusChoice) silence() string {
	p := st.column.profile
	switch {
	case p.share(kindYesNo) >= 0.9:
		return "it only says yes or no (1 or 0)"
	case p.share(kindInteger) >= 0.9:
		return "it holds numbers, whose meaning only the CRM knows"
	}
	return "most of its words say nothing to leadferry"
}

// offers are entries of a map, for a comment.
func (st *statusChoice) offers() []string {
	var list []string
	for _, w := range st.words {
		to := unfilled
		if w.status >= 0 {
			to = statuses[w.status]
		}
		list = append(list, scalar(w.text)+": "+to)
	}
	return list
}

// Placeholders that no file has a column for: a line taken over unfilled is
// refused, or fits no row, and never reaches the service.
const (
	fillOrganization = "{ID OF THE ORGANIZATION}"
	fillLocator      = "{ID OF THE LOCATOR}"
)

// entry is a way to assign a lead, as an object on one line.
type entry struct{ text, comment string }

// renderAssign writes who gets the leads, or what a person has to fill in.
func (t *table) renderAssign(s *sheet, d *draft) {
	s.blank()
	o := d.organization
	entries := append(t.locators(d.parts), entry{"{organization: " + quoted(fillOrganization) + "}", "one organization"})
	if o.live {
		s.note(0, "Who gets the lead: the first entry of which no column is empty.")
		if empties := t.empties(o.column); empties != "" {
			s.note(0, shown(o.column.header)+" is "+empties+", and these rows are invalid until a person puts an ID in place"+
				" of {ID …} in one of the lines below it and takes the # away.")
		}
		s.put(0, "assign:", "")
		s.put(1, "- organization: "+quoted(o.column.placeholder()), o.why)
		for _, e := range entries {
			s.offer(1, "- "+e.text, e.comment)
		}
		return
	}
	s.note(0, "Who gets the leads: a person has to decide, and import needs it. Put an ID in place of {ID …} in one of these"+
		" lines and take its # away; for several, make a list of them.")
	if o.column != nil {
		s.offer(0, "assign: [{organization: {from: "+quoted(o.column.placeholder())+`, map: {"THEIR WORD": "THE ID"}}}]`, shown(o.column.header)+": "+o.why)
	}
	for _, e := range entries {
		s.offer(0, "assign: ["+e.text+"]", e.comment)
	}
}

// locators are the searches that the columns of an address allow (specification,
// endpoint 5, rule 3).
func (t *table) locators(parts map[part]*column) []entry {
	var list []entry
	begin := "{locator: " + quoted(fillLocator) + ", type: "
	if c := parts[partPostal]; c != nil {
		postal := t.simpleField("", partPostal, c)
		list = append(list, entry{begin + "regions, postal_code: " + postal.value() + "}", "by postal code"})
	}
	if text := searchText(parts); text != "" {
		list = append(list, entry{begin + "radius, search_text: " + quoted(text) + "}", "the nearest; or type: regions-radius"})
	}
	return list
}

// searchText is the address in one line, from the parts that there are.
func searchText(parts map[part]*column) string {
	street := joinParts(parts, " ", partStreet, partHouse)
	town := joinParts(parts, " ", partPostal, partCity)
	if town == "" && street == "" {
		return ""
	}
	var pieces []string
	for _, piece := range []string{street, town, joinParts(parts, " ", partState), joinParts(parts, " ", partCountry)} {
		if piece != "" {
			pieces = append(pieces, piece)
		}
	}
	return strings.Join(pieces, ", ")
}

func joinParts(parts map[part]*column, between string, wanted ...part) string {
	var list []string
	for _, p := range wanted {
		if c := parts[p]; c != nil {
			list = append(list, c.placeholder())
		}
	}
	return strings.Join(list, between)
}

// renderContent writes what the lead holds.
func (t *table) renderContent(s *sheet, d *draft) {
	r := &d.rest
	s.note(1, "What the sales person reads. Empty values are left out.")
	t.renderOut(s, d)
	fields := append(append([]field{}, d.fields...), r.fields...)
	if len(fields) == 0 && len(r.names) == 0 {
		s.note(1, "No column with cells was left for it.")
	}
	s.put(1, "content:", "")
	for _, f := range fields {
		s.put(2, scalar(f.key)+": "+f.value(), f.comment)
	}
	if len(r.names) > 0 {
		s.put(2, `"*": rest`, "under their own names: "+sayNames(r.names, 30))
	}
	if d.key.column == nil || !d.key.external || len(fields)+len(r.names) == 0 {
		s.put(2, `importRef: "{@key}"`, "the row's key, so that a lead can be found in the console by its row")
	}
}

// renderOut tells what the content does not have.
func (t *table) renderOut(s *sheet, d *draft) {
	r := &d.rest
	if len(t.hidden) > 0 {
		s.note(1, "Left out, since it looks like a secret (a password, a card, an account or an official number): "+
			sayNames(headersOf(t.hidden), 20)+". So the other columns are listed one by one; a new one has to be added here.")
	}
	if len(t.numbered) > 0 {
		s.note(1, "Left out: attributes, by which the export tells type and number of its records. So the other columns are"+
			" listed one by one.")
	}
	if len(r.empty) > 0 {
		s.note(1, "Empty in "+t.extent()+": "+sayNames(r.empty, 20)+".")
	}
	if len(r.out) > 0 {
		s.note(1, "Too many to list: "+sayNames(r.out, 20)+".")
	}
	if len(t.nameless) > 0 {
		s.note(1, "A mapping cannot name these columns (twice the same, or with } or @): "+sayShown(t.nameless, 10)+". Rename them to use them.")
	}
}

func headersOf(columns []*column) []string {
	var names []string
	for _, c := range columns {
		names = append(names, shown(c.header))
	}
	return names
}

func sayShown(headers []string, most int) string {
	var names []string
	for _, h := range headers {
		names = append(names, shown(h))
	}
	return sayNames(names, most)
}

// value is the field's value in YAML.
func (f field) value() string {
	if f.apply == nil && f.format == "" {
		return quoted(f.text)
	}
	v := "{from: " + quoted(f.text)
	if f.apply != nil {
		var steps []string
		for _, a := range f.apply {
			steps = append(steps, scalar(a))
		}
		v += ", apply: [" + strings.Join(steps, ", ") + "]"
	}
	if f.format != "" {
		v += ", format: " + f.format
	}
	return v + "}"
}
