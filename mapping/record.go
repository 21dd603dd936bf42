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
	"golang.org/x/text/unicode/norm"

	"leadferry/internal/rowkey"
	"leadferry/internal/spelling"
)

// Record is a row after mapping: what the service should hold of it.
type Record struct {
	// Key identifies the row on each run. It is trimmed and never empty; with a namespace it includes the namespace
	// (see rowkey.Effective). Without a key in the mapping it is the ExternalID; without that, too, it is "row-" and 32
	// hexadecimal digits of SHA-256 over the row's own columns that are not empty, sorted by name.
	Key string
	// LeadID is the service's own ID of the lead: at most 128 letters, digits, dots, underscores, hyphens; "": unknown.
	LeadID string
	// Skip says that skip_if leaves the row out. Then only Key, LeadID and ExternalID are set, each if it is valid.
	Skip bool
	// Organization is set, or Locator and the one property that its type searches by (specification, endpoint 5, rule
	// 3). All four are empty if assign is not given.
	Organization                    string
	Locator, SearchText, PostalCode string
	TypeKey, TypeLabel              string
	// Status is one of the eight status keys, or "" for none (specification, "States and transitions").
	Status     string
	ExternalID string
	// Dropped are values left out because they break a rule (on_invalid: drop, or a later part of first fits).
	Dropped []Problem
	// Caught are texts that a map lacks and its else takes, if Env.Caught is set, but no status that stays as it is.
	Caught []Problem
	// Content is in the order of the mapping file; the columns of "*" are in its place, in the order of the input.
	// Empty values are left out unless the mapping says empty: clear.
	Content []Field
}

// Detach copies the texts that may be kept longer than the row: a part of the row's text keeps all of it in memory.
func (rec *Record) Detach() {
	for _, text := range []*string{
		&rec.Key, &rec.LeadID, &rec.ExternalID, &rec.Organization, &rec.Locator, &rec.Status,
	} {
		*text = strings.Clone(*text)
	}
}

// Field is a key of the content. Value is a text, which may be empty. If Literal, it is a JSON value without white
// space around or in it, and numbers keep their digits as written. A Volatile field holds a file's name, a line or a
// run: it is not compared, and sync never sends it.
type Field struct {
	Name, Value       string
	Literal, Volatile bool
}

// Env holds what a text may use besides columns.
type Env struct {
	File string // {@file}
	Line int    // {@line}
	Run  string // {@run}

	Shard   Shard  // of a row that is not in it, Map fills only Key, LeadID and ExternalID
	Place   int    // about where the row is in the inputs, see [Shard.Has]
	Caught  bool   // fill Record.Caught
	Key     string // the effective key of a row of a rejects file: it stays if the row's own data are the key
	OneLine bool   // no cell holds a carriage return, so Map need not look for one
}

// Problem says why a row cannot be used. Column names the columns that the value comes from, if any. Text is a sentence
// without the value. Rule is key, external_id, control, cut, required, map, else (Caught only), format, status, assign,
// apply, as, expr or lead_id. Word and Value are for map, else and status only. Word is the text that the map lacks or
// that is no status of the service: a run lists these. Value is the mapping's name for the value, such as lead.status.
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

// rule is a rule that a value may break, and the complaint about it.
type rule struct{ name, complaint string }

