package propose

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/mapping"
)

const (
	maxNameSize = 400 // bytes of a column's name as the mapping writes it: YAML has keys of at most 1,024
	reserved    = "leadferry"
)

// column is one of the input's columns, or a path into one of them.
type column struct {
	header  string
	inside  string // the column that the path goes into, or ""
	cells   []string
	name    name
	profile *profile
	part    part   // what it was found to be, or ""
	why     string // what that rests on
}

// table is the input as the proposal sees it. Exported names are those that proposal.tmpl
// has, here and in what a draft holds.
type table struct {
	In       Input
	Headless bool      // the first line was a lead, and the columns have made-up names
	columns  []*column // those that a mapping can name, in the input's order, paths after their column
	paths    []*column // all paths into columns
	Nameless []string  // headers that no mapping can name
	twice    []string  // those of them that stand twice, which rest must leave out
	null     []string  // cells that count as empty
	Hidden   []*column // columns whose cells no lead should carry
}

func newTable(in Input) *table {
	t := &table{In: in, Headless: in.NoHeader}
	if in.Format != "jsonl" && !in.NoHeader && BeginsWithLead(in.Columns, in.Rows) {
		t.Headless = true
		t.In.Rows = append([][]string{in.Columns}, in.Rows...)
		t.In.Columns = MadeUp(len(in.Columns))
	}
	t.findNull()
	times := map[string]int{}
	for _, header := range t.In.Columns {
		times[header]++
	}
	for i, header := range t.In.Columns {
		switch {
		case strings.HasPrefix(header, reserved+"_") || in.Format == "jsonl" && header == reserved:
		case times[header] > 1 || !nameable(header):
			t.Nameless = append(t.Nameless, header)
			if times[header] > 1 && strings.TrimSpace(header) != "" && !slices.Contains(t.twice, header) {
				t.twice = append(t.twice, header)
			}
		default:
			t.add(header, "", cellsOf(t.In.Rows, i, t.null))
		}
	}
	if in.Format == "jsonl" {
		t.addPaths()
	}
	t.columns = slices.DeleteFunc(t.columns, func(c *column) bool {
		if c.name.isSecret() {
			t.Hidden = append(t.Hidden, c)
		}
		return c.name.isSecret()
	})
	return t
}

func (t *table) add(header, inside string, cells []string) {
	c := &column{header: header, inside: inside, cells: cells, name: readName(header), profile: measure(cells)}
	t.columns = append(t.columns, c)
	if inside != "" {
		t.paths = append(t.paths, c)
	}
}

// MadeUp are names for so many columns that have none.
func MadeUp(columns int) (names []string) {
	for i := range columns {
		names = append(names, "col"+strconv.Itoa(i+1))
	}
	return names
}

// speaking are the kinds of cells that the name of a column never looks like.
var speaking = []kind{kindEmail, kindPhone, kindUUID, kindDate, kindURL, kindZeroLed}

// telling are those that a first line hardly has where it is a header and the cells below are of the kind.
var telling = append(slices.Clip(speaking), kindCode, kindNumber)

// BeginsWithLead reports whether the first line of a table is a lead and no header: it has an e-mail address, or hardly
// a name that is known and two cells at least that look like those below them, or stand there again, or one that begins
// to count the rows. All rows have as many cells.
func BeginsWithLead(first []string, rows [][]string) bool {
	const leastUnnamed = 4 // among so many columns one may be called like a column by chance: there is a city called By
	alike, named, goesOn := 0, 0, false
	for i, cell := range first {
		if strings.HasPrefix(cell, reserved) {
			continue
		}
		kinds := kindsOf(cell)
		if kinds.has(kindEmail) {
			return true
		}
		if readName(cell).known {
			named++
			continue
		}
		cells := cellsOf(rows, i, nil)
		below := measure(cells)
		looks := func(k kind) bool {
			return kinds.has(k) && (below.share(k) > 0.5 || len(cells) == 0 && slices.Contains(speaking, k))
		}
		if slices.ContainsFunc(telling, looks) || cell != "" && slices.Contains(cells, strings.TrimSpace(cell)) {
			alike++
		}
		goesOn = goesOn || counts(append([]string{strings.TrimSpace(cell)}, cells...))
	}
	return (alike > 1 || goesOn && alike > 0) && named*leastUnnamed < len(first)
}

// counts reports whether the cells are numbers each of which is one more than that before.
func counts(cells []string) bool {
	before := 0
	for i, cell := range cells {
		n, err := strconv.Atoi(cell)
		if err != nil || i > 0 && n != before+1 {
			return false
		}
		before = n
	}
	return len(cells) > 2
}

