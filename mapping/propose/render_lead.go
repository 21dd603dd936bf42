package propose

import "strings"

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
