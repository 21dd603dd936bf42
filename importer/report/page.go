package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// page gathers lines of a given width, with nothing in them that a terminal obeys.
type page struct {
	strings.Builder
	width   int
	figures int // width of the column of numbers
}

func (p *page) heading(text string) { p.WriteString("\n" + text + "\n") }

func (p *page) verbatim(text string) { p.WriteString("  " + escape(text, math.MaxInt) + "\n") }

func (p *page) text(text string) { p.wrap("", "", text) }

// figure writes a number and what it counts.
func (p *page) figure(n int, text string) {
	first := fmt.Sprintf("  %*s  ", p.figures, thousands(n))
	p.wrap(first, p.margin(), text)
}

// hang writes what belongs to the figure above.
func (p *page) hang(text string) { p.wrap(p.margin(), p.margin(), text) }

// margin reaches to the text behind a figure and the name of an outcome.
func (p *page) margin() string { return strings.Repeat(" ", p.figures+4+len("unchanged  ")) }

// wrap breaks a text between words; white space within it stays.
func (p *page) wrap(first, next, text string) {
	line, used := first, utf8.RuneCountInString(first)
	for i, word := range strings.Split(escape(text, math.MaxInt), " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > p.width:
			p.WriteString(strings.TrimRight(line, " ") + "\n")
			line, used = next, len(next)
		default:
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	p.WriteString(strings.TrimRight(line, " ") + "\n")
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func plural(n int, thing string) string {
	return thousands(n) + " " + thing + verb(n, "", "s")
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
