package mapping

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"leadferry/internal/rowkey"
)

// row is a row on its way through a Binding.
type row struct {
	cells    []string
	null     []string
	env      Env
	key      string
	itself   string // what else is asked for
	why      string // what a broken rule was about
	problems []Problem
}

// Map fills rec, whose slices it uses again, from a row's cells, of which there
// must be as many as Bind was given names. It gives all problems of the row, or
// nil when rec is good. Any number of goroutines may call it at once.
func (b *Binding) Map(cells []string, env Env, rec *Record) []Problem {
	p := &b.plan
	*rec = Record{Content: slices.Grow(rec.Content[:0], len(p.content)+len(b.rest))}
	r := row{cells: cells, null: b.null, env: env}
	if p.skip != nil && r.skips(p.skip) {
		rec.Skip = true
		return nil
	}
	switch {
	case p.key != nil:
		r.key = r.take(p.key)
	case p.externalID != nil:
		rec.ExternalID = r.take(p.externalID)
		r.key = rec.ExternalID
	default:
		r.key = b.rowKey(cells)
	}
	if r.key != "" {
		r.key = rowkey.Effective(p.namespace, r.key)
	}
	rec.Key = r.key
	if p.key != nil {
		rec.ExternalID = r.take(p.externalID)
	}
	rec.LeadID = r.take(p.leadID)
	r.assign(p.assign, rec)
	rec.TypeKey, rec.TypeLabel = r.take(p.typeKey), r.take(p.typeLabel)
	rec.Status = r.take(p.status)
	for i := range p.content {
		b.fill(&r, &p.content[i], rec)
	}
	return r.problems
}

// fill adds f to the content, or the rest in its place.
func (b *Binding) fill(r *row, f *field, rec *Record) {
	if f.isRest() {
		for _, c := range b.rest {
			s := strings.TrimSpace(r.cell(c.index))
			if len(c.without) > 0 {
				s = unused(s, c.without)
			}
			if s != "" {
				rec.Content = append(rec.Content, Field{Name: c.name, Value: s})
			}
		}
		return
	}
	s, broken := f.value.eval(r)
	switch {
	case broken != "":
		r.breaks(f.value, broken)
	case s != "":
		rec.Content = append(rec.Content, Field{f.name, s, f.volatile, f.value.kind})
	case f.value.clears:
		rec.Content = append(rec.Content, Field{Name: f.name, Volatile: f.volatile})
	}
}

// rowKey is the default key. White space at a cell's ends and columns that hold
// nothing do not count, so that the same data keep their key in another export.
func (b *Binding) rowKey(cells []string) string {
	var room [1024]byte
	buf := room[:0]
	for _, c := range b.own {
		if cell := strings.TrimSpace(cells[c.index]); cell != "" {
			buf = appendSized(appendSized(buf, c.name), cell)
		}
	}
	sum := sha256.Sum256(buf)
	return string(hex.AppendEncode(append(room[:0], "row-"...), sum[:16]))
}

func appendSized(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// assign takes the first entry of which no column is empty and that says whom.
func (r *row) assign(entries []assignment, rec *Record) {
	before := len(r.problems)
	for i := range entries {
		t := &entries[i]
		if !r.fits(t) {
			continue
		}
		rec.Organization, rec.Locator = r.take(t.organization), r.take(t.locator)
		rec.SearchText, rec.PostalCode = r.take(t.searchText), r.take(t.postalCode)
		rec.Entry = i + 1
		found := rec.Organization != "" || rec.Locator != "" && rec.SearchText+rec.PostalCode != ""
		if found || len(r.problems) > before {
			return
		}
	}
	if len(entries) > 0 {
		rec.Entry = 0
		r.problems = append(r.problems, Problem{Rule: ruleAssign, Text: "no entry of assign has all its columns filled"})
	}
}

// fits reports whether all columns of t hold something, but for values that have a
// default to fall back on.
func (r *row) fits(t *assignment) bool {
	for _, v := range t.values() {
		if v == nil || v.preset != "" {
			continue
		}
		for _, p := range v.text {
			if p.kind == column && blank(r.cell(p.index)) {
				return false
			}
		}
		for _, index := range v.cells {
			if blank(r.cell(index)) {
				return false
			}
		}
	}
	return true
}

// take is what v comes to in this row; a rule that it breaks becomes a problem.
func (r *row) take(v *value) string {
	if v == nil {
		return ""
	}
	s, broken := v.eval(r)
	if broken != "" {
		r.breaks(v, broken)
	}
	return s
}

func (r *row) skips(v *value) bool {
	yes, broken := v.holds(r)
	if broken != "" {
		r.breaks(v, broken)
	}
	return yes
}

func (r *row) breaks(v *value, rule string) {
	r.problems = append(r.problems, v.problem(rule, r.why))
}

// cell is the cell of a column, empty when the row lacks it or null names it.
func (r *row) cell(index int) string {
	if index < 0 || len(r.null) > 0 && slices.Contains(r.null, strings.TrimSpace(r.cells[index])) {
		return ""
	}
	return r.cells[index]
}

// fill is the text for a row: empty when it has columns and none holds anything.
func (t text) fill(r *row) string {
	if len(t) == 1 { // most texts are one column or a constant: nothing to copy
		switch p := t[0]; p.kind {
		case literal:
			return strings.TrimSpace(p.text)
		case column:
			return strings.TrimSpace(r.cell(p.index))
		}
	}
	var room [256]byte
	b, columns, filled := room[:0], false, false
	for i := range t {
		switch p := &t[i]; p.kind {
		case literal:
			b = append(b, p.text...)
		case column:
			cell := r.cell(p.index)
			columns = true
			filled = filled || !blank(cell)
			if p.place == anywhere { // as nearly all do
				b = append(b, cell...)
			} else {
				b = p.put(b, cell)
			}
		case itself:
			b = p.put(b, r.itself)
		case rowKey:
			b = p.put(b, r.key)
		case file:
			b = p.put(b, r.env.File)
		case line:
			b = strconv.AppendInt(b, int64(r.env.Line), 10)
		case run:
			b = p.put(b, r.env.Run)
		}
	}
	if columns && !filled {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
