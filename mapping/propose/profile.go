package propose

import (
	"strings"
	"unicode/utf8"
)

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
