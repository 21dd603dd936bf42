package propose

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
	Null     []string  // cells that count as empty
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
			t.add(header, "", cellsOf(t.In.Rows, i, t.Null))
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

func (t *table) add(header, inside string, cells []string) *column {
	c := &column{header: header, inside: inside, cells: cells, name: readName(header), profile: measure(cells)}
	t.columns = append(t.columns, c)
	return c
}

// MadeUp are names for so many columns that have none.
func MadeUp(columns int) (names []string) {
	for i := range columns {
		names = append(names, "col"+strconv.Itoa(i+1))
	}
	return names
}

// BeginsWithLead reports whether the first line of a table is a lead and no header: it has an e-mail address, or hardly
// a name that is known and two cells at least that look like those below them, or are there again, or one that begins
// to count the rows. All rows have as many cells.
func BeginsWithLead(first []string, rows [][]string) bool {
	const leastUnnamed = 4 // among so many columns one may be called like a column by chance: there is a city called By
	alike, named, goesOn := 0, 0, false
	for i, cell := range first {
		kinds, cell := kindsOf(cell), strings.TrimSpace(cell)
		switch {
		case strings.HasPrefix(cell, reserved):
			continue
		case slices.Contains(kinds, "email"):
			return true
		case readName(cell).known:
			named++
			continue
		}
		cells := cellsOf(rows, i, nil)
		below := measure(cells)
		looks := func(kind string) bool {
			sure := !slices.Contains([]string{"code", "number"}, kind) // a header may look like these
			return slices.Contains(kinds, kind) && (below.share(kind) > 0.5 || len(cells) == 0 && sure)
		}
		if slices.ContainsFunc([]string{"phone", "uuid", "date", "url", "zero-led", "code", "number"}, looks) ||
			cell != "" && slices.Contains(cells, cell) {
			alike++
		}
		n, err := strconv.Atoi(cell)
		goesOn = goesOn || err == nil && len(cells) > 1 &&
			!slices.ContainsFunc(cells, func(next string) bool { n++; return next != strconv.Itoa(n) })
	}
	return (alike > 1 || goesOn && alike > 0) && named*leastUnnamed < len(first)
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

// findNull finds the well-known words for "nothing" that the cells hold, but not in columns of names: there are people
// called Null.
func (t *table) findNull() {
	for i, header := range t.In.Columns {
		if readName(header).strength("first", "last", "full") > 0 {
			continue
		}
		for _, cell := range cellsOf(t.In.Rows, i, t.Null) {
			if known().has("null", cell) && !slices.Contains(t.Null, cell) {
				t.Null = append(t.Null, cell)
			}
		}
	}
	slices.Sort(t.Null)
}

// Limits of the paths that are looked for in objects and lists.
const (
	maxPaths    = 60 // of a column
	maxDepth    = 4
	maxElements = 3    // of a list
	maxSearched = 1000 // rows whose objects are searched for paths
)

// addPaths adds the paths into columns that hold objects or lists, as a reader of JSON lines resolves them.
func (t *table) addPaths() {
	own := t.columns
	t.columns = nil
	for _, c := range own {
		t.columns = append(t.columns, c)
		if c.profile.share("object") < 0.9 {
			continue
		}
		cells := map[string][]string{}
		for i, text := range c.cells {
			var value any
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			if d.Decode(&value) == nil {
				eachPath(c.header, value, maxDepth, func(path, cell string) {
					if cells[path] == nil && i < maxSearched && len(cells) < maxPaths && nameable(path) &&
						!slices.Contains(t.In.Columns, path) {
						cells[path] = make([]string, len(c.cells))
					}
					if cells[path] != nil && !slices.Contains(t.Null, cell) {
						cells[path][i] = cell
					}
				})
			}
		}
		for _, path := range slices.Sorted(maps.Keys(cells)) {
			t.paths = append(t.paths, t.add(path, c.header, cells[path]))
		}
	}
}

// eachPath calls f with each plain value in a JSON value, and with its place as a placeholder names it.
func eachPath(path string, value any, depth int, f func(path, cell string)) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if depth > 0 && name != "" && !strings.ContainsAny(name, ".{}") {
				eachPath(path+"."+name, value[name], depth-1, f)
			}
		}
	case []any:
		for i, element := range value[:min(len(value), maxElements)] {
			if depth > 0 {
				eachPath(path+"."+strconv.Itoa(i), element, depth-1, f)
			}
		}
	default:
		f(path, strings.TrimSpace(fmt.Sprint(value)))
	}
}

func (t *table) shape() mapping.Columns {
	return mapping.Columns{
		Names: append(slices.Clone(t.In.Columns), headersOf(t.paths)...), Own: len(t.In.Columns),
		Open: t.In.Format == "jsonl",
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
	var list []string
	for _, c := range columns {
		list = append(list, c.placeholder())
	}
	return strings.Join(list, between)
}

// filledRows counts the rows in which one of the columns holds something.
func (t *table) filledRows(columns []*column) (n int) {
	for i := range t.In.Rows {
		if slices.ContainsFunc(columns, func(c *column) bool { return c.cells[i] != "" }) {
			n++
		}
	}
	return n
}
