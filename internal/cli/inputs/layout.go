package inputs

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"leadferry/importer/source"
	"leadferry/mapping/propose"
)

// layout finds out what stands around the table in a file, and how its quotes are written,
// by reading it in several ways: what helps is kept.
type layout struct {
	name  string
	piped []byte    // the beginning of standard input
	rest  io.Reader // and what follows it
}

// best is the file, read in the way in which most of its rows can be read. Where none is
// better, it is the usual one. No way may pass over a line that cannot be read.
func (l *layout) best(o source.Options) *sampled {
	best := l.read(o)
	if best.plain() {
		return best
	}
	lines, unread := l.lines(o, func(string) bool { return true })
	if unread.line == 0 && !best.unread.isText() {
		unread = best.unread
	}
	if unread.line > 0 {
		best.err = l.refusal(unread, o)
	}
	if unread.line > 0 || len(l.piped) == maxPiped {
		return best
	}
	parted := l.parted(best, lines)
	for _, way := range lines.ways(o.Delimiter) {
		o := best.options
		way(&o)
		if r := l.read(o); r.beats(best) {
			best = r
		}
	}
	if broken := parted.broken(lines); broken > 0 && (best.options.SkipRows >= broken || best.delimiter != parted.delimiter) {
		best = parted
	}
	if best = l.withoutFooter(best); best.err == nil && best.unread.line > 0 {
		best.err = l.refusal(best.unread, o)
	}
	return best
}

// parted is the file, read in the usual way but with the delimiter that most of its lines have: a quote of the header that is not
// closed hides it from the readers.
func (l *layout) parted(usual *sampled, lines rawLines) *sampled {
	_, width, delimiter := lines.table(usual.options.Delimiter)
	if usual.err != nil || width < 2 || lines[0].cells != nil || usual.delimiter == delimiter {
		return usual
	}
	o := usual.options
	o.Delimiter = delimiter
	return l.read(o)
}

// broken is the line of a text that cannot be taken apart, or 0. One without a letter is no header.
func (r *sampled) broken(lines rawLines) int {
	if open, ok := errors.AsType[*source.OpenError](r.err); ok {
		at := slices.IndexFunc(lines, func(l rawLine) bool { return l.number == open.Line && strings.Trim(l.text, " \",;|\t") != "" })
		return open.Line * min(at+1, 1)
	}
	if lost, ok := errors.AsType[*source.LostError](r.err); ok {
		return lost.Line
	}
	return r.unread.line
}

// plain reports whether nothing of the file asks for another reading: all rows could be
// read, the header is known, and the last row does not look like a footer.
func (r *sampled) plain() bool {
	return r.err == nil && r.unread.line == 0 && r.info.Format == string(source.JSONL) ||
		r.err == nil && r.lost == 0 && propose.Known(r.columns) > 1 && !r.lastIsThin()
}

// beats reports whether more of the file can be read so than in another way: rows first,
// then columns whose names are known.
func (r *sampled) beats(other *sampled) bool {
	if r.err != nil || other.err != nil {
		return r.err == nil
	}
	const equal = 0.02
	mine, its := r.share(), other.share()
	known, knownThere := propose.Known(r.columns), propose.Known(other.columns)
	switch {
	case mine > its+equal && known >= knownThere, mine >= its && known > knownThere:
		return true
	case r.options.NoHeader && !other.options.NoHeader && mine >= its && len(r.columns) > len(other.columns): // a lead, not all of whose cells hold something
		return true
	case known > 2 && knownThere < 2: // a title that was taken for the header fits all lines around the table
		return true
	}
	return mine >= its && known >= knownThere && r.lost < other.lost && len(r.rows) >= len(other.rows)
}

// share is the part of the rows that could be read.
func (r *sampled) share() float64 {
	return float64(len(r.rows)) / float64(max(1, len(r.rows)+r.lost))
}

// rawLine is a line of a file, or a row of a sheet.
type rawLine struct {
	number int
	text   string   // "" of a sheet
	cells  []string // of a sheet
}

type rawLines []rawLine

const (
	mostRaw      = 60 // lines that are looked at
	widestRaw    = 256
	noDelimiter  = '\x1f' // stands in no table
	commentSign  = "#"
	leastOfWidth = 0.6 // part of the columns that a header has names for
)

