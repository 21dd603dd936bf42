package delimited

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
	"leadferry/internal/spelling"
)

const (
	sampleBytes = 64 << 10 // of the file are looked at to find the delimiter
	candidates  = ",;\t|"
)

// findDelimiter finds what parts the cells. A rejects file may have been saved by another program than the file that
// the options are for.
func findDelimiter(in *lines.Window, o rows.Options) rune {
	said, written := separatorLine(in), BeginsRejects(in)
	switch {
	case o.Delimiter != 0 && !written:
		return o.Delimiter
	case said != 0:
		return said
	case o.Format == rows.TSV && !written:
		return '\t'
	}
	sample, whole := in.Peek(sampleBytes)
	if !whole { // the last line is not all there
		sample = sample[:bytes.LastIndexByte(sample, '\n')+1]
	}
	return detectDelimiter(sample, o)
}

// separator is a first line as Excel writes it.
var separator = spelling.Form(`(?i)^"?sep=(.)"?$`)

// separatorOf is what such a line says, or "".
func separatorOf(line []byte) string {
	const longest = len(`"sep="`) + utf8.UTFMax + len("\r\r\n")
	if len(line) > longest {
		return ""
	}
	said := separator().FindSubmatch(lines.Body(line))
	if said == nil {
		return ""
	}
	return string(said[1])
}

// separatorLine passes over it and gives what it says; 0 where there is none.
func separatorLine(in *lines.Window) rune {
	line, err := in.Line(0)
	delim, _ := utf8.DecodeRuneInString(separatorOf(line))
	if err != nil || in.Number != 1 || !canDelimit(delim) {
		return 0
	}
	in.Pass(len(line))
	return delim
}

// BeginsRejects says that the first line that is not blank is the header of a rejects file.
func BeginsRejects(in *lines.Window) bool {
	line, err := in.First()
	return err == nil && rows.IsOfRejects(string(line))
}

// detectDelimiter finds the character that parts the cells of a CSV file, by its beginning.
//
// Comma, semicolon, tab, bar and the one that the options name are tried in turn. Each splits the records as the file
// would be read with it, so that nothing inside quotes counts. One that does not part the header in two or more cells
// is out. The others are judged by how many of the records have as many cells as the header. Of those within a tenth
// of the best the one that gives the header the most cells wins, then the one after which a cell begins with a space
// less often, as words in a sentence do, then the one that comes first. The comma is taken where nothing parts the
// header. A file without header is judged by the number of its named columns instead.
func detectDelimiter(sample []byte, o rows.Options) rune {
	best := trial{delim: ','}
	tried := candidates
	if o.Delimiter != 0 {
		tried += string(o.Delimiter)
	}
	for _, d := range tried {
		t := trial{delim: d}
		if t.run(sample, o) && (best.columns == 0 || t.beats(best)) {
			best = t
		}
	}
	return best.delim
}

// trial is how a file's beginning comes out with one delimiter.
type trial struct {
	delim   rune
	columns int
	records int // behind the header
	fitting int // of them
	spaced  int // cells that begin with a space
}

// run reads a sample, and says whether the delimiter could be the right one.
func (t *trial) run(sample []byte, o rows.Options) bool {
	if !canDelimit(t.delim) || !bytes.ContainsRune(sample, t.delim) {
		return false
	}
	r := newReader(lines.New(bytes.NewReader(sample), o.MaxRecord), t.delim, o, &rows.Found{})
	t.columns = len(o.Columns)
	if !o.NoHeader {
		size, p := r.record()
		if size == 0 || p != nil {
			return false
		}
		t.columns = rows.Used(rows.Trimmed(r.fields))
		r.pass(size)
	}
	if t.columns < 2 {
		return false
	}
	r.columns.Width = t.columns
	for size, p := r.record(); size > 0; size, p = r.record() { // up to the sample's end, perhaps in the midst of a row
		t.records++
		if p == nil && r.fits() {
			t.fitting++
		}
		for _, cell := range r.fields {
			if strings.HasPrefix(cell, " ") {
				t.spaced++
			}
		}
		r.pass(size)
		r.ended = nil // a record whose quotes are in doubt counts as a row like any other here
	}
	return !o.NoHeader || t.fitting > 0
}

func (t *trial) share() float64 { return float64(t.fitting+1) / float64(t.records+1) }

func (t *trial) beats(other trial) bool {
	const equal = 0.1
	switch mine, its := t.share(), other.share(); {
	case mine > its+equal, mine < its-equal:
		return mine > its
	case t.columns != other.columns:
		return t.columns > other.columns
	}
	return t.spaced < other.spaced
}

func canDelimit(d rune) bool {
	return utf8.ValidRune(d) && d != utf8.RuneError && !strings.ContainsRune("\"\r\n\x00", d)
}
