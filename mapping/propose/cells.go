package propose

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
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
