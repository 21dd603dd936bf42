package propose

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"leadferry/mapping"
)

// Limits of what is looked at, so that a wide file is answered as soon as a long
// one and the mapping stays short.
const (
	maxCells    = 4_000_000
	maxColumns  = 16_384
	maxNameSize = 400 // bytes of a column's name as the mapping writes it: YAML has keys of at most 1,024
	reserved    = "leadferry"

	longestMarker = 16 // bytes of a cell that may be a marker and its blanks
)

// column is one of the input's columns, or a path into one of them.
type column struct {
	header  string
	inside  string // the column that the path goes into, or ""
	cells   []string
	name    name
	profile *profile
	part    part    // what it was found to be, or ""
	grounds grounds // what that rests on
}

// table is the input as the proposal sees it.
type table struct {
	in       Input
	rows     [][]string // as long as columns are many
	names    []string   // of the input's columns, as the mapping calls them
	columns  []*column  // those that a mapping can name, in the input's order, paths after their column
	paths    []*column  // all paths into columns
	nameless []string   // headers that no mapping can name
	twice    bool       // some of them, which rest would take, since they stand twice
	null     []string   // cells that count as empty
	hidden   []*column  // columns whose cells no lead should carry
	numbered []*column  // numbers that an export gave its rows
}

func newTable(in Input) *table {
	t := &table{in: in}
	width := min(len(in.Columns), maxColumns)
	t.names = columnNames(in, width)
	if most := maxCells / max(1, width); len(in.Rows) > most {
		t.in.Rows, t.in.Complete = in.Rows[:most], false
	}
	t.rows = evenRows(t.in.Rows, width)
	t.null = nullMarkers(t)
	times := map[string]int{}
	for _, header := range t.names {
		times[header]++
	}
	for i, header := range t.names {
		switch {
		case strings.HasPrefix(header, reserved+"_") || in.Format == "jsonl" && header == reserved:
		case times[header] > 1 || !nameable(header):
			t.nameless = append(t.nameless, header)
			t.twice = t.twice || times[header] > 1 && header != ""
		default:
			t.add(header, "", t.cells(i))
		}
	}
	if in.Format == "jsonl" {
		t.expand()
	}
	t.hideSecrets()
	return t
}

func (t *table) add(header, inside string, cells []string) {
	c := &column{header: header, inside: inside, cells: cells, name: readName(header), profile: measure(cells)}
	t.columns = append(t.columns, c)
	if inside != "" {
		t.paths = append(t.paths, c)
	}
}

// columnNames are the input's names; made-up ones are made so that the mapping
// can list them.
func columnNames(in Input, width int) []string {
	names := slices.Clone(in.Columns[:width])
	if !in.NoHeader {
		return names
	}
	size, seen, usable := 0, map[string]bool{}, true
	for _, name := range names {
		size += len(quoted(name[:min(len(name), maxNameSize)]))
		usable = usable && nameable(name) && !seen[name] && !strings.HasPrefix(name, reserved)
		seen[name] = true
	}
	if usable && size < 1<<18 {
		return names
	}
	for i := range names {
		names[i] = "col" + itoa(i+1)
	}
	return names
}

// nameable reports whether a placeholder can name the column: braces, an @ and
// blanks at the ends mean something else there.
func nameable(header string) bool {
	return header != "" && header == strings.TrimSpace(header) && header[0] != '@' && len(header) <= maxNameSize &&
		utf8.ValidString(header) && !strings.Contains(header, "}") && len(quoted(header)) <= maxNameSize
}

func evenRows(rows [][]string, width int) [][]string {
	even := make([][]string, len(rows))
	for i, row := range rows {
		if even[i] = row; len(row) != width {
			even[i] = append(slices.Clone(row[:min(len(row), width)]), make([]string, max(0, width-len(row)))...)
		}
	}
	return even
}

// cells are those of a column, trimmed; what counts as empty is "".
func (t *table) cells(index int) []string {
	cells := make([]string, len(t.rows))
	for i, row := range t.rows {
		if cell := strings.TrimSpace(row[index]); !slices.Contains(t.null, cell) {
			cells[i] = cell
		}
	}
	return cells
}