// lines are the first of the file that hold something that is wanted, as they stand there, and the first that is no text; none of JSON.
func (l *layout) lines(o source.Options, wanted func(text string) bool) (lines rawLines, unread unread) {
	o.NoHeader, o.Columns, o.NoQuotes, o.Delimiter = true, []string{"line"}, true, noDelimiter
	if l.name == "-" {
		o.Stdin = strings.NewReader(string(l.piped))
	}
	f, err := openInput(l.name, o)
	if err == nil && f.Info().Format == string(source.XLSX) {
		f.Close()
		for i := range widestRaw {
			o.Columns = append(o.Columns, fmt.Sprintf("column %d", i))
		}
		f, err = openInput(l.name, o)
	}
	if err != nil {
		return nil, unread
	}
	defer f.Close()
	format := f.Info().Format
	var row source.Row
	for read := 0; len(lines) < mostRaw && read < maxSampleRows && format != string(source.JSONL) && f.Next(&row) == nil; read++ {
		line := rawLine{number: row.Line}
		switch {
		case format == string(source.XLSX):
			line.cells = slices.Clone(row.Cells)
		case row.Problem == nil:
			line.text = strings.Clone(row.Cells[0])
		}
		unread.note(&row)
		if wanted(line.text) {
			lines = append(lines, line)
		}
	}
	return lines, unread
}

// ways are changes of the options that the lines call for, in the order in which they are
// tried, each on top of those that helped.
func (lines rawLines) ways(delimiter rune) (ways []func(*source.Options)) {
	var commented, escaped bool
	for _, l := range lines {
		commented = commented || strings.HasPrefix(l.text, commentSign)
		escaped = escaped || strings.Contains(l.text, `\"`)
	}
	if commented {
		ways = append(ways, func(o *source.Options) { o.Comment = commentSign })
	}
	if escaped {
		ways = append(ways, func(o *source.Options) { o.Backslash = true })
	}
	for _, before := range lines.beforeHeader(delimiter) {
		ways = append(ways, func(o *source.Options) { o.SkipRows = before })
		if escaped {
			ways = append(ways, func(o *source.Options) { o.SkipRows, o.Backslash = before, true })
		}
	}
	if columns := lines.withoutHeader(delimiter); columns > 0 {
		ways = append(ways, func(o *source.Options) { o.NoHeader, o.Columns = true, propose.MadeUp(columns) })
	}
	return ways
}

// withoutHeader is how many columns a file has whose first line is a lead, or 0.
func (lines rawLines) withoutHeader(delimiter rune) (columns int) {
	cells, width, _ := lines.table(delimiter)
	if len(cells) > 0 && propose.BeginsWithLead(cells[0], cells[1:]) {
		return width
	}
	return 0
}

// header is the first line of a file whose cells fit as a header, and the one that the options
// take for it; 0: there is none.
func (l *layout) header(o source.Options, fits func(names []string) bool) (taken, header int) {
	if l.passes() || o.NoHeader {
		return 0, 0
	}
	skipped, delimiter := o.SkipRows, o.Delimiter
	o.Frame = source.Frame{Comment: o.Comment}
	lines, _ := l.lines(o, func(string) bool { return true })
	for _, line := range lines {
		if line.number > skipped {
			taken = line.number
			break
		}
	}
	for _, d := range lines.delimiters(delimiter) {
		for i, cells := range lines.split(d) {
			for at := range cells {
				cells[at] = strings.TrimSpace(cells[at])
			}
			if lines[i].number != taken && fits(cells) {
				return taken, lines[i].number
			}
		}
	}
	return taken, 0
}

// lacksHeader reports whether the names of a file are its first row.
func (l *layout) lacksHeader(o source.Options, names []string) bool {
	if l.passes() {
		return propose.BeginsWithLead(names, nil)
	}
	r := l.read(o)
	return r.info.Format != string(source.JSONL) && propose.BeginsWithLead(names, r.rows)
}

// passes reports whether what was read once cannot be read again.
func (l *layout) passes() bool { return l.name == "-" || strings.Contains(l.name, "://") }

// delimiters are those that may part the lines.
func (lines rawLines) delimiters(named rune) []rune {
	if named != 0 {
		return []rune{named}
	}
	return []rune{',', ';', '\t', '|'}
}

