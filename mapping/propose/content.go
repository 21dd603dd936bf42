package propose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"leadferry/internal/rowkey"
	"leadferry/internal/spelling"
	"leadferry/mapping/texts"
)

// field is a key of the content and the columns that fill it, joined with blanks.
type field struct {
	Key, Apply, Format string
	Comment            string
	columns            []*column
}

func (d *draft) decideContent() {
	if mobile := d.of("mobile"); mobile != nil && d.of("phone") == nil {
		mobile.part = "phone"
	}
	if house := d.of("house"); house != nil && d.of("street") == nil {
		house.part = ""
	}
	for _, r := range known().Parts {
		c := d.of(r.Part)
		switch {
		case r.Part == "full":
			if f := d.nameField(); len(f.columns) > 0 {
				d.Fields = append(d.Fields, f)
			}
		case r.Key != "" && c != nil:
			d.Fields = append(d.Fields, d.fieldOf(r, c))
		}
	}
}

// fieldOf makes the field of a column from its rule.
func (d *draft) fieldOf(r rule, c *column) field {
	f := field{Key: r.Key, columns: []*column{c}, Apply: r.Apply, Format: r.Format}
	remark := ""
	switch {
	case c.profile.share("prefixed") > 0.5, r.Like == "phone" && c.profile.counts["prefixed"] > 0:
		f.Apply, remark = `replace:/^([a-z]+:|'|=")|"$//`, "without the mark before the number"
	case r.Part == "created":
		f.Apply, remark = c.dateStep()
	case r.Format == "email":
		remark = c.badEmails()
	case r.Like == "phone" && c.profile.counts["damaged"] > 0:
		remark = "? a spreadsheet damaged " + english.Plural(c.profile.counts["damaged"], "number", "") +
			" (4.9E+11, #ERROR!)"
	case r.Like == "phone":
		if f.Apply = d.phoneStep(c); f.Apply != "" {
			remark = "? every number is one of the plan"
		}
	case r.Part == "street": // an address in one column gets the key address
		f.columns = d.present("street", "house")
		if len(d.present("house", "city", "postal")) == 0 {
			f.Key = "address"
		}
	}
	f.Comment = joinRemarks(c.why, d.Empties(c), remark)
	return f
}

// badEmails says how many cells are not e-mail addresses, or returns "".
func (c *column) badEmails() string {
	bad := slices.DeleteFunc(slices.Clone(c.cells), func(cell string) bool { return cell == "" || texts.IsEmail(cell) })
	if len(bad) == 0 {
		return ""
	}
	return fmt.Sprintf("? %d of %s would be refused: correct the file, or say on_invalid: drop", len(bad),
		english.Plural(c.profile.filled, "row", ""))
}

// phoneStep returns the step that makes international numbers of all cells of the column, or "". The step takes the
// country in another column, else, if that names one country at most, the country of most numbers with +.
func (d *draft) phoneStep(c *column) string {
	fits := func(countries []string) bool {
		for i, cell := range c.cells {
			if _, ok := texts.E164In(countries[i], cell); cell != "" && !ok {
				return false
			}
		}
		return true
	}
	of := d.of("country")
	if of != nil && clearForm().MatchString(of.header) && fits(of.cells) {
		return "e164:" + of.Placeholder()
	}
	regions := map[string]int{"": 0}
	for _, cell := range c.cells {
		if region := texts.Region(cell); region != "" {
			regions[region]++
		}
	}
	country := slices.MaxFunc(slices.Sorted(maps.Keys(regions)),
		func(a, b string) int { return regions[a] - regions[b] })
	if regions[country]*2 > c.profile.filled && fits(slices.Repeat([]string{country}, len(c.cells))) &&
		(of == nil || of.profile.distinct < 2) {
		return "e164:" + country
	}
	return ""
}

// nameField makes name of the whole name if first or last is missing or first is filled less often, else of the parts.
func (d *draft) nameField() field {
	first, last, full := d.of("first"), d.of("last"), d.of("full")
	if full != nil && first != nil && last == nil && !full.holds(first) { // Vorname, Name: Name is the last name
		full.part, last, full = "last", full, nil
	}
	f := field{Key: "name"}
	switch {
	case full != nil && (first == nil || last == nil || full.profile.filled > first.profile.filled):
		f.columns = []*column{full}
	default:
		f.columns = d.present("first", "middle", "last")
		if d.of("middle") != nil || slices.ContainsFunc(f.columns, func(c *column) bool { return c.padded }) {
			f.Apply = "squeeze"
		}
	}
	if last != nil && eastAsian().MatchString(last.header) {
		slices.Reverse(f.columns) // there, the family name comes first
	}
	for _, c := range d.present("full", "first", "middle", "last") {
		if !slices.Contains(f.columns, c) {
			c.part = ""
		}
	}
	if len(f.columns) > 0 {
		f.Comment = joinRemarks(f.columns[0].why, d.Empties(f.columns...))
	}
	return f
}

var eastAsian = spelling.Form(`\p{Han}|\p{Hiragana}|\p{Katakana}|\p{Hangul}`)

// holds reports whether most cells contain the cell of the other column.
func (c *column) holds(other *column) bool {
	n := 0
	for i, cell := range other.cells {
		if cell != "" && strings.Contains(c.cells[i], cell) {
			n++
		}
	}
	return n*2 > other.profile.filled
}

