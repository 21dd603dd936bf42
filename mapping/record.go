package mapping

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/internal/rowkey"
	"leadferry/internal/spelling"
)

// Record is a row after mapping: what the service is to hold of it.
type Record struct {
	// Key makes the row the same row on the next run. It is trimmed and never empty; with a namespace it is
	// that of its namespace (see rowkey.Effective). The default is "row-" and 32 hexadecimal
	// digits of SHA-256 over the row's own columns that hold anything, in the order of their names.
	Key string
	// LeadID is the service's own ID of the lead, or "" when the file does not know
	// it: letters, digits, dots, underscores and hyphens, at most 128.
	LeadID string
	// Skip says that skip_if leaves the row out: nothing else of the Record counts.
	Skip bool
	// Entry is the number, from 1, of the entry of assign that was used, or 0.
	Entry int
	// Organization is set, or Locator with the one property that its type searches
	// by (specification, endpoint 5, rule 3); none of them if assign is not given.
	Organization                    string
	Locator, SearchText, PostalCode string
	TypeKey, TypeLabel              string
	// Status is one of the eight status keys, or "" for none (specification, "States and transitions").
	Status     string
	ExternalID string
	// Dropped are the values that were left out since they break a rule (on_invalid: drop), and why.
	Dropped []Problem
	// Caught are the texts that a map lacks and that its else took, where Env asks for them, but
	// for those that are a status of the service and pass as they are.
	Caught []Problem
	// Content is in the order of the mapping file, "*" at its place and there in the order of the input's columns.
	// Empty values are left out unless the mapping says empty: clear.
	Content []Field
}

// Detach copies texts that may be kept longer than the row. A part of the row's text would keep all of it in memory.
func (rec *Record) Detach() {
	for _, text := range []*string{
		&rec.Key, &rec.LeadID, &rec.ExternalID, &rec.Organization, &rec.Locator, &rec.Status,
	} {
		*text = strings.Clone(*text)
	}
}

// Field is a key of the content. Value is a text, which may be empty, or if it is Literal a JSON value without white
// space around or in it, and a number's digits as they were written. A Volatile one holds a file's name, a line or a
// run: it is not compared, and never sent by a sync.
type Field struct {
	Name, Value       string
	Literal, Volatile bool
}

// Env is what a text may hold beside columns.
type Env struct {
	File string // {@file}
	Line int    // {@line}
	Run  string // {@run}

	Caught  bool // Record.Caught is wanted
	OneLine bool // no cell holds a carriage return, and none has to be looked for
}

// Problem is why a row cannot be used. Column names the column or columns that the value comes from, if any; Text is a
// sentence without the value. Rule is one of key, external_id, control, cut, required, map, format, status, assign,
// apply, as, expr and lead_id. Word is set for the rules map and status only: the text that a map lacks, or that is no
// status of the service, so that a run can list such words; Value is what the mapping calls the value then, as
// lead.status.
type Problem struct{ Column, Rule, Text, Word, Value string }

// Sentence joins the problems of a row.
func Sentence(ps []Problem) string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		if texts[i] = p.Text; p.Column != "" {
			texts[i] = "column " + p.Column + ": " + p.Text
		}
	}
	return strings.Join(texts, "; ")
}

// rule is what a value may break, and what is then said of it.
type rule struct{ name, complaint string }

var (
	ruleKey      = rule{"key", "is empty, but every row needs one"}
	ruleControl  = rule{"control", "holds a control character, such as a tab or a line break"}
	ruleCut      = rule{"cut", "was cut by a spreadsheet (as in 1.23457E+11): its last digits are lost"}
	ruleRequired = rule{"required", "is empty, but required"}
	ruleMap      = rule{"map", "has a text that its map lacks, and there is no else"}
	ruleElse     = rule{"else", "has a text that its map lacks, and else takes it"}
	ruleFormat   = rule{"format", "is not %s"}
	ruleStatus   = rule{"status", "is neither a status of the service nor mapped to one"}
	ruleApply    = rule{"apply", "does not fit the step %s of its apply"}
	ruleAs       = rule{"as", "is not %s"}
	ruleExpr     = rule{"expr", "cannot be computed: %s"}
	ruleLeadID   = rule{"lead_id", "cannot be the ID of a lead: that takes 1 to 128 letters, digits, dots, " +
		"underscores and hyphens"}
)

// row is a row on its way through a Binding.
type row struct {
	cells    []string
	at       []int // the cells of the columns that the mapping names
	null     []string
	env      Env
	key      string
	problems []Problem
	dropped  []Problem
	caught   []Problem
}

