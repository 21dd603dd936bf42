package source

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	maxNamed    = 20      // sheets that a message names
	maxGlance   = 1 << 20 // bytes of a sheet that are looked at to see whether it holds anything
	sheetHint   = "choose one with --sheet NAME, or with source.sheet of the mapping"
	repairsHint = "open the workbook in Excel, which may repair it, and save it anew, or save the sheet as CSV in UTF-8"
)

// choose finds the sheet of this name, which Excel takes in any case, or the
// first table that is not hidden.
func (b *workbook) choose(name string) (sheet, *OpenError) {
	if name == "" {
		for _, s := range b.sheets {
			if s.cells && !s.hidden {
				return s, nil
			}
		}
		return sheet{}, &OpenError{Text: "has no sheet that is visible and holds cells" + b.list("; it has "), Hint: sheetHint}
	}
	for _, same := range []func(a, b string) bool{
		func(a, b string) bool { return a == b },
		func(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) },
	} {
		for _, s := range b.sheets {
			if same(s.name, name) {
				return s, s.refuse()
			}
		}
	}
	return sheet{}, &OpenError{Text: "has no sheet of the name that was asked for" + b.list("; it has "), Hint: sheetHint}
}

func (s sheet) refuse() *OpenError {
	if s.cells {
		return nil
	}
	return &OpenError{Text: "has no cells in sheet " + quote(s.name) + ": it is a chart, a dialog or a macro", Hint: sheetHint}
}

// list names the sheets that can be read.
func (b *workbook) list(before string) string {
	var names []string
	for _, s := range b.sheets {
		if s.cells {
			names = append(names, s.label())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return before + listed(names)
}

func (s sheet) label() string {
	if s.hidden {
		return quote(s.name) + " (hidden)"
	}
	return quote(s.name)
}

func quote(name string) string { return `"` + name + `"` }

// listed joins names, the first of them only where there are many.
func listed(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed:maxNamed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// others are the labels of the sheets beside one that hold something, too.
func (b *workbook) others(read sheet) []string {
	var names []string
	for _, s := range b.sheets {
		if s.cells && s.part != read.part && b.holdsCells(s) {
			names = append(names, s.label())
		}
	}
	return names
}

// holdsCells looks at the beginning of a sheet only. What it cannot read, or
// does not see the end of, may well hold something.
func (b *workbook) holdsCells(s sheet) bool {
	in, err := b.parts.open(s.part)
	if err != nil {
		return false
	}
	defer in.Close()
	glance := &io.LimitedReader{R: in, N: maxGlance}
	rows, err := newSheetReader(glance, maxGlance)
	for err == nil {
		if err = rows.next(); err == nil && rows.holdsText() {
			return true
		}
	}
	return !errors.Is(err, io.EOF)
}
