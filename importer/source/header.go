package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// reserved begins the names of the columns that leadferry adds to rejects.
const reserved = "leadferry_"

// begin takes the columns from the header line, or from the options where the
// file has none.
func (c *csvRows) begin(o Options) *OpenError {
	if o.NoHeader {
		return c.use(o.Columns, 0)
	}
	size, problem, err := c.record()
	line := c.in.number
	switch {
	case errors.Is(err, io.EOF):
		return &OpenError{Text: "is empty: it has no header", Hint: "the first line must name the columns"}
	case err != nil:
		return unreadable(err)
	case problem != nil:
		return &OpenError{Line: line, Text: "the header cannot be read: " + problem.Text}
	}
	c.in.pass(size)
	return c.use(c.fields, line)
}

// use makes names the columns of the file. Those that a rejects file has added
// are no columns.
func (c *csvRows) use(names []string, line int) *OpenError {
	names = slices.Clone(names)
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	if e := checkNames(names, line); e != nil {
		return e
	}
	c.width = len(names)
	c.header = &Header{}
	for i, name := range names {
		if !strings.HasPrefix(name, reserved) {
			c.header.Names = append(c.header.Names, name)
			c.keep = append(c.keep, i)
		}
	}
	c.header.Own = len(c.keep)
	return nil
}

// checkNames refuses names that could not be told apart. It tells no name: in
// a file without header it would be a cell.
func checkNames(names []string, line int) *OpenError {
	if len(names) == 0 {
		return &OpenError{Text: "the columns of a file without header have no names", Hint: "list them under source.columns of the mapping"}
	}
	if len(names) > maxColumns {
		return &OpenError{Line: line, Text: fmt.Sprintf("the header has %d columns, more than %d", len(names), maxColumns)}
	}
	seen := make(map[string]int, len(names))
	for i, name := range names {
		if name == "" {
			return &OpenError{Line: line, Text: fmt.Sprintf("column %d has no name", i+1), Hint: "name the column or take it out of the file"}
		}
		if first, twice := seen[name]; twice {
			return &OpenError{Line: line, Text: fmt.Sprintf("columns %d and %d have the same name", first+1, i+1), Hint: "give each column a name of its own"}
		}
		seen[name] = i
	}
	return nil
}

// detectDelimiter takes what stands most often in the first line outside
// quotes; the comma where nothing does.
func detectDelimiter(f Format, line []byte) rune {
	if f == TSV {
		return '\t'
	}
	best, most := ',', 0
	for _, d := range ",;\t|" {
		n := 0
		for i, part := range bytes.Split(line, []byte{'"'}) {
			if i%2 == 0 {
				n += bytes.Count(part, []byte(string(d)))
			}
		}
		if n > most {
			best, most = d, n
		}
	}
	return best
}

func validDelimiter(d rune) bool {
	return utf8.ValidRune(d) && d != utf8.RuneError && !strings.ContainsRune("\"\r\n\x00", d)
}