var (
	ruleKey      = rule{"key", "is empty, but every row needs one"}
	ruleControl  = rule{"control", "holds a control character, such as a tab or a line break"}
	ruleCut      = rule{"cut", rowkey.CutText}
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

// row is a row while a Binding maps it.
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

// Map fills rec from a row's cells, one for each name that Bind was given; it uses rec's slices again. It returns all
// problems of the row, or nil if rec is good. Any number of goroutines may call it at once.
func (b *Binding) Map(cells []string, env Env, rec *Record) []Problem {
	p := b.plan
	if !env.OneLine {
		cells = lineBreaks(cells)
	}
	r := row{cells: cells, at: b.at, null: b.null, env: env, dropped: rec.Dropped[:0], caught: rec.Caught[:0]}
	*rec = Record{Content: slices.Grow(rec.Content[:0], len(p.content)+len(b.rest))}
	skip := r.take(p.skip) == "true"
	switch {
	case p.key != nil:
		r.key = r.take(p.key)
	case p.externalID != nil:
		rec.ExternalID = r.take(p.externalID)
		r.key = rec.ExternalID
	case strings.HasPrefix(env.Key, rowkey.Effective(p.namespace, ownKey)): // a corrected row is still the same row
		r.key = rowkey.Own(env.Key)
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
	if rec.Skip = skip; skip || !env.Shard.Has(rec, env.Place) {
		return nil
	}
	r.assign(p.assign, rec)
	rec.TypeKey, rec.TypeLabel, rec.Status = r.take(p.typeKey), r.take(p.typeLabel), r.take(p.status)
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
	if b.strange {
		r.problems = append(r.problems, Problem{Rule: "required", Text: "it has no column that the mapping uses; if its " +
			"rows are in a list, name that with --list"})
	}
	if len(r.problems) == 0 { // perhaps empty but not nil: problems were dropped
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

// lineBreaks returns the cells with a line feed for each line break. Exports of all systems then give the same key and
// digest, and the service gets the same text. It does not change the cells given.
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

const ownKey = "row-" // begins each default key, so that no spreadsheet program takes it for a number

// rowKey returns the default key. It ignores empty columns, white space at ends and the form in which Unicode writes é:
// another export of the same data gives the same keys.
func (b *Binding) rowKey(cells []string) string {
	var room [1024]byte
	buf := room[:0]
	for _, c := range b.own {
		if cell := strings.TrimSpace(cells[c.index]); cell != "" {
			buf = appendSized(appendSized(buf, c.name), norm.NFC.String(cell))
		}
	}
	sum := sha256.Sum256(buf)
	return string(hex.AppendEncode(append(room[:0], ownKey...), sum[:16]))
}

func appendSized(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// assign uses the first entry without an empty value. A text is empty here if one of its columns is.
func (r *row) assign(entries []assignment, rec *Record) {
	before := len(r.problems)
	isEmpty := func(c part) bool { return blank(r.cellOf(c)) }
	for i := range entries {
		t, lacks := &entries[i], false
		take := func(v *value) (s string) {
			had := len(r.problems)
			if s = r.take(v); v != nil && v.parts == nil && v.expr == nil && slices.ContainsFunc(v.columns, isEmpty) {
				s, r.problems = v.preset, r.problems[:had]
			}
			lacks = lacks || v != nil && s == "" && len(r.problems) == had
			return s
		}
		rec.Organization, rec.Locator = take(t.organization), take(t.locator)
		rec.SearchText, rec.PostalCode = take(t.searchText), take(t.postalCode)
		if !lacks {
			return
		}
		r.problems = r.problems[:before] // of an entry that is not used
	}
	if len(entries) > 0 {
		r.problems = append(r.problems, Problem{Rule: "assign", Text: r.unassigned(entries)})
	}
}

// unassigned says why no entry of assign can be used. It names the empty columns, if there are any.
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

func (r *row) take(v *value) (s string) {
	if v != nil {
		s, _ = v.eval(r)
	}
	return s
}

// cellOf returns the cell of one of a value's columns.
func (r *row) cellOf(c part) string { return r.cell(r.at[c.index]) }

// cell returns the cell of a column, "" if the row lacks it or null lists it.
func (r *row) cell(index int) string {
	if index < 0 || len(r.null) > 0 && slices.Contains(r.null, strings.TrimSpace(r.cells[index])) {
		return ""
	}
	return r.cells[index]
}

// AppendFingerprint appends a text that is equal for Records with the same data: all that is sent except volatile
// fields. Content keys are sorted by name: another order in the mapping is no change, and another run is none.
func (rec *Record) AppendFingerprint(b []byte) []byte {
	for _, s := range [...]string{
		rec.Organization, rec.Locator, rec.SearchText, rec.PostalCode,
		rec.TypeKey, rec.TypeLabel, rec.Status, rec.ExternalID,
	} {
		b = appendSized(b, s)
	}
	order := make([]int, 0, 32) // enough for most records without an allocation
	for i := range rec.Content {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(rec.Content[x].Name, rec.Content[y].Name) })
	for _, i := range order {
		if f := &rec.Content[i]; !f.Volatile {
			b = appendSized(appendSized(b, f.Name), f.Canonical())
		}
	}
	return b
}

// Canonical returns the field's value in the form of the function [Canonical].
func (f *Field) Canonical() string {
	if !f.Literal {
		return f.Value
	}
	return Canonical(jsontext.Value(f.Value))
}

// Canonical returns a value of Content in a form in which equal values are equal, however they were written. A string
// becomes its text. All else begins with a byte that is not UTF-8, so that 7 is not "7". A missing value is "".
func Canonical(value jsontext.Value) string {
	switch value.Kind() {
	case '"':
		text, _ := jsontext.AppendUnquote(nil, value)
		return string(text)
	case '0':
		return "\xff" + plainNumber(string(value))
	case '{', '[':
		value = value.Clone()
		_ = value.Canonicalize(jsontext.CanonicalizeRawInts(false)) // a value that is not JSON stays as it is
	}
	if len(value) == 0 {
		return ""
	}
	return "\xff" + string(value)
}
