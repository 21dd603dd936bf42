package source

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const (
	delimiterBytes = 64 << 10 // of the file are looked at to find the delimiter
	likelyParts    = ",;\t|"
)

// separatorLine passes over a first line as Excel writes it, "sep=;", and
// gives what it says; 0 where there is none.
func (f *File) separatorLine() rune {
	line, err := f.window.line(0)
	if err != nil || f.window.number != 1 {
		return 0
	}
	said := bytes.TrimSuffix(bytes.TrimPrefix(body(line), []byte(`"`)), []byte(`"`))
	const word = "sep="
	if len(said) <= len(word) || !strings.EqualFold(string(said[:len(word)]), word) {
		return 0
	}
	delim, size := utf8.DecodeRune(said[len(word):])
	if len(word)+size != len(said) || !validDelimiter(delim) {
		return 0
	}
	f.window.pass(len(line))
	return delim
}

// detectDelimiter finds the character that parts the cells of a CSV file, by
// its first 64 KiB.
//
// Comma, semicolon, tab and bar are tried in turn. Each splits the records as
// the file would be read with it, so that nothing inside quotes counts. One
// that does not part the header in two or more cells, or with which the
// header's quotes do not fit, is out. The others are judged by how many of the
// records have as many cells as the header. Those within a tenth of the best
// are equal; of them the one that gives the header the most cells wins, then
// the one after which a cell begins with a space less often, as words in a
// sentence do, then the one that comes first. The comma is taken where nothing
// parts the header. A file without header is judged by the number of its named
// columns instead.
func detectDelimiter(text []byte, whole bool, o Options) rune {
	if !whole { // the last line is not all there
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	best, found := trial{delim: ','}, false
	for _, d := range likelyParts {
		t := trial{delim: d}
		if t.run(text, o) && (!found || t.beats(best)) {
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

// run reads text, and says whether the delimiter could be the right one.
func (t *trial) run(text []byte, o Options) bool {
	if !bytes.ContainsRune(text, t.delim) {
		return false
	}
	rows := newCSVRows(newWindow(bytes.NewReader(text), o.MaxRecord), t.delim, o)
	if t.columns = len(o.Columns); !o.NoHeader {
		if _, p, err := t.next(rows); p != nil || err != nil {
			return false
		}
		t.columns = used(trimmed(rows.fields))
	}
	if t.columns < 2 {
		return false
	}
	rows.width = t.columns
	for {
		_, p, err := t.next(rows)
		if err != nil { // the text ends, perhaps in the midst of a row
			return !o.NoHeader || t.fitting > 0
		}
		t.records++
		if p == nil && rows.fits() {
			t.fitting++
		}
	}
}

// next reads a record and passes it.
func (t *trial) next(rows *csvRows) (size int, p *Problem, err error) {
	size, p, err = rows.record()
	if err != nil && size == 0 {
		return size, p, err
	}
	rows.lost = nil // what is doubtful counts as a row like any other here
	for _, cell := range rows.fields {
		if p == nil && strings.HasPrefix(cell, " ") {
			t.spaced++
		}
	}
	rows.pass(size)
	return size, p, nil
}

// share is the part of the records that fit the header.
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

func validDelimiter(d rune) bool {
	return utf8.ValidRune(d) && d != utf8.RuneError && !strings.ContainsRune("\"\r\n\x00", d)
}