// nullMarkers are the well-known words for "nothing" that the cells hold, but
// for those in columns of names: there are people called Null.
func nullMarkers(t *table) []string {
	all := map[string]bool{}
	for i, header := range t.names {
		found := t.markersIn(i)
		if len(found) == 0 {
			continue
		}
		if n := readName(header); n.strength(partFirst)+n.strength(partLast)+n.strength(partFull) == 0 {
			maps.Copy(all, found)
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (t *table) markersIn(column int) map[string]bool {
	d := known()
	var found map[string]bool
	for _, row := range t.rows {
		if len(row[column]) > longestMarker {
			continue
		}
		if cell := strings.TrimSpace(row[column]); d.null[cell] {
			if found == nil {
				found = map[string]bool{}
			}
			found[cell] = true
		}
	}
	return found
}

func (t *table) hideSecrets() {
	t.columns = slices.DeleteFunc(t.columns, func(c *column) bool {
		secret := c.isSecret()
		if secret {
			t.hidden = append(t.hidden, c)
		}
		return secret
	})
}

// shape is the table's as mapping.Bind wants it, and its rows with the paths.
func (t *table) shape() mapping.Columns {
	c := mapping.Columns{Names: slices.Clone(t.names), Own: len(t.names), Open: t.in.Format == "jsonl"}
	for _, path := range t.paths {
		c.Names = append(c.Names, path.header)
	}
	return c
}

func (t *table) row(i int) []string {
	row := slices.Clone(t.rows[i])
	for _, path := range t.paths {
		row = append(row, path.cells[i])
	}
	return row
}

// placeholder is the text that stands for the column's cell.
func (c *column) placeholder() string {
	if strings.HasPrefix(c.header, "{") { // two braces would be one brace as text
		return "{ " + c.header + "}"
	}
	return "{" + c.header + "}"
}

// shown is a name for comments and notes: short, on one line, and no other line
// can be made of it.
func shown(name string) string {
	const most = 40
	if runes := []rune(name); len(runes) > most {
		name = string(runes[:most-1]) + "…"
	}
	if isClear(name) {
		return "{" + name + "}"
	}
	return quoted(name)
}

// fileShown is a file's name for comments.
func fileShown(name string) string {
	if name == "" || name == "-" {
		return "standard input"
	}
	name = baseName(name)
	switch clear := isClear(name); {
	case clear && len(name) <= 100:
		return name
	case clear:
		return "the file"
	}
	return quoted(name[:min(len(name), 100)])
}

// isClear reports whether a name is made of letters, digits and harmless marks.
func isClear(name string) bool {
	unclear := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) && !strings.ContainsRune("_-./()&?#+…: '", r)
	}
	return name != "" && !strings.ContainsFunc(name, unclear) && strings.TrimSpace(name) == name
}

// profile is what a column's cells have in common. It holds no cell.
type profile struct {
	rows     int
	filled   int // cells that hold something
	distinct int // different ones among them
	longest  int // characters
	total    int // characters of all filled cells
	counts   [kinds]int
	shapes   int  // different shapes, such as A-9 for L-104204; 2 stands for more
	counting bool // the cells are 1, 2, 3 … in the order of the rows
}

// share is the part of the filled cells that are of a kind, 0 to 1.
func (p *profile) share(k kind) float64 {
	if p.filled == 0 {
		return 0
	}
	return float64(p.counts[k]) / float64(p.filled)
}

// fill is the part of the rows that hold something, 0 to 1.
func (p *profile) fill() float64 {
	if p.rows == 0 {
		return 0
	}
	return float64(p.filled) / float64(p.rows)
}

func (p *profile) average() float64 {
	if p.filled == 0 {
		return 0
	}
	return float64(p.total) / float64(p.filled)
}

// full reports whether every row holds something.
func (p *profile) full() bool { return p.filled == p.rows }

func (p *profile) unique() bool { return p.distinct == p.filled }

// measure looks at all cells of a column; those that hold nothing are "".
func measure(cells []string) *profile {
	p := &profile{rows: len(cells), counting: true}
	seen := make(map[string]kindSet, min(len(cells), 64))
	shapes := map[string]bool{}
	for _, cell := range cells {
		if cell == "" {
			continue
		}
		p.filled++
		n := utf8.RuneCountInString(cell)
		p.longest, p.total = max(p.longest, n), p.total+n
		set, again := seen[cell]
		if !again {
			set = kindsOf(cell)
			seen[cell] = set
			if len(shapes) < 2 {
				shapes[shape(cell)] = true
			}
		}
		set.count(&p.counts)
		p.counting = p.counting && isNumberOf(cell, p.filled)
	}
	p.distinct, p.shapes = len(seen), len(shapes)
	p.counting = p.counting && p.filled > 1
	return p
}

// isNumberOf reports whether cell is the number n.
func isNumberOf(cell string, n int) bool {
	if len(cell) > 9 {
		return false
	}
	sum := 0
	for _, c := range []byte(cell) {
		if c < '0' || c > '9' {
			return false
		}
		sum = sum*10 + int(c-'0')
	}
	return sum == n
}

// shape is a cell with A for each run of letters and 9 for each of digits.
func shape(cell string) string {
	var b strings.Builder
	last := byte(0)
	for i := 0; i < len(cell) && b.Len() < 32; i++ {
		c := cell[i]
		switch {
		case c >= '0' && c <= '9':
			c = '9'
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf:
			c = 'A'
		}
		if c != last || c != '9' && c != 'A' {
			b.WriteByte(c)
		}
		last = c
	}
	return b.String()
}
