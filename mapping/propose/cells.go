package propose

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"leadferry/mapping/texts"
)

// kindsOf are the kinds that a filled and trimmed cell looks like, of which dictionary.yaml has the forms. A cell may
// be of several.
func kindsOf(text string) (kinds []string) {
	const longestJudged, mostWords = 256, 8 // bytes, words: a longer cell is prose
	d, value := known(), text
	if len(text) > longestJudged && !d.forms["object"][0].MatchString(text) {
		return []string{"prose"}
	}
	if marked := d.mark.FindStringSubmatch(text); marked != nil { // p:+49…, z:50667, as lead ads write them
		kinds, value = append(kinds, "prefixed"), marked[1]
	}
	for kind, forms := range d.forms {
		if !slices.ContainsFunc(forms, func(form *regexp.Regexp) bool { return !form.MatchString(value) }) {
			kinds = append(kinds, kind)
		}
	}
	is := func(kind string) bool { return slices.Contains(kinds, kind) }
	if is("date") {
		kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == "phone" })
	}
	list := words(value)
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
	case n == 1 && given(0) && is("letters"):
		kinds = append(kinds, "given")
	case n > 1 && (given(0) || n <= 4 && given(n-1)) && is("letters"):
		kinds = append(kinds, "person")
	case n > 1 && slices.ContainsFunc(list, isNumber) && slices.ContainsFunc(list, d.isStreet):
		kinds = append(kinds, "street")
	}
	return kinds
}

// profile is what a column's cells have in common. It holds no cell.
type profile struct {
	rows     int
	filled   int // cells that hold something
	distinct int // different ones among them
	longest  int // characters
	total    int // characters of all filled cells
	counts   map[string]int
	alike    bool // the cells are of one shape, such as A-9 for L-104204
	counting bool // the cells are 1, 2, 3 … in the order of the rows
}

// measure looks at all cells of a column; those that hold nothing are "".
func measure(cells []string) *profile {
	p := &profile{rows: len(cells), counting: true, counts: map[string]int{}}
	seen, shapes := map[string][]string{}, map[string]bool{}
	for _, text := range cells {
		if text == "" {
			continue
		}
		p.filled++
		n := utf8.RuneCountInString(text)
		p.longest, p.total = max(p.longest, n), p.total+n
		if _, again := seen[text]; !again {
			seen[text] = kindsOf(text)
			shapes[shape(text)] = true
		}
		for _, kind := range seen[text] {
			p.counts[kind]++
		}
		p.counting = p.counting && text == strconv.Itoa(p.filled)
	}
	p.distinct, p.alike = len(seen), len(shapes) == 1
	p.counting = p.counting && p.filled > 1
	return p
}

// shape is a text with A for each run of letters and 9 for each of digits.
func shape(text string) string {
	classes := strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9':
			return '9'
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf:
			return 'A'
		}
		return r
	}, text)
	return string(slices.Compact([]byte(classes)))
}

// share is the part of the filled cells that are of a kind, 0 to 1.
func (p *profile) share(kind string) float64 { return ratio(p.counts[kind], p.filled) }

// fill is the part of the rows that hold something, 0 to 1.
func (p *profile) fill() float64 { return ratio(p.filled, p.rows) }

// nothingLike reports whether few cells are of any of the kinds.
func (p *profile) nothingLike(kinds ...string) bool {
	return !slices.ContainsFunc(kinds, func(kind string) bool { return p.share(kind) > 0.5 })
}

func ratio(n, of int) float64 { return float64(n) / float64(max(1, of)) }

// dateLayout is a way to write dates.
type dateLayout struct {
	name string
	read texts.Conversion
}

// dateLayouts are all that are tried, the likeliest first.
var dateLayouts = sync.OnceValue(func() (list []dateLayout) {
	dates := known().Dates
	for _, day := range dates.Days {
		for _, time := range dates.Times {
			for _, language := range append([]string{""}, dates.Languages...) {
				if language == "" || strings.Contains(day, "MMM") {
					read, _ := texts.Date(day + time + language)
					list = append(list, dateLayout{day + time + language, read})
				}
			}
		}
	}
	return list
})

// dateStep is the step that makes ISO dates of a column, and what a person should know of it. A column in which day and
// month could change places stays as it is, and the person is asked.
func (c *column) dateStep() (step, remark string) {
	const mostLayouts = 3
	swap := strings.NewReplacer("D", "M", "M", "D")
	var rest, names, swapped []string // cells without layout, layouts
	for _, cell := range c.cells {
		if cell != "" && !texts.IsDate(cell) {
			rest = append(rest, cell)
		}
	}
	slices.Sort(rest)
	rest = slices.Compact(rest)
	for len(rest) > 0 && len(names) < mostLayouts {
		best, left := "", map[string][]string{} // cells that a layout leaves over which reads the first
		for _, l := range dateLayouts() {
			if _, ok := l.read(rest[0]); ok {
				left[l.name] = slices.DeleteFunc(slices.Clone(rest), func(cell string) bool {
					_, ok := l.read(cell)
					return ok
				})
				if best == "" || len(left[l.name]) < len(left[best]) {
					best = l.name
				}
			}
		}
		if best == "" {
			break
		}
		other := swap.Replace(best)
		if cells, reads := left[other]; !reads || len(cells) > len(left[best]) {
			other = best
		}
		names, swapped, rest = append(names, best), append(swapped, other), left[best]
	}
	step, other := "date:"+strings.Join(names, "|"), "date:"+strings.Join(swapped, "|")
	_, fault := texts.Date(strings.Join(names, "|"))
	switch {
	case len(rest) > 0 || names != nil && fault != nil:
		return "", "? sent as it stands: not all cells are dates, or not in one form"
	case !slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, "YYYY-") }):
		return "", "" // they are ISO dates, perhaps with a blank before the time
	case step != other:
		return "", "? as it is: day or month first? Say apply: [" + quoted(step) + "] or [" + quoted(other) + "]"
	}
	for _, sign := range []string{"/", ".", "-"} {
		if strings.Contains(step, "M"+sign+"D"+sign) && strings.Contains(step, "D"+sign+"M"+sign) {
			return step, "? some dates have the day first, others the month"
		}
	}
	return step, ""
}