// beforeHeader is how many lines stand before those that may be the header: the first that has about as many cells as most
// of the others; and since names with their values may stand above a table, the first that has as many and is no lead,
// and the first half of whose cells are names that are known.
func (lines rawLines) beforeHeader(delimiter rune) (counts []int) {
	cells, width, _ := lines.table(delimiter)
	for _, fits := range []func(at, filled int) bool{
		func(_, filled int) bool { return float64(filled) >= leastOfWidth*float64(width) },
		func(at, filled int) bool {
			return filled == width && !propose.BeginsWithLead(cells[at], cells[at+1:])
		},
		func(at, filled int) bool {
			known := propose.Known(cells[at])
			return known > 1 && known*2 >= filled
		},
	} {
		for at, row := range cells {
			if n := filled(row); n < 2 || !fits(at, n) {
				continue
			}
			if before := lines[at].number - 1; at > 0 && !slices.Contains(counts, before) {
				counts = append(counts, before)
			}
			break
		}
	}
	return counts
}

// table are the cells of the lines under the delimiter that makes most of them, as many in each as most lines have.
func (lines rawLines) table(named rune) (cells [][]string, width int, delimiter rune) {
	most := 0
	for _, d := range lines.delimiters(named) {
		parted := lines.split(d)
		if w, times := usualWidth(parted); w*times > most {
			most, cells, width, delimiter = w*times, parted, w, d
		}
	}
	for i, row := range cells {
		cells[i] = slices.Concat(row, make([]string, max(0, width-len(row))))[:width]
	}
	return cells, width, delimiter
}

func (lines rawLines) split(delimiter rune) (all [][]string) {
	for _, l := range lines {
		cells := l.cells
		if cells == nil {
			cells = splitLine(l.text, delimiter)
		}
		all = append(all, cells)
	}
	return all
}

// splitLine parts a line that stands alone; one whose quotes do not fit comes as far as it
// goes.
func splitLine(text string, delimiter rune) []string {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = delimiter, true, -1
	cells, err := r.Read()
	if err != nil && !errors.Is(err, io.EOF) && cells == nil {
		return strings.Split(text, string(delimiter))
	}
	return cells
}

// usualWidth is how many cells most lines of several have, up to the last that holds something,
// and how many lines those are; of equal ones the widest. A line of one cell is a title or a note.
func usualWidth(all [][]string) (width, times int) {
	counts := map[int]int{}
	for _, cells := range all {
		n := len(cells)
		for n > 0 && strings.TrimSpace(cells[n-1]) == "" {
			n--
		}
		if n > 1 {
			counts[n]++
		}
	}
	for n, count := range counts {
		if count > times || count == times && n > width {
			width, times = n, count
		}
	}
	return width, times
}

func filled(cells []string) (n int) {
	for _, cell := range cells {
		if strings.TrimSpace(cell) != "" {
			n++
		}
	}
	return n
}

// thin reports whether a row of a table with so many columns holds less than leads do.
func (l *lastRow) thin(columns int) bool {
	named := propose.FooterWord(l.first) != ""
	return l.bad || l.filled*4 <= columns || named && l.filled*2 <= columns
}

func (r *sampled) lastIsThin() bool {
	return len(r.tail) > 0 && r.tail[len(r.tail)-1].thin(len(r.columns))
}

// withoutFooter reads the file without what stands behind its table, when the last rows
// are thin and one of them says by its first word that it is none of them.
func (l *layout) withoutFooter(r *sampled) *sampled {
	if r.err != nil || !r.complete {
		return r
	}
	from := len(r.tail)
	for from > 0 && r.tail[from-1].thin(len(r.columns)) {
		from--
	}
	last := r.tail[from:]
	named := slices.IndexFunc(last, func(l lastRow) bool { return propose.FooterWord(l.first) != "" })
	if named < 0 {
		return r
	}
	before := 0
	for _, l := range last[:named] {
		if l.bad && l.filled <= 1 { // the title of a report
			before++
		}
	}
	o := r.options
	if before == 0 {
		o.Footer = regexp.MustCompile("^" + regexp.QuoteMeta(propose.FooterWord(last[named].first)))
		if without := l.read(o); without.err == nil && without.lost <= r.lost && len(without.rows) > 0 {
			return without
		}
		return r
	}
	for skip := last[len(last)-1].line - last[named-before].line + 1; skip <= mostLast+mostRaw; skip++ {
		o.SkipFooter = skip // blank lines at the end count too
		if without := l.read(o); without.err == nil && without.lost == 0 {
			return without
		}
	}
	return r
}