// nameable reports whether a placeholder can name the column: braces, an @ and
// blanks at the ends mean something else there.
func nameable(header string) bool {
	return header != "" && header == strings.TrimSpace(header) && header[0] != '@' &&
		utf8.ValidString(header) && !strings.Contains(header, "}") && len(quoted(header)) <= maxNameSize
}

// cellsOf are the cells of a column, trimmed; what null holds counts as empty.
func cellsOf(rows [][]string, column int, null []string) []string {
	cells := make([]string, len(rows))
	for i, row := range rows {
		if cell := strings.TrimSpace(row[column]); !slices.Contains(null, cell) {
			cells[i] = cell
		}
	}
	return cells
}

// findNull finds the well-known words for "nothing" that the cells hold, but not in
// columns of names: there are people called Null.
func (t *table) findNull() {
	all := map[string]bool{}
	for i, header := range t.In.Columns {
		found := map[string]bool{}
		for _, row := range t.In.Rows {
			if cell := strings.TrimSpace(row[i]); known().has("null", cell) {
				found[cell] = true
			}
		}
		if len(found) == 0 {
			continue
		}
		if n := readName(header); n.strength(partFirst)+n.strength(partLast)+n.strength(partFull) == 0 {
			maps.Copy(all, found)
		}
	}
	t.null = slices.Sorted(maps.Keys(all))
}

// Limits of the paths that are looked for in objects and lists.
const (
	maxPaths    = 60 // of a column
	maxDepth    = 4
	maxElements = 3    // of a list
	maxSearched = 1000 // rows whose objects are searched for paths
)

// addPaths adds the paths into columns that hold objects or lists, as a reader of
// JSON lines resolves them, in the order in which they are first met.
func (t *table) addPaths() {
	own := t.columns
	t.columns = nil
	for _, c := range own {
		t.columns = append(t.columns, c)
		if c.profile.share(kindObject) < 0.9 {
			continue
		}
		var headers []string
		cells := map[string][]string{}
		for i, cell := range c.cells {
			eachValue(cell, func(path, value string) {
				header := c.header + "." + path
				if cells[header] == nil && i < maxSearched && len(headers) < maxPaths && nameable(header) && !slices.Contains(t.In.Columns, header) {
					headers = append(headers, header)
					cells[header] = make([]string, len(c.cells))
				}
				if cells[header] != nil && !slices.Contains(t.null, value) {
					cells[header][i] = value
				}
			})
		}
		for _, header := range headers {
			t.add(header, c.header, cells[header])
		}
	}
}

// eachValue calls f with path and text of each plain value in a JSON text.
func eachValue(text string, f func(path, value string)) {
	d := jsontext.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return
		}
		around, read := d.StackIndex(d.StackDepth())
		isKey := around == '{' && read%2 == 1
		if strings.ContainsRune(`{}[]n`, rune(token.Kind())) || isKey {
			continue
		}
		if path, ok := pathTo(d); ok {
			f(path, strings.TrimSpace(token.String()))
		}
	}
}

// pathTo is the place of the value read last as a placeholder names it, if it can.
func pathTo(d *jsontext.Decoder) (path string, ok bool) {
	var names []string
	for name := range d.StackPointer().Tokens() {
		names = append(names, name)
		around, read := d.StackIndex(len(names))
		if name == "" || strings.ContainsAny(name, ".{}") || len(names) > maxDepth || around == '[' && read > maxElements {
			return "", false
		}
	}
	return strings.Join(names, "."), len(names) > 0
}

func (t *table) shape() mapping.Columns {
	return mapping.Columns{
		Names: append(slices.Clone(t.In.Columns), headersOf(t.paths)...), Own: len(t.In.Columns), Open: t.In.Format == "jsonl",
	}
}

func (t *table) row(i int) []string {
	row := slices.Clone(t.In.Rows[i])
	for _, path := range t.paths {
		row = append(row, path.cells[i])
	}
	return row
}

func headersOf(columns []*column) []string {
	var headers []string
	for _, c := range columns {
		headers = append(headers, c.header)
	}
	return headers
}

// placeholder is the text that stands for the column's cell.
func (c *column) placeholder() string {
	if strings.HasPrefix(c.header, "{") { // two braces would be one brace as text
		return "{ " + c.header + "}"
	}
	return "{" + c.header + "}"
}

func placeholders(columns []*column, between string) string {
	return joinWith(columns, between, (*column).placeholder)
}
