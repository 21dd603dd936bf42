package mapping

import (
	"strings"
	"unicode"

	"leadferry/internal/rowkey"
)

// value is one compiled value: a text or an expression and what is done to its
// result, in the order of the fields.
type value struct {
	path string // how the mapping file calls it: lead.content.email
	at   position

	text   text
	expr   *expression // instead of text
	cells  []int       // of the expression's columns once bound, -1: the row has none
	apply  []namedStep
	table  map[string]string // nil: none
	other  text              // what else says; nil: none
	preset string            // default
	needed string            // the rule that an empty result breaks, or ""
	format func(string) bool // nil: none
	check  check             // what kind of word the result must be
	kind   Kind              // as

	formatName string // for people
	clears     bool   // empty: clear
	identity   bool   // it says what a row is
	inContent  bool   // it stands in lead.content, where more is allowed
	searches   bool   // a locator searches by it
}

// check says which words a value may come to.
type check uint8

const (
	anyWord check = iota
	statusWord
	leadIDWord
)

// namedStep is a step of apply and the word for it.
type namedStep struct {
	word string
	do   step
}

// eval is what the value comes to in a row, and the rule that this breaks, or "".
// Of a broken rule, r.why tells more.
func (v *value) eval(r *row) (result, broken string) {
	s := ""
	if v.expr == nil {
		s = v.text.fill(r)
	} else if s, broken = v.compute(r); broken != "" {
		return "", broken
	}
	if len(v.apply) > 0 {
		if s, broken = v.steps(r, s); broken != "" {
			return "", broken
		}
	}
	if v.table != nil && s != "" {
		to, found := v.table[s]
		switch {
		case found:
			s = to
		case v.other != nil:
			r.itself = s
			s = v.other.fill(r)
		default:
			r.why = s
			return "", ruleMap
		}
	}
	if s == "" {
		s = v.preset
	}
	if v.identity {
		s = rowkey.Trim(s)
	}
	switch {
	case s == "":
		return "", v.needed
	case v.identity && v.check == anyWord && strings.ContainsFunc(s, unicode.IsControl):
		return "", ruleControl
	case v.format != nil && !v.format(s):
		return "", ruleFormat
	case v.check != anyWord:
		return v.checked(r, s)
	case v.kind != String:
		if s, ok := literalOf(v.kind, s); ok {
			return s, ""
		}
		return "", ruleAs
	}
	return s, ""
}

// steps applies the steps to s. An empty text is not asked to fit them.
func (v *value) steps(r *row, s string) (result, broken string) {
	for i := 0; i < len(v.apply) && s != ""; i++ {
		var fits bool
		if s, fits = v.apply[i].do(s); !fits {
			r.why = v.apply[i].word
			return "", ruleApply
		}
	}
	return strings.TrimSpace(s), ""
}

func (v *value) checked(r *row, s string) (result, broken string) {
	if v.check == leadIDWord {
		if !isLeadID(s) {
			return "", ruleLeadID
		}
		return s, ""
	}
	key, ok := statusKey(s)
	if !ok {
		r.why = s
		return "", ruleStatus
	}
	return key, ""
}

// isLeadID reports whether s can stand in a path of the service as the ID of a
// lead: 1 to 128 letters, digits, dots, underscores and hyphens, not dots only.
func isLeadID(s string) bool { return len(s) <= 128 && isName(s) && strings.Trim(s, ".") != "" }

// isName reports whether s is made of ASCII letters, digits, dots, underscores and
// hyphens, and not empty.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return s != ""
}

// columns calls f with each column that the value is made of.
func (v *value) columns(f func(name string)) {
	for _, p := range v.text {
		if p.kind == column {
			f(p.text)
		}
	}
	if v.expr != nil {
		for _, c := range v.expr.columns {
			f(c.name)
		}
	}
}

// problem says how the value breaks the rule, of which why tells more.
func (v *value) problem(rule, why string) Problem {
	var names []string
	v.columns(func(name string) { names = append(names, name) })
	p := Problem{Column: strings.Join(names, ", "), Rule: rule, Text: v.path + " " + v.complaint(rule, why)}
	if v.check == statusWord && (rule == ruleStatus || rule == ruleMap) {
		p.Status = cut(why)
	}
	return p
}

func (v *value) complaint(rule, why string) string {
	switch rule {
	case ruleKey:
		return "is empty, but every row needs one"
	case ruleControl:
		return "holds a control character, such as a tab or a line break"
	case ruleRequired:
		return "is empty, but required"
	case ruleMap:
		return "has a text that its map lacks, and there is no else"
	case ruleFormat:
		return "is not " + v.formatName
	case ruleStatus:
		return "is neither a status of the service nor mapped to one"
	case ruleApply:
		return "does not fit the step " + why + " of its apply"
	case ruleAs:
		return "is not " + kindNames[v.kind]
	case ruleLeadID:
		return "cannot be the ID of a lead: that takes 1 to 128 letters, digits, dots, underscores and hyphens"
	case ruleExpr:
		return "cannot be computed: " + why
	}
	return "breaks the rule " + rule
}
