package mapping

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/internal/rowkey"
	"leadferry/mapping/expression"
	"leadferry/mapping/texts"
)

// value is one compiled value: what it is made of, then the steps that change it, in the order of the fields.
type value struct {
	path   string // its name in the mapping file: lead.content.email
	at     position
	role   role
	inside inside
	level  int  // how many objects and lists are around it
	clears bool // empty: clear
	drops  bool // on_invalid: drop

	// what it is made of: a text, an expression or other values
	text    text
	expr    *expression.Program
	parts   *parts
	columns []part // of text or expr

	apply    []stage
	table    *table  // map; nil: none
	elseText text    // what else says; nil: none
	preset   string  // default
	needed   rule    // the rule that an empty result breaks, if any
	checks   []stage // format, and the checks of the role and of as
	literal  *stage  // as; nil: a text
}

// role is what a value is for, if that place allows more or less than others.
type role uint8

const (
	anyRole    role = iota
	keyRole         // identifies the row: key or external_id
	leadIDRole      // identifies the row by the service's own ID
	statusRole
	contentRole // in lead.content, where more is allowed
)

// inside says what a value is a part of. That decides how the request holds it.
type inside uint8

const (
	nothing inside = iota
	aText          // of first or join
	aMember        // of object or list
)

// isIdentity reports whether the value identifies the row. No table and no default for an empty cell may change it.
func (v *value) isIdentity() bool { return v.role == keyRole || v.role == leadIDRole }

// visit calls f with the value and with all its parts.
func (v *value) visit(f func(*value)) {
	f(v)
	if v.parts != nil {
		for _, part := range v.parts.values {
			part.visit(f)
		}
	}
}

func (v *value) has(kinds ...partKind) (found bool) {
	v.visit(func(v *value) { found = found || v.text.has(kinds...) })
	return found
}

// uses returns the columns that the value is made of.
func (v *value) uses() (all []part) {
	v.visit(func(v *value) { all = append(all, v.own()...) })
	return all
}

// own returns the columns of the value itself, not of its parts.
func (v *value) own() []part {
	all := slices.Clone(v.columns)
	for _, step := range v.apply {
		all = append(all, step.by...)
	}
	return slices.DeleteFunc(all, func(p part) bool { return p.kind != column })
}

// namesOf returns the names of columns, each once.
func namesOf(columns []part) (names []string) {
	for _, c := range columns {
		if !slices.Contains(names, c.text) {
			names = append(names, c.text)
		}
	}
	return names
}

// form returns the value as the mapping writes it, without rules that a row may break: its text or join, and its steps.
func (v *value) form() string {
	form := v.text.String()
	if v.parts != nil {
		var forms []string
		for _, part := range v.parts.values {
			forms = append(forms, strconv.Quote(part.form()))
		}
		form = "{join: [" + strings.Join(forms, ", ") + "], sep: " + strconv.Quote(v.parts.sep) + "}"
	}
	for _, step := range v.apply {
		if step.called != "trim" {
			form += " | " + step.called
		}
	}
	return form
}

// fate says how the evaluation of a value ended, from best to worst.
type fate uint8

const (
	good    fate = iota
	leftOut      // it breaks a rule, and on_invalid drops it
	bad          // it breaks a rule, and the row has a problem
)

// eval returns the value for a row, "" unless its fate is good.
func (v *value) eval(r *row) (string, fate) {
	before := len(r.problems)
	s, end := v.result(r)
	if end == bad && v.drops {
		r.dropped = append(r.dropped, r.problems[before])
		r.problems, end = r.problems[:before], leftOut
	}
	return s, end
}

func (v *value) result(r *row) (s string, end fate) {
	if s, end = v.raw(r); end == bad || end == leftOut && v.needed.name == "" {
		return "", end
	}
	s, broken := through(v.apply, s, r)
	if broken != nil {
		return v.breaks(r, broken.rule, broken.called, "")
	}
	if v.table != nil && s != "" {
		if s, end = v.lookUp(r, s); end != good {
			return "", end
		}
	}
	if s == "" && end == good {
		s = v.preset
	}
	if v.isIdentity() {
		s = rowkey.Trim(s)
	}
	if s == "" && v.needed.name != "" {
		return v.breaks(r, v.needed, "", "")
	}
	result, broken := through(v.checks, s, r)
	if broken != nil {
		return v.breaks(r, broken.rule, broken.called, s)
	}
	return result, good
}