// Map fills rec, whose slices it uses again, from a row's cells, of which there must be as many as Bind was given
// names. It gives all problems of the row, or nil when rec is good. Any number of goroutines may call it at once.
func (b *Binding) Map(cells []string, env Env, rec *Record) []Problem {
	p := b.plan
	if !env.OneLine {
		cells = lineBreaks(cells)
	}
	r := row{cells: cells, at: b.at, null: b.null, env: env, dropped: rec.Dropped[:0], caught: rec.Caught[:0]}
	*rec = Record{Content: slices.Grow(rec.Content[:0], len(p.content)+len(b.rest))}
	if rec.Skip = r.take(p.skip) == "true"; rec.Skip {
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
	if rec.Key = r.key; r.key != "" {
		rec.Key = rowkey.Effective(p.namespace, r.key)
	}
	if p.key != nil && p.externalID != nil {
		rec.ExternalID = r.take(p.externalID)
	}
	rec.LeadID = r.take(p.leadID)
	r.assign(p.assign, rec)
	rec.TypeKey, rec.TypeLabel = r.take(p.typeKey), r.take(p.typeLabel)
	rec.Status = r.take(p.status)
	for i := range p.content {
		if f := &p.content[i]; f.isRest() {
			b.addRest(&r, rec)
		} else {
			r.addField(f, rec)
		}
	}
	rec.Dropped, rec.Caught = r.dropped, r.caught
	r.limit("key", "key", rec.Key)
	r.limit("external_id", "ExternalID", rec.ExternalID)
	if len(r.problems) == 0 { // perhaps of values that were left out
		return nil
	}
	return r.problems
}

func (r *row) limit(rule, what, text string) {
	if len(text) > rowkey.Longest {
		r.problems = append(r.problems,
			Problem{Rule: rule, Text: fmt.Sprintf("the %s is longer than %d bytes", what, rowkey.Longest)})
	}
}

// lineBreaks are the cells with every line break as a line feed, however the system wrote it that exported them: the
// same data keep their key and their digest, and the service gets the same text. What was read stays as it is.
func lineBreaks(cells []string) []string {
	if slices.ContainsFunc(cells, func(cell string) bool { return strings.IndexByte(cell, '\r') >= 0 }) {
		cells = slices.Clone(cells)
		for i, cell := range cells {
			cells[i] = lineBreak.Replace(cell)
		}
	}
	return cells
}

var lineBreak = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func (r *row) addField(f *field, rec *Record) {
	switch s, end := f.value.eval(r); {
	case s != "":
		rec.Content = append(rec.Content, Field{f.name, s, f.value.literal != nil, f.volatile})
	case end == good && f.value.clears:
		rec.Content = append(rec.Content, Field{Name: f.name, Volatile: f.volatile})
	}
}

// rowKey is the default key. White space at a cell's ends and columns that hold nothing do not count, so that the same
// data keep their key in another export.
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
		if !r.fills(t.values()...) {
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
		r.problems = append(r.problems, Problem{Rule: "assign", Text: r.unassigned(entries)})
	}
}

// unassigned says why no entry of assign can be used: by the columns that hold nothing, if it is that.
func (r *row) unassigned(entries []assignment) string {
	const mostNamed = 8
	var empty []part
	for i := range entries {
		for _, v := range entries[i].values() {
			if v != nil && v.preset == "" {
				empty = append(empty, slices.DeleteFunc(v.uses(), func(c part) bool { return !blank(r.cellOf(c)) })...)
			}
		}
	}
	text := "no entry of assign has all that it needs"
	if empty != nil {
		text += ", since these columns are empty: " + spelling.List(namesOf(empty), mostNamed, strconv.Quote)
	}
	return text
}

// fills reports whether all columns of the values hold something, except those of values with a default, or of parts.
func (r *row) fills(values ...*value) bool {
	isEmpty := func(c part) bool { return blank(r.cellOf(c)) }
	return !slices.ContainsFunc(values, func(v *value) bool {
		return v != nil && v.preset == "" && v.parts == nil && slices.ContainsFunc(v.columns, isEmpty)
	})
}

func (r *row) take(v *value) (s string) {
	if v != nil {
		s, _ = v.eval(r)
	}
	return s
}

// cellOf is the cell of one of a value's columns.
func (r *row) cellOf(c part) string { return r.cell(r.at[c.index]) }

// cell is the cell of a column, empty when the row lacks it or null names it.
func (r *row) cell(index int) string {
	if index < 0 || len(r.null) > 0 && r.isNull(r.cells[index]) {
		return ""
	}
	return r.cells[index]
}

func (r *row) isNull(cell string) bool { return slices.Contains(r.null, strings.TrimSpace(cell)) }

// AppendFingerprint appends a text that is the same for two Records with the same data: everything that is sent except
// volatile fields, content keys sorted by name. Neither another run nor another order in the mapping is a change.
func (rec *Record) AppendFingerprint(b []byte) []byte {
	for _, s := range [...]string{
		rec.Organization, rec.Locator, rec.SearchText, rec.PostalCode,
		rec.TypeKey, rec.TypeLabel, rec.Status, rec.ExternalID,
	} {
		b = appendText(b, s)
	}
	order := make([]int, 0, 32) // of most records, without an allocation
	for i := range rec.Content {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(rec.Content[x].Name, rec.Content[y].Name) })
	for _, i := range order {
		if f := &rec.Content[i]; !f.Volatile {
			b = appendText(appendText(b, f.Name), f.Canonical())
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Canonical is the field's value in the form of the function [Canonical].
func (f *Field) Canonical() string {
	if !f.Literal {
		return f.Value
	}
	return Canonical(jsontext.Value(f.Value))
}

// Canonical is a value of Content in the form in which values are compared, however they were written. A string is its
// text. Everything else begins with a byte that is not UTF-8, so that 7 is not "7". A missing value is "".
func Canonical(value jsontext.Value) string {
	switch value.Kind() {
	case '"':
		text, _ := jsontext.AppendUnquote(nil, value)
		return string(text)
	case '0':
		return "\xff" + plainNumber(string(value))
	case '{', '[':
		value = value.Clone()
		_ = value.Canonicalize() // a value that is not JSON stays as it is
	}
	if len(value) == 0 {
		return ""
	}
	return "\xff" + string(value)
}
