package propose

import (
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
)

// field is a key of the content and what fills it.
type field struct {
	key     string
	text    string // with placeholders
	apply   []string
	format  string
	columns []*column
	comment string
}

// contentKeys are the keys of the parts, in the order in which people read a lead
// (the service's samples have name, email, phone, postalCode and message).
var contentKeys = []struct {
	part part
	key  string
}{
	{partSalutation, "salutation"},
	{partFull, "name"},
	{partEmail, "email"},
	{partPhone, "phone"},
	{partMobile, "mobile"},
	{partCompany, "company"},
	{partJob, "jobTitle"},
	{partStreet, "street"},
	{partPostal, "postalCode"},
	{partCity, "city"},
	{partState, "state"},
	{partCountry, "country"},
	{partMessage, "message"},
	{partSource, "leadSource"},
	{partCreated, "receivedOn"},
}

// contentOf makes the fields of the columns that were recognised.
func (t *table) contentOf(parts map[part]*column) []field {
	if parts[partPhone] == nil && parts[partMobile] != nil {
		parts[partPhone] = parts[partMobile]
		delete(parts, partMobile)
	}
	var fields []field
	for _, k := range contentKeys {
		f := field{key: k.key}
		switch {
		case k.part == partFull:
			f = t.nameField(parts)
		case k.part == partStreet && parts[partStreet] != nil:
			f = t.streetField(parts)
		case parts[k.part] != nil:
			f = t.simpleField(k.key, k.part, parts[k.part])
		}
		if f.columns != nil {
			fields = append(fields, f)
		}
	}
	return fields
}

func (t *table) simpleField(key string, p part, c *column) field {
	f := field{key: key, text: c.placeholder(), columns: []*column{c}}
	remarks := []string{c.grounds.String(), t.empties(c)}
	switch p {
	case partEmail:
		f.apply, f.format = []string{"lower"}, "email"
	case partPhone, partMobile:
		if c.profile.share(kindPrefixed) > 0.5 {
			f.apply = []string{"split:::-1"}
			remarks = append(remarks, "without the mark before the number")
		}
		if n := c.profile.counts[kindDamaged]; n > 0 {
			remarks = append(remarks, "a spreadsheet damaged "+english.Plural(n, "number", "")+" (4.9E+11)")
		}
	case partPostal:
		if c.profile.share(kindPrefixed) > 0.5 {
			f.apply = []string{"split:::-1"}
		}
		remarks = append(remarks, t.lostZeros(c))
	case partCreated:
		if c.profile.counts[kindSlashDate] > 0 {
			remarks = append(remarks, "as it is: day and month could change places")
		}
	}
	if others := t.also(p); len(others) > 0 && p != partStreet {
		remarks = append(remarks, strings.Join(others, " and ")+" under "+english.PluralWord(len(others), "its", "their")+" own name")
	}
	f.comment = and(remarks...)
	return f
}

// lostZeros tells of postal codes that may have lost their first zero: most have
// five digits, some four.
func (t *table) lostZeros(c *column) string {
	four, five := 0, 0
	for _, cell := range c.cells {
		switch {
		case !isNumber(cell):
		case len(cell) == 4:
			four++
		case len(cell) == 5:
			five++
		}
	}
	if four == 0 || five < four*3 {
		return ""
	}
	return english.Plural(four, "row", "") + " with 4 digits: a zero lost?"
}