// raw returns what the value is made of in a row, before any step.
func (v *value) raw(r *row) (string, fate) {
	switch {
	case v.parts != nil && v.parts.way == first:
		return v.parts.first(r)
	case v.parts != nil:
		return v.parts.joinAll(r)
	case v.expr == nil:
		s, fits := v.text.fill(r, "")
		if !fits {
			return v.breaks(r, ruleAs, asJSON.called, s)
		}
		return s, good
	}
	s, err := v.expr.Text(func(i int) string { return r.cellOf(v.columns[i]) })
	if err != nil {
		return v.breaks(r, ruleExpr, err.Error(), "")
	}
	return s, good
}

func (v *value) lookUp(r *row, s string) (string, fate) {
	to, found := v.table.find(s)
	switch {
	case found:
		return to, good
	case v.elseText == nil:
		return v.breaks(r, ruleMap, "", s)
	case r.env.Caught:
		r.noteCaught(v, s)
	}
	s, _ = v.elseText.fill(r, s)
	return s, good
}

// noteCaught notes a text that a map lacks and else accepts.
func (r *row) noteCaught(v *value, s string) {
	to, _ := v.elseText.fill(r, s)
	if _, known := StatusKey(s); known && v.role == statusRole && to == s {
		return
	}
	r.caught = append(r.caught, v.problem(ruleElse, "", s))
}

// breaks notes that a row breaks a rule of the value.
func (v *value) breaks(r *row, broken rule, about, s string) (string, fate) {
	r.problems = append(r.problems, v.problem(broken, about, s))
	return "", bad
}

// problem says how a row breaks the rule. about completes the rule's complaint; s is the text that breaks it.
func (v *value) problem(broken rule, about, s string) Problem {
	text := v.path + " " + strings.Replace(broken.complaint, "%s", about, 1)
	p := Problem{Column: strings.Join(namesOf(v.uses()), ", "), Rule: broken.name, Text: text}
	if broken == ruleStatus || broken == ruleMap || broken == ruleElse {
		p.Word, p.Value = texts.Shortened(s, maxShown), v.path
	}
	return p
}

// parts are the values that another value is made of.
type parts struct {
	way    way
	names  []string // of an object's members
	values []*value
	sep    string // of a join
}

// way says how a value is made of others, in the language's word.
type way string

const (
	first  way = "first"
	join   way = "join"
	object way = "object"
	list   way = "list"
)

// isJSON reports whether the parts make a JSON value instead of a text.
func (ps *parts) isJSON() bool { return ps.way == object || ps.way == list }

// keepsShape reports whether no cell can change the JSON value's shape: a cell is all of it, or is inside a template.
func (v *value) keepsShape() bool {
	replaces := func(s stage) bool { return strings.HasPrefix(s.called, "replace:") }
	changes := func(s stage) bool { return s.called != "trim" }
	switch {
	case v.table != nil && !v.elseText.has(itself):
		return true
	case v.expr != nil, slices.ContainsFunc(v.apply, replaces), len(v.elseText) > 1 && !v.elseText.markTemplate():
		return false
	case v.parts == nil:
		isAlone := v.inside != aText && v.table == nil && !slices.ContainsFunc(v.apply, changes)
		return len(v.text) < 2 || isAlone && v.text.markTemplate()
	}
	return v.parts.isJSON() || v.parts.way == first &&
		!slices.ContainsFunc(v.parts.values, func(part *value) bool { return !part.keepsShape() })
}

// joinAll joins the parts for a row. If all parts are empty, so is the result, and its fate is the worst of theirs.
func (ps *parts) joinAll(r *row) (string, fate) {
	var members []string
	worst := good
	for i, part := range ps.values {
		s, end := part.eval(r)
		worst = max(worst, end)
		if s != "" {
			members = append(members, ps.member(i, s))
		}
	}
	switch {
	case worst == bad || members == nil:
		return "", worst
	case ps.way == object:
		return "{" + strings.Join(members, ",") + "}", good
	case ps.way == list:
		return "[" + strings.Join(members, ",") + "]", good
	}
	return strings.TrimSpace(strings.Join(members, ps.sep)), good
}

// member returns s, the value of part i, as the object, list or join writes it.
func (ps *parts) member(i int, s string) string {
	if ps.isJSON() && ps.values[i].literal == nil {
		s = quoted(s)
	}
	if ps.way == object {
		s = quoted(ps.names[i]) + ":" + s
	}
	return s
}

// quoted returns a text as a JSON string. Bytes that are not text become U+FFFD; only a file's name may hold them.
func quoted(s string) string {
	b, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	return string(b)
}

// first returns the first part that is not empty and breaks no rule. It drops earlier parts that break one.
func (ps *parts) first(r *row) (string, fate) {
	before, worst := len(r.problems), good
	for _, part := range ps.values {
		s, end := part.eval(r)
		if s != "" {
			r.dropped = append(r.dropped, r.problems[before:]...)
			r.problems = r.problems[:before]
			return s, good
		}
		worst = max(worst, end)
	}
	return "", worst
}
