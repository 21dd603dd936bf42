package propose

import (
	"cmp"
	"fmt"
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
}

func (d *draft) decideContent() {
	if mobile := d.parts["mobile"]; d.parts["phone"] == nil && mobile != nil {
		d.parts["phone"] = mobile
		delete(d.parts, "mobile")
	}
	if house := d.parts["house"]; house != nil && d.parts["street"] == nil {
		house.part = ""
	}
	for _, r := range known().Parts {
		c := d.parts[r.Part]
		switch {
		case r.Part == "full":
			if f := d.nameField(); len(f.columns) > 0 {
				d.fields = append(d.fields, f)
			}
		case r.Key != "" && c != nil:
			d.fields = append(d.fields, d.fieldOf(r, c))
		}
	}
}

// fieldOf makes the field of a column by its rule.
func (d *draft) fieldOf(r rule, c *column) field {
	f := field{Key: r.Key, columns: []*column{c}, apply: r.Apply, format: r.Format}
	remark, damage := "", ""
	switch {
	case r.Marked && c.profile.share("prefixed") > 0.5:
		f.apply, remark = "split:::-1", "without the mark before the number"
	case r.Part == "created":
		f.apply, remark = c.dateStep()
	case r.Like == "phone":
		if f.apply = d.phoneStep(c); f.apply != "" {
			remark = "? every number is one of the plan"
		}
	case r.Part == "street": // a lone address is called so
		f.columns = d.present("street", "house")
		if len(d.present("house", "city", "postal")) == 0 {
			f.Key = "address"
		}
	}
	if r.Format == "email" {
		remark = f.checkEmail(c)
	}
	if n := c.profile.counts["damaged"]; n > 0 && r.Like == "phone" {
		damage = "? a spreadsheet damaged " + english.Plural(n, "number", "") + " (4.9E+11)"
	}
	f.Comment = and(c.why, d.Empties(c), remark, damage)
	return f
}

// checkEmail takes the format back where more than a few cells break it, and says how many do.
func (f *field) checkEmail(c *column) (remark string) {
	const mostMistakes = 20 // one in so many filled rows
	n := 0
	for _, cell := range c.cells {
		if cell != "" && !texts.IsEmail(cell) {
			n++
		}
	}
	bad := fmt.Sprintf("%d of %s", n, english.Plural(c.profile.filled, "row", ""))
	switch {
	case n == 0:
		return ""
	case n*mostMistakes <= c.profile.filled:
		return bad + " would be refused: correct the file, or say on_invalid: drop"
	}
	f.format = ""
	return "? not checked as e-mail addresses: " + bad + " hold none and would be refused"
}

// phoneStep is the step that makes international numbers of all that the column holds, or "": by the country in
// another column, or by the one that most of the numbers with + are of.
func (d *draft) phoneStep(c *column) string {
	fits := func(country func(row int) string) bool {
		for i, cell := range c.cells {
			if _, ok := texts.E164In(country(i), cell); cell != "" && !ok {
				return false
			}
		}
		return true
	}
	regions := map[string]int{"": 0}
	for _, cell := range c.cells {
		if region := texts.Region(cell); region != "" {
			regions[region]++
		}
	}
	country := slices.MaxFunc(slices.Sorted(maps.Keys(regions)),
		func(a, b string) int { return regions[a] - regions[b] })
	if regions[country]*2 > c.profile.filled && fits(func(int) string { return country }) {
		return "e164:" + country
	}
	if of := d.parts["country"]; of != nil && clearForm().MatchString(of.header) &&
		fits(func(row int) string { return of.cells[row] }) {
		return "e164:" + of.placeholder()
	}
	return ""
}

// nameField makes the name of its parts, or takes the whole name where the file has that and it is filled more often.
func (d *draft) nameField() field {
	first, middle, last, full := d.parts["first"], d.parts["middle"], d.parts["last"], d.parts["full"]
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
	f := field{Key: "name"}
	for _, c := range []*column{first, last} {
		if c != nil {
			f.columns = append(f.columns, c)
		}
	}
	if last != nil && strings.ContainsFunc(last.header, eastAsian) {
		slices.Reverse(f.columns) // the family name comes first there
	}
	switch {
	case full != nil && (len(f.columns) == 0 || full.profile.filled > d.filledRows(f.columns)):
		f.columns = []*column{full}
	case len(f.columns) == 2 && middle != nil:
		f.columns, f.apply = slices.Insert(f.columns, 1, middle), "squeeze"
	}
	for _, c := range d.present("full", "first", "middle", "last") {
		if !slices.Contains(f.columns, c) {
			c.part = ""
		}
	}
	if len(f.columns) > 0 {
		f.Comment = and(f.columns[0].why, d.Empties(f.columns...))
	}
	return f
}

// holds reports whether most cells of a column of whole names hold those of the part.
func holds(full, part *column) bool {
	both, held := 0, 0
	for i, cell := range part.cells {
		if cell != "" && full.cells[i] != "" {
			both++
			if slices.Contains(words(full.cells[i]), joined(cell)) {
				held++
			}
		}
	}
	return both > 0 && held*2 >= both
}

// rest says what to do with columns that were not recognised.
type rest struct {
	Names  []string // those that rest takes
	Except []string // those that it has to leave out
	Empty  []string // without a cell in the sample
	fields []field  // those whose name is taken
}

// decideRest sends on what fields, key, organization and status leave over.
func (d *draft) decideRest() {
	keys := map[string]bool{"*": true, "importRef": true}
	for _, f := range d.fields {
		keys[f.Key] = true
	}
	r := rest{Except: slices.Clone(d.twice)}
	for _, c := range d.Hidden {
		r.Except = append(r.Except, cmp.Or(c.inside, c.header))
	}
	slices.Sort(r.Except)
	r.Except = slices.Compact(r.Except)
	for _, c := range d.columns {
		_, isExcept := slices.BinarySearch(r.Except, c.header)
		switch {
		case c.part != "" || c == d.Key.Column && d.Key.External || c.inside != "" || isExcept:
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