// nameField makes the name of its parts, or takes the whole name where the file
// has that and it is filled more often.
func (t *table) nameField(parts map[part]*column) field {
	first, middle, last, full := parts[partFirst], parts[partMiddle], parts[partLast], parts[partFull]
	if full != nil && first != nil && last == nil {
		if t.holds(full, first) {
			first = nil
		} else { // "Vorname, Name": the second is the last name
			last, full = full, nil
		}
	}
	if full != nil && full.profile.filled > t.eitherFilled(first, last) {
		first, middle, last = nil, nil, nil
	}
	if first != nil || last != nil {
		full = nil
	}
	f := field{key: "name"}
	for _, c := range []*column{full, first, middle, last} {
		if c != nil && (c != middle || first != nil && last != nil) {
			f.columns = append(f.columns, c)
		}
	}
	for _, p := range []part{partFull, partFirst, partMiddle, partLast} {
		if c := parts[p]; c != nil && !slices.Contains(f.columns, c) {
			c.part = ""
		}
	}
	var texts []string
	for _, c := range f.columns {
		texts = append(texts, c.placeholder())
	}
	f.text = strings.Join(texts, " ")
	if len(f.columns) == 3 {
		f.apply = []string{"squeeze"}
	}
	if len(f.columns) > 0 {
		f.comment = and(f.columns[0].grounds.String(), t.noneFilled(f.columns))
	}
	return f
}

// holds reports whether most cells of full hold those of part as a word.
func (t *table) holds(full, part *column) bool {
	both, held := 0, 0
	for i, cell := range part.cells {
		if cell == "" || full.cells[i] == "" {
			continue
		}
		both++
		if slices.Contains(words(full.cells[i]), joined(words(cell))) {
			held++
		}
	}
	return both > 0 && held*2 >= both
}

func (t *table) eitherFilled(columns ...*column) int {
	n := 0
	for i := range t.rows {
		if slices.ContainsFunc(columns, func(c *column) bool { return c != nil && c.cells[i] != "" }) {
			n++
		}
	}
	return n
}

func (t *table) noneFilled(columns []*column) string {
	n := len(t.rows) - t.eitherFilled(columns...)
	if n == 0 {
		return ""
	}
	return "empty in " + itoa(n) + " of " + english.Plural(len(t.rows), "row", "")
}

// streetField puts the number of the house behind the street where it has a
// column of its own. A lone address is called so.
func (t *table) streetField(parts map[part]*column) field {
	street, house := parts[partStreet], parts[partHouse]
	f := t.simpleField("street", partStreet, street)
	if house != nil {
		f.text += " " + house.placeholder()
		f.columns = append(f.columns, house)
	}
	if parts[partCity] == nil && parts[partPostal] == nil && house == nil {
		f.key = "address"
	}
	return f
}

// rest says what becomes of the columns that nothing was recognised in.
type rest struct {
	star   bool     // "*": rest takes them all
	fields []field  // those written out
	names  []string // those that rest takes
	empty  []string // without a cell in the sample
	out    []string // more than a mapping should list
}

// mostFields is how many fields are written out where rest cannot be used.
const mostFields = 400

// restOf sends on what is left: all of it by rest, unless a column must stay out.
func (t *table) restOf(used map[*column]bool, fields []field) rest {
	r := rest{star: len(t.hidden) == 0 && len(t.numbered) == 0 && !t.twice}
	keys := map[string]bool{"*": true, "importRef": true}
	for _, f := range fields {
		keys[f.key] = true
	}
	opened := map[string]bool{} // columns of which a path is used: rest leaves them out
	for c := range used {
		opened[c.inside] = true
	}
	for _, c := range t.columns {
		switch {
		case used[c] || c.inside == "" && opened[c.header] || c.inside != "" && !opened[c.inside]:
		case c.profile.filled == 0 && len(t.rows) > 0:
			if c.inside == "" {
				r.empty = append(r.empty, shown(c.header))
			}
		case r.star && c.inside == "" && !keys[c.header]:
			r.names = append(r.names, shown(c.header))
		case len(r.fields) >= mostFields:
			r.out = append(r.out, shown(c.header))
		default:
			key := freeKey(c.header, keys)
			keys[key] = true
			r.fields = append(r.fields, field{key: key, text: c.placeholder(), columns: []*column{c}})
		}
	}
	return r
}

// freeKey is the column's name, or with a number behind it when that is taken.
func freeKey(name string, taken map[string]bool) string {
	for i, key := 2, name; ; i++ {
		if !taken[key] {
			return key
		}
		key = name + "_" + itoa(i)
	}
}
