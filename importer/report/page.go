package report

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
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
	first := fmt.Sprintf("  %*s  ", p.figures, humanize.Comma(int64(n)))
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
