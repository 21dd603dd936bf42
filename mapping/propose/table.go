package propose

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"leadferry/internal/spelling"
	"leadferry/mapping/texts"
)

const (
	maxNameSize = 400         // bytes of a column's name in the mapping: a YAML key has at most 1,024
	reserved    = "leadferry" // begins the names of columns that leadferry adds
)

// column is one of the input's columns.
type column struct {
	header  string
	cells   []string
	name    name
	padded  bool // blanks are around some cells in the file
	profile *profile
	part    part   // its part, or ""
	why     string // the remark if that is a guess
}

// read takes the columns of the input that a mapping can name.
func (d *draft) read() {
	in := d.In
	if in.Format != "jsonl" && !in.NoHeader && BeginsWithLead(in.Columns, in.Rows) {
		d.Headless = true
		d.In.Rows = append([][]string{in.Columns}, in.Rows...)
		d.In.Columns = nil
		for i := range in.Columns {
			d.In.Columns = append(d.In.Columns, "col"+strconv.Itoa(i+1))
		}
	}
	d.findNull()
	times := map[string]int{}
	for _, header := range d.In.Columns {
		times[header]++
	}
	for i, header := range d.In.Columns {
		switch {
		case strings.HasPrefix(header, reserved+"_") || in.Format == "jsonl" && header == reserved:
		case times[header] > 1 || !nameable(header):
			d.Nameless = append(d.Nameless, header)
			if times[header] > 1 && strings.TrimSpace(header) != "" && !slices.Contains(d.Except, header) {
				d.Except = append(d.Except, header)
			}
		default:
			cells := cellsOf(d.In.Rows, i, d.Null)
			c := &column{header: header, cells: cells, name: readName(header), profile: measure(cells)}
			c.padded = slices.ContainsFunc(d.In.Rows,
				func(row []string) bool { return row[i] != strings.TrimSpace(row[i]) })
			if c.name.isSecret() {
				d.Hidden, d.Except = append(d.Hidden, header), append(d.Except, header)
				continue
			}
			if d.columns = append(d.columns, c); c.profile.share("object") > 0.5 {
				d.Objects = append(d.Objects, header)
			}
		}
	}
	slices.Sort(d.Except)
}

// BeginsWithLead reports whether the first line of a table is a lead instead of a header. A lead has an e-mail address,
// a phone number with a plus, or a person's name above other names. Or it has hardly any known name, and two of its
// cells look like the cells below or repeat there, or one begins to count the rows. All rows have equally many cells.
func BeginsWithLead(first []string, rows [][]string) bool {
	const leastUnnamed = 4 // one column in this many may have a known name by chance: there is a city called By
	alike, named, counts := 0, 0, false
	for i, cell := range first {
		cells, cell := cellsOf(rows, i, nil), strings.TrimSpace(cell)
		below := measure(cells)
		tells := func(kind string) bool {
			sure := slices.Contains([]string{"phone", "uuid", "date", "url", "zero-led"}, kind) // no header has them
			return sure && len(rows) == 0 || (sure || kind == "code" || kind == "number") && below.share(kind) > 0.5
		}
		isName := func(kind string) bool { return (kind == "given" || kind == "person") && below.share(kind) > 0.5 }
		switch kinds := kindsOf(cell); {
		case strings.HasPrefix(cell, reserved):
		case slices.Contains(kinds, "email"), slices.Contains(kinds, "phone") && cell[0] == '+':
			return true
		case readName(cell).known():
			named++
		case slices.ContainsFunc(kinds, isName):
			return true
		case cell != "" && slices.Contains(cells, cell), slices.ContainsFunc(kinds, tells):
			alike++
			counts = counts || goesOn(cell, cells)
		}
	}
	return (alike > 1 || counts) && named*leastUnnamed < len(first)
}

// goesOn reports whether the cells count on from first.
func goesOn(first string, cells []string) bool {
	n, err := strconv.Atoi(first)
	return err == nil && len(cells) > 1 &&
		!slices.ContainsFunc(cells, func(next string) bool { n++; return next != strconv.Itoa(n) })
}

// nameable reports whether a placeholder can name the column: braces, @ and blanks at the ends have other meanings.
func nameable(header string) bool {
	return header != "" && header == strings.TrimSpace(header) && header[0] != '@' &&
		utf8.ValidString(header) && !strings.Contains(header, "}") && len(quoted(header)) <= maxNameSize
}

// cellsOf returns the cells of a column, trimmed. A cell that null lists counts as empty.
func cellsOf(rows [][]string, column int, null []string) []string {
	cells := make([]string, len(rows))
	for i, row := range rows {
		if cell := strings.TrimSpace(row[column]); !slices.Contains(null, cell) {
			cells[i] = cell
		}
	}
	return cells
}

// findNull finds well-known words for "nothing" in the cells. It skips columns of names: some people are called Null.
func (d *draft) findNull() {
	for i, header := range d.In.Columns {
		if readName(header).strength("first", "last", "full") > 0 {
			continue
		}
		for _, cell := range cellsOf(d.In.Rows, i, d.Null) {
			if slices.Contains(known().Null, cell) && !slices.Contains(d.Null, cell) {
				d.Null = append(d.Null, cell)
			}
		}
	}
	slices.Sort(d.Null)
}