// decideRest decides about the columns that fields, key, organization and status leave over. It leaves out a column
// named like a field: both would go into the lead under one key.
func (d *draft) decideRest() {
	for _, c := range d.columns {
		isTaken := slices.ContainsFunc(d.Fields, func(f field) bool { return f.Key == c.header })
		switch {
		case c.part != "" || c == d.Key.Column && d.Key.External || isTaken || c.header == "importRef":
		case c.profile.filled == 0 && len(d.In.Rows) > 0:
			d.Empty = append(d.Empty, c.header)
		default:
			d.Names = append(d.Names, c.header)
		}
	}
}

// assignParts gives each part to the column with the best score, and each column at most one part.
func (d *draft) assignParts() {
	type candidate struct {
		column *column
		part   part
		score  float64
		why    string
	}
	var candidates []candidate
	for _, r := range known().Parts {
		for _, c := range d.columns {
			if score, why := r.score(c); score >= leastScore {
				candidates = append(candidates, candidate{c, r.Part, score, why})
			}
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	names := []part{"first", "last", "full"}
	for _, cand := range candidates {
		// A second name needs a header that says so: there are products called Emma and Max.
		named := slices.Contains(names, cand.part) && cand.column.isUnknown() && d.present(names...) != nil
		if d.of(cand.part) == nil && cand.column.part == "" && !named {
			cand.column.part, cand.column.why = cand.part, cand.why
		}
	}
}

// of returns the column that has the part, or nil.
func (d *draft) of(p part) *column {
	if i := slices.IndexFunc(d.columns, func(c *column) bool { return c.part == p }); i >= 0 {
		return d.columns[i]
	}
	return nil
}

// present returns the columns that have one of the parts.
func (d *draft) present(parts ...part) (columns []*column) {
	for _, p := range parts {
		if c := d.of(p); c != nil {
			columns = append(columns, c)
		}
	}
	return columns
}

// keyChoice says what identifies a row on the next run, and why.
type keyChoice struct {
	Column          *column  // nil: the row's own data
	Value           field    // how the key is made of Column
	External        bool     // it is the CRM's own number, so it also becomes the lead's ExternalID
	ByValues        bool     // only its cells, not its name, say that it identifies rows
	Counts          bool     // it is 1, 2, 3 … in the order of the rows
	Lower           bool     // it is an e-mail address, in which case does not matter
	Repeats, Blanks int      // rows that repeat another's key, or have none
	Namespace       string   // keeps it apart from the keys of other files, or ""
	Faults          []string // why columns with the name of an identifier cannot be the key
}

// chooseKey takes the CRM's own number of the lead, else an e-mail address that is different in each row.
func (d *draft) chooseKey() (k keyChoice) {
	columns := slices.Clone(d.columns)
	slices.SortStableFunc(columns, func(a, b *column) int { return cmp.Compare(b.identifies(), a.identifies()) })
	for _, c := range columns {
		p, id := c.profile, c.identifies()
		isNumber := id >= surePart
		// If leads have a number that cannot be the key, that of a person cannot either: it says who, not which lead.
		if id == 0 || k.Faults != nil && !isNumber {
			break
		}
		if fault := d.faultOf(c, isNumber); fault == "" {
			k.Column, k.External, k.ByValues, k.Counts = c, true, id <= byValues, p.counting
			k.Value = field{columns: []*column{c}, Apply: c.unwrapped()}
			k.Repeats, k.Blanks = p.filled-p.distinct, p.rows-p.filled
			if p.counting && d.Origin != nowhere {
				k.Namespace = slug(d.Origin)[:min(len(d.Origin), rowkey.MaxNamespace)]
			}
			return k
		} else if isNumber {
			k.Faults = append(k.Faults, fault)
		}
	}
	if email := d.of("email"); email != nil && len(email.cells) >= fewestRows && d.faultOf(email, false) == "" {
		lower := func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) }
		sorted := slices.SortedFunc(slices.Values(email.cells), lower)
		if len(slices.CompactFunc(sorted, strings.EqualFold)) == len(email.cells) {
			k.Column, k.Lower, k.Value = email, true, field{columns: []*column{email}, Apply: "lower"}
		}
	}
	return k
}

// wrappedForm matches a number with its marks: ' or =" that keep zeros in a spreadsheet, or .0 of a column of decimals.
var wrappedForm = spelling.Form(`^'[^']+$|^="[^"]+"$|^[0-9]+\.0$`)

// unwrapped returns the step that takes away what is around each number of the column, or "".
func (c *column) unwrapped() string {
	bare := func(cell string) bool { return cell != "" && !wrappedForm().MatchString(cell) }
	if c.profile.filled == 0 || slices.ContainsFunc(c.cells, bare) {
		return ""
	}
	return `replace:/^('|=")|("|[.]0)$//`
}

// faultOf says why the column cannot be the key, or "". If named an identifier, it may be empty or repeat in few rows.
func (d *draft) faultOf(c *column, named bool) string {
	const mostFaulty = 20 // one row in this many may be faulty
	p, name, most := c.profile, shown(c.header), 0
	if named {
		most = p.rows / mostFaulty
	}
	switch repeats := p.filled - p.distinct; {
	case p.rows-p.filled > most:
		return name + " is " + d.Empties(c)
	case p.counts["plain"] < p.filled:
		return name + " has control characters"
	case p.counts["damaged"] > 0:
		return name + " was damaged by a spreadsheet (4.9E+11, #REF!) in " +
			english.Plural(p.counts["damaged"], "row", "")
	case repeats > most:
		return name + " repeats in " + english.Plural(repeats, "row", "")
	}
	return ""
}
