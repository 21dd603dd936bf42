package delimited

import (
	"bytes"
	"slices"
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

func findDelimiter(in *lines.Window, o rows.Options) rune {
	said, written := separatorLine(in), ofRejects(in)
	switch {
	case written != 0: // by another program, perhaps, than the file that the mapping is for
		return written
	case o.Delimiter != 0:
		return o.Delimiter
	case said != 0:
		return said
	case o.Format == rows.TSV:
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

// ofRejects is what stands before a column of ours in the header of a rejects file; 0 where there is no such file, or no such
// column behind another one. Whoever edited it may have put blanks around the names, and others may have columns that end like ours.
func ofRejects(in *lines.Window) rune {
	if !BeginsRejects(in) {
		return 0
	}
	line, _ := in.First()
	before := bytes.TrimRight(line[:bytes.Index(line, []byte(rows.OutcomeColumn))], `" `)
	delim, _ := utf8.DecodeLastRune(before)
	isOurs := func(name string) bool { return strings.Trim(name, "\" \r\n") == rows.OutcomeColumn }
	if canDelimit(delim) && slices.ContainsFunc(strings.Split(string(line), string(delim)), isOurs) {
		return delim
	}
	return 0
}

// BeginsRejects says that the first line that is not blank is the header of a rejects file.
func BeginsRejects(in *lines.Window) bool {
	line, err := in.First()
	return err == nil && rows.IsOfRejects(string(line))
}

// detectDelimiter finds the character that parts the cells of a CSV file, by its beginning.
//
// Comma, semicolon, tab and bar are tried in turn. Each splits the records as the file would be read with it, so that
// nothing inside quotes counts. One that does not part the header in two or more cells, or with which the header's
// quotes do not fit, is out. The others are judged by how many of the records have as many cells as the header. Those
// within a tenth of the best are equal; of them the one that gives the header the most cells wins, then the one after
// which a cell begins with a space less often, as words in a sentence do, then the one that comes first. The comma is
// taken where nothing parts the header. A file without header is judged by the number of its named columns instead.
func detectDelimiter(sample []byte, o rows.Options) rune {
	best, found := trial{delim: ','}, false
	for _, d := range candidates {
		t := trial{delim: d}
		if t.run(sample, o) && (!found || t.beats(best)) {
			best, found = t, true
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
	if !bytes.ContainsRune(sample, t.delim) {
		return false
	}
	r := newReader(lines.New(bytes.NewReader(sample), o.MaxRecord), t.delim, o, &rows.Found{})
	if t.columns = len(o.Columns); !o.NoHeader {
		if readable, more := t.next(r); !readable || !more {
			return false
		}
		t.columns = rows.Used(rows.Trimmed(r.fields))
	}
	if t.columns < 2 {
		return false
	}
	r.columns.Width = t.columns
	for {
		readable, more := t.next(r)
		if !more { // the sample ends, perhaps in the midst of a row
			return !o.NoHeader || t.fitting > 0
		}
		t.records++
		if readable && r.fits() {
			t.fitting++
		}
	}
}

// next reads a record and passes it. One whose quotes are in doubt counts as a row like any other here.
func (t *trial) next(r *Reader) (readable, more bool) {
	size, p := r.record()
	if size == 0 {
		return false, false
	}
	r.ended = nil
	for _, cell := range r.fields {
		if p == nil && strings.HasPrefix(cell, " ") {
			t.spaced++
		}
	}
	r.pass(size)
	return p == nil, true
}

func (t *trial) share() float64 {
	if t.records == 0 {
		return 1
	}
	return float64(t.fitting) / float64(t.records)
}

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