// Placeholder returns the placeholder for the column's cell.
func (c *column) Placeholder() string {
	if strings.HasPrefix(c.header, "{") { // two braces would mean one brace of text
		return "{ " + c.header + "}"
	}
	return "{" + c.header + "}"
}

var markForm = spelling.Form(`^(?:[a-z]{1,2}:|'|=")([+0-9][^"]*)"?$`)

// kindsOf returns the kinds that a cell looks like, by the forms of dictionary.yaml. The cell is trimmed and not empty.
func kindsOf(text string) (kinds []string) {
	const longestJudged, mostWords = 256, 8 // in bytes and words: a longer cell is prose
	d, value := known(), text
	if len(text) > longestJudged && !d.Forms["object"][0].MatchString(text) {
		return []string{"prose"}
	}
	if marked := markForm().FindStringSubmatch(text); marked != nil { // p:+49… of lead ads, '+49… and ="+49…"
		kinds, value = append(kinds, "prefixed"), marked[1]
	}
	for kind, forms := range d.Forms {
		if !slices.ContainsFunc(forms, func(form *regexp.Regexp) bool { return !form.MatchString(value) }) {
			kinds = append(kinds, kind)
		}
	}
	list, isName := words(value), slices.Contains(kinds, "letters")
	if len(list) > mostWords {
		return kinds
	}
	for _, section := range []part{"yesno", "country", "state"} {
		if d.has(section, strings.Join(list, "")) {
			kinds = append(kinds, string(section))
		}
	}
	given := func(at int) bool { return d.has("given", list[at]) }
	switch n := len(list); {
	case n == 1 && given(0) && isName:
		kinds = append(kinds, "given")
	case n > 1 && (given(0) || n <= 4 && given(n-1)) && isName:
		kinds = append(kinds, "person")
	}
	return kinds
}

// profile says what a column's cells have in common. It holds no cell.
type profile struct {
	rows, filled, distinct int // distinct: how many different filled cells
	longest, total         int // characters of filled cells

	counts   map[string]int
	counting bool // the cells are 1, 2, 3 … in the order of the rows
}

// measure looks at all cells of a column. An empty cell is "".
func measure(cells []string) *profile {
	p := &profile{rows: len(cells), counting: true, counts: map[string]int{}}
	seen := map[string][]string{}
	for _, text := range cells {
		if text == "" {
			continue
		}
		p.filled++
		n := utf8.RuneCountInString(text)
		p.longest, p.total = max(p.longest, n), p.total+n
		if _, again := seen[text]; !again {
			seen[text] = kindsOf(text)
		}
		for _, kind := range seen[text] {
			p.counts[kind]++
		}
		p.counting = p.counting && text == strconv.Itoa(p.filled)
	}
	p.distinct = len(seen)
	p.counting = p.counting && p.filled > 1
	return p
}

// share returns the share of the filled cells that are of a kind, 0 to 1.
func (p *profile) share(kind string) float64 { return ratio(p.counts[kind], p.filled) }

// nothingLike reports whether at most half of the filled cells are of each kind.
func (p *profile) nothingLike(kinds ...string) bool {
	return !slices.ContainsFunc(kinds, func(kind string) bool { return p.share(kind) > 0.5 })
}

func ratio(n, of int) float64 { return float64(n) / float64(max(1, of)) }

// dateLayouts returns the layouts to try, the likeliest first.
func dateLayouts() (list []string) {
	dates := known().Dates
	for _, day := range dates.Days {
		for _, time := range dates.Times {
			for _, language := range append([]string{""}, dates.Languages...) {
				if language == "" || strings.Contains(day, "MMM") {
					list = append(list, day+time+language)
				}
			}
		}
	}
	return list
}

// dateStep returns the step that makes ISO dates of a column, and a remark. If the day or the month may come first, or
// the dates have several forms, the column stays as it is and the remark asks the user.
func (c *column) dateStep() (step, remark string) {
	dates := slices.DeleteFunc(slices.Clone(c.cells), func(cell string) bool {
		return cell == "" || texts.IsDate(strings.Replace(cell, " ", "T", 1)) // or with a blank before the time
	})
	fits := slices.DeleteFunc(dateLayouts(), func(layout string) bool {
		read, _ := texts.Date(layout)
		return slices.ContainsFunc(dates, func(cell string) bool { _, ok := read(cell); return !ok })
	})
	switch {
	case len(dates) == 0:
		return "", ""
	case len(fits) == 0:
		return "", "? sent as it is: not all cells are dates, or not in one form"
	}
	for _, other := range fits {
		if other[0] != fits[0][0] {
			return "", "? as it is: the day or the month may be first; say apply: [" + quoted("date:"+fits[0]) + "] or [" +
				quoted("date:"+other) + "]"
		}
	}
	return "date:" + fits[0], ""
}
