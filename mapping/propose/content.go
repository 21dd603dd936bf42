package propose

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dustin/go-humanize/english"

	"leadferry/internal/spelling"
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
			d.fields = append(d.fields, d.fieldOf(r, c, d.also(r)))
		}
	}
}

// fieldOf makes the field of a column by its rule; also is one more remark, or "".
func (d *draft) fieldOf(r rule, c *column, also string) field {
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
	f.Comment = and(c.why, d.Empties(c), remark, also)
	return f
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

// lostZeros tells of postal codes that may have lost their first zero: most have five digits, some four.
func lostZeros(c *column) string {
	digits := map[int]int{}
	for _, cell := range c.cells {
		if isNumber(cell) {
			digits[len(cell)]++
		}
	}
	if digits[4] == 0 || digits[5] < digits[4]*3 {
		return ""
	}
	return "? " + english.Plural(digits[4], "row", "") + " with 4 digits: a zero lost?"
}

func (d *draft) also(r rule) string {
	var names []string
	for _, c := range d.columns {
		if score, _ := r.score(c); c.part == "" && c.profile.filled > 0 && score >= leastScore && len(names) < 3 {
			names = append(names, shown(c.header))
		}
	}
	if names == nil {
		return ""
	}
	return strings.Join(names, " and ") + " under " + english.PluralWord(len(names), "its", "their") + " own name"
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
	f := d.fieldOf(r, street, "")
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
	Out    []string // more than a mapping should list
	fields []field  // those written out
}

// mostFields is how many fields are written out where rest cannot be used, and mostExcepted how
// many columns it leaves out by name.
const (
	mostFields   = 400
	mostExcepted = 40
)

// excepted are the columns that must stay out, by the names that rest leaves out; not all where
// one has none that fits it alone.
func (d *draft) excepted() (names []string, all bool) {
	for _, c := range slices.Concat(d.Hidden, d.Numbered) {
		switch {
		case c.inside != "" && slices.ContainsFunc(d.Numbered, func(n *column) bool { return n.header == c.inside }):
		case c.inside != "" || strings.Contains(c.header, "*") || len(names) == mostExcepted:
			return nil, false
		default:
			names = append(names, c.header)
		}
	}
	return names, true
}

// decideRest sends on what fields, key, organization and status leave over: by rest where
// that can be told what must stay out, else one by one.
func (d *draft) decideRest() {
	used, opened, keys := d.taken()
	except, takesAll := d.excepted()
	takesAll = takesAll && !d.twice
	d.Rest = rest{}
	r := &d.Rest
	if takesAll {
		r.Except = except
	}
	for _, c := range d.columns {
		switch {
		case used[c] || c.inside == "" && opened[c.header] || c.inside != "" && !opened[c.inside]:
		case c.profile.filled == 0 && len(d.In.Rows) > 0:
			if c.inside == "" {
				r.Empty = append(r.Empty, c.header)
			}
		case takesAll && c.inside == "" && !keys[c.header]:
			r.Names = append(r.Names, c.header)
		case len(r.fields) >= mostFields:
			r.Out = append(r.Out, c.header)
		default:
			key := freeKey(c.header, keys)
			keys[key] = true
			r.fields = append(r.fields, field{Key: key, columns: []*column{c}})
		}
	}
}

// taken are the columns that fields, key, organization and status use, the names of those of which they use a part, which
// rest leaves out, and the keys of the content that are no longer free.
func (d *draft) taken() (used map[*column]bool, opened, keys map[string]bool) {
	used, opened, keys = map[*column]bool{}, map[string]bool{}, map[string]bool{"*": true, "importRef": true}
	use := func(columns ...*column) {
		for _, c := range columns {
			used[c], opened[c.inside] = true, true
		}
	}
	for _, f := range d.fields {
		keys[f.Key] = true
		use(f.columns...)
	}
	if d.Key.External {
		use(d.Key.Column)
	}
	if d.Organization.Live || d.Organization.Words != nil {
		use(d.Organization.Column)
	}
	if d.Status != nil && d.Status.Live {
		use(d.Status.Column)
	}
	return used, opened, keys
}

// freeKey is the column's name, or with a number behind it when that is taken.
func freeKey(name string, taken map[string]bool) string {
	key := name
	for i := 2; taken[key]; i++ {
		key = name + "_" + strconv.Itoa(i)
	}
	return key
}

const dateTime = `(?:(,? |T)([0-9]{1,2}):[0-9]{2}(:[0-9]{2})?( ?[AaPp][Mm])?)?$`

// Dates in numbers, perhaps with a time: with the year last, or first as in eastern Asia. ISO dates are neither.
var (
	yearLast  = spelling.Form(`^([0-9]{1,2})([./-])([0-9]{1,2})([./-])([0-9]{4}|[0-9]{2})` + dateTime)
	yearFirst = spelling.Form(`^[0-9]{4}(/|\. ?|年|년 ?)([0-9]{1,2})(/|\. ?|月|월 ?)([0-9]{1,2})(\.|日|일)?` + dateTime)
)

// dateForm is a way in which numeric dates of a column are written.
type dateForm struct {
	sign       string // between the numbers, or behind a year that is first
	year, time string // in letters of the step date
	short      bool   // some days or months have one digit

	first      bool   // the year is
	month, day string // signs behind them then
}

// dateForms are the ways of a column, and what its numbers say of the order of day and
// month, by the sign between them.
type dateForms struct {
	list               []dateForm
	dayFirst, dayAfter map[string]bool // some first, or second, number is more than 12
}

// dateStep is the step that makes ISO dates of a column whose dates are in numbers, and what a person should know of
// it. A column in which day and month could change places stays as it is, and the person is asked.
func (c *column) dateStep() (step, remark string) {
	const mostForms = 3 // in which one column may have its dates
	forms := dateForms{dayFirst: map[string]bool{}, dayAfter: map[string]bool{}}
	others := false
	for _, cell := range c.cells {
		last, first := yearLast().FindStringSubmatch(cell), yearFirst().FindStringSubmatch(cell)
		switch {
		case last != nil && last[2] == last[4]:
			sign, one, other := last[2], last[1], last[3]
			forms.dayFirst[sign], forms.dayAfter[sign] = forms.dayFirst[sign] || moreThan12(one), forms.dayAfter[sign] || moreThan12(other)
			forms.add(dateForm{sign: sign, year: strings.Repeat("Y", len(last[5])), time: timeOf(last[6], last[7], last[8], last[9])}, one, other)
		case first != nil && (first[1] == "/") == (first[3] == "/"):
			form := dateForm{sign: first[1], month: first[3], day: first[5], first: true, year: "YYYY", time: timeOf(first[6], first[7], first[8], first[9])}
			forms.add(form, first[2], first[4])
		default:
			others = others || cell != ""
		}
	}
	switch {
	case len(forms.list) == 0:
		return "", ""
	case others, len(forms.list) > mostForms:
		return "", "? as it is: its dates are written in several ways"
	}
	for _, f := range forms.list {
		if forms.dayFirst[f.sign] && forms.dayAfter[f.sign] {
			return "", "? as it is: in some rows the day comes first, in others the month"
		}
	}
	if sure := forms.step("DM"); sure == forms.step("MD") {
		return sure, ""
	}
	ways := "Say apply: [" + quoted(forms.step("DM")) + "] or [" + quoted(forms.step("MD")) + "]"
	return "", "? as it is: day or month first? " + strings.ReplaceAll(ways, " ", noBreak)
}

func moreThan12(number string) bool {
	n, _ := strconv.Atoi(number)
	return n > 12
}

// add takes the form of a date, and its day and month in either order.
func (f *dateForms) add(form dateForm, one, other string) {
	i := slices.IndexFunc(f.list, func(known dateForm) bool {
		known.short = false
		return known == form
	})
	if i < 0 {
		i, f.list = len(f.list), append(f.list, form)
	}
	f.list[i].short = f.list[i].short || len(one) == 1 || len(other) == 1
}

// timeOf is the time of a date in letters, with what stands before it.
func timeOf(before, hour, seconds, half string) string {
	if hour == "" {
		return ""
	}
	text := before + "HH:mm"
	if half != "" {
		text = before + "h:mm"
	}
	if seconds != "" {
		text += ":ss"
	}
	if half != "" {
		text += strings.Repeat(" ", len(half)-len("am")) + "a"
	}
	return text
}

// step reads each of the forms, with day and month in the order of the letters where
// nothing tells it: dates with points begin with the day.
func (f *dateForms) step(unsure string) string {
	var layouts []string
	for _, form := range f.list {
		order := unsure
		switch {
		case f.dayAfter[form.sign]:
			order = "MD"
		case f.dayFirst[form.sign], form.sign == ".":
			order = "DM"
		}
		if form.first {
			order = "MD"
		}
		first, second := order[:1], order[1:]
		if !form.short {
			first, second = first+first, second+second
		}
		if form.first {
			layouts = append(layouts, form.year+form.sign+first+form.month+second+form.day+form.time)
			continue
		}
		layouts = append(layouts, first+form.sign+second+form.sign+form.year+form.time)
	}
	return "date:" + strings.Join(layouts, "|")
}
