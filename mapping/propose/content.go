package propose

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dustin/go-humanize/english"

	"leadferry/mapping/texts"
)

// field is a key of the content and what fills it: its columns, with blanks between.
type field struct {
	Key     string
	Comment string
	columns []*column
	apply   string
	format  string
	refused int // rows whose value the format refuses, few enough to be mistakes
}

func (d *draft) decideContent() {
	if d.parts[partPhone] == nil && d.parts[partMobile] != nil {
		d.parts[partPhone] = d.parts[partMobile]
		delete(d.parts, partMobile)
	}
	for _, r := range rules {
		c := d.parts[r.part]
		switch {
		case r.part == partFull:
			if f := d.nameField(); len(f.columns) > 0 {
				d.fields = append(d.fields, f)
			}
		case r.part == partStreet && c != nil:
			d.fields = append(d.fields, d.streetField(r, c))
		case r.key != "" && c != nil:
			d.fields = append(d.fields, d.fieldOf(r, c))
		}
	}
}

// fieldOf makes the field of a column by its rule.
func (d *draft) fieldOf(r rule, c *column) field {
	f := field{Key: r.key, columns: []*column{c}, apply: r.apply, format: r.format}
	if r.marked && c.profile.share(kindPrefixed) > 0.5 {
		f.apply = "split:::-1"
	}
	remark := ""
	switch {
	case r.remark != nil:
		remark = r.remark(c)
	case r.part == partCreated:
		f.apply, remark = c.dateStep()
	}
	if step := d.phoneStep(c); r.like == kindPhone && f.apply == "" && step != "" {
		f.apply, remark = step, and(remark, "? every number is one of the plan")
	}
	f.Comment = and(c.why, d.Empties(c), remark)
	return f
}

// phoneStep is the step that makes international numbers of all that the column holds, or "": by the country in another column, or by
// the one that most of the numbers with + are of.
func (d *draft) phoneStep(c *column) string {
	fits := func(read func(row int) bool) bool {
		for i, cell := range c.cells {
			if cell != "" && !read(i) {
				return false
			}
		}
		return c.profile.filled > 0
	}
	regions := map[string]int{}
	for _, cell := range c.cells {
		if region := texts.Region(cell); region != "" {
			regions[region]++
		}
	}
	for _, country := range slices.SortedFunc(maps.Keys(regions), func(a, b string) int { return cmp.Or(regions[b]-regions[a], cmp.Compare(a, b)) }) {
		if read, _ := texts.E164(country); read != nil && regions[country]*2 > c.profile.filled && fits(func(i int) bool { _, ok := read(c.cells[i]); return ok }) {
			return "e164:" + country
		}
	}
	if of := d.parts[partCountry]; of != nil && clearForm().MatchString(of.header) && fits(func(i int) bool { _, ok := texts.E164In(of.cells[i], c.cells[i]); return ok }) {
		return "e164:" + of.placeholder()
	}
	return ""
}

func phoneRemark(c *column) string {
	mark, damage := "", ""
	if c.profile.share(kindPrefixed) > 0.5 {
		mark = "without the mark before the number"
	}
	if n := c.profile.counts[kindDamaged]; n > 0 {
		damage = "? a spreadsheet damaged " + english.Plural(n, "number", "") + " (4.9E+11)"
	}
	return and(mark, damage)
}

// nameField makes the name of its parts, or takes the whole name where the file has that and it is filled more often.
func (d *draft) nameField() field {
	first, middle, last, full := d.parts[partFirst], d.parts[partMiddle], d.parts[partLast], d.parts[partFull]
	if full != nil && first != nil && last == nil {
		if holds(full, first) {
			first = nil
		} else { // "Vorname, Name": the second is the last name
			last, full = full, nil
		}
	}
	eastAsian := func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
	}
	if last != nil && strings.ContainsFunc(last.header, eastAsian) {
		first, last = last, first // the family name comes first there
	}
	f := field{Key: "name", columns: present(first, last)}
	switch {
	case full != nil && (len(f.columns) == 0 || full.profile.filled > d.filledRows(f.columns)):
		f.columns = []*column{full}
	case len(f.columns) == 2 && middle != nil:
		f.columns = []*column{first, middle, last}
		f.apply = "squeeze"
	}
	for _, p := range []part{partFull, partFirst, partMiddle, partLast} {
		if c := d.parts[p]; c != nil && !slices.Contains(f.columns, c) {
			c.part = ""
		}
	}
	if len(f.columns) > 0 {
		f.Comment = and(f.columns[0].why, d.Empties(f.columns...))
	}
	return f
}

func present(columns ...*column) []*column {
	return slices.DeleteFunc(columns, func(c *column) bool { return c == nil })
}

func holds(full, part *column) bool {
	both, held := 0, 0
	for i, cell := range part.cells {
		if cell == "" || full.cells[i] == "" {
			continue
		}
		both++
		if slices.Contains(words(full.cells[i]), joined(cell)) {
			held++
		}
	}
	return both > 0 && held*2 >= both
}

func (t *table) filledRows(columns []*column) int {
	n := 0
	for i := range t.In.Rows {
		if slices.ContainsFunc(columns, func(c *column) bool { return c.cells[i] != "" }) {
			n++
		}
	}
	return n
}

// streetField puts the number of the house behind the street where it has a
// column of its own. A lone address is called so.
func (d *draft) streetField(r rule, street *column) field {
	f := d.fieldOf(r, street)
	if house := d.parts[partHouse]; house != nil {
		f.columns = append(f.columns, house)
	} else if d.parts[partCity] == nil && d.parts[partPostal] == nil {
		f.Key = "address"
	}
	return f
}

// rest says what becomes of the columns that nothing was recognised in.
type rest struct {
	Names  []string // those that rest takes
	Except []string // those that it has to leave out
	Empty  []string // without a cell in the sample
	fields []field  // those whose name is taken
}

// decideRest sends on what fields, key, organization and status leave over.
func (d *draft) decideRest() {
	used, keys := d.taken()
	r := rest{Except: slices.Clone(d.twice)}
	for _, c := range d.Hidden {
		r.Except = append(r.Except, cmp.Or(c.inside, c.header))
	}
	slices.Sort(r.Except)
	r.Except = slices.Compact(r.Except)
	isExcept := func(name string) bool {
		_, found := slices.BinarySearch(r.Except, name)
		return found
	}
	for _, c := range d.columns {
		switch {
		case used[c] || c.inside != "" || isExcept(c.header):
		case c.profile.filled == 0 && len(d.In.Rows) > 0:
			r.Empty = append(r.Empty, c.header)
		case keys[c.header]:
			key := c.header
			for i := 2; keys[key]; i++ {
				key = c.header + "_" + strconv.Itoa(i)
			}
			keys[key] = true
			r.fields = append(r.fields, field{Key: key, columns: []*column{c}})
		default:
			r.Names = append(r.Names, c.header)
			keys[c.header] = true
		}
	}
	d.Rest = r
}

// taken are the columns that fields, key, organization and status use, and the keys of the content that are no longer free.
func (d *draft) taken() (used map[*column]bool, keys map[string]bool) {
	used, keys = map[*column]bool{}, map[string]bool{"*": true, "importRef": true}
	for _, f := range d.fields {
		keys[f.Key] = true
		for _, c := range f.columns {
			used[c] = true
		}
	}
	used[d.Key.Column] = used[d.Key.Column] || d.Key.External
	if d.Organization.Live || d.Organization.Words != nil {
		used[d.Organization.Column] = true
	}
	if d.Status != nil && d.Status.Live {
		used[d.Status.Column] = true
	}
	return used, keys
}
