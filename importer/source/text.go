package source

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// badText finds bytes that no text holds; offset is the record's place in the file.
func badText(record []byte, offset int64) *Problem {
	if i := bytes.IndexByte(record, 0); i >= 0 {
		return &Problem{"nul", fmt.Sprintf("the row holds a NUL byte, at byte offset %d of the file", offset+int64(i))}
	}
	if utf8.Valid(record) {
		return nil
	}
	i := 0
	for i < len(record) {
		r, n := utf8.DecodeRune(record[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return &Problem{"encoding", fmt.Sprintf("the row is not UTF-8 at byte offset %d of the file (hint: name the file's encoding with --encoding, or save it as UTF-8)", offset+int64(i))}
}

func tooLong(limit int) *Problem {
	return &Problem{"too_long", fmt.Sprintf("the row has more than %d bytes", limit)}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// chunk gives out slices of cells, many from one allocation. It is small, so
// that a row that is kept keeps few others.
type chunk struct{ free []string }

const chunkCells = 256

// take gives n empty cells.
func (c *chunk) take(n int) []string {
	if n > len(c.free) {
		if n >= chunkCells {
			return make([]string, n)
		}
		c.free = make([]string, chunkCells)
	}
	cells := c.free[:n:n]
	c.free = c.free[n:]
	return cells
}
