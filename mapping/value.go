package mapping

import (
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

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

// trait says what a value of this place may or must be.
type trait func(*value)

func needs(rule string) trait { return func(v *value) { v.needed = rule } }

func isStatus(v *value) { v.check = statusWord }

func namesLead(v *value) { v.check = leadIDWord }

func ofContent(v *value) { v.inContent = true }

func ofSearch(v *value) { v.searches = true }

// value reads the text or the object at n. It gives nil after an error.
func (p *parser) value(path string, n *yaml.Node, traits ...trait) *value {
	v, before := &value{path: path, at: at(n)}, len(p.errs)
	for _, t := range traits {
		t(v)
	}
	if n.Kind != yaml.MappingNode || unquoted(n) {
		v.text = p.text(v, path, n)
	} else {
		p.valueObject(v, n)
	}
	if len(p.errs) > before || n.Kind == yaml.AliasNode {
		return nil
	}
	if v.kind == JSON {
		p.jsonValue(v, n)
	}
	if c, ok := v.text.constant(); ok && !v.identity && (v.expr == nil || len(v.expr.columns) == 0) {
		p.fixedValue(v, n, c)
	}
	return v
}

// jsonValue sees to it that nothing a cell holds can change a JSON value around it.
func (p *parser) jsonValue(v *value, n *yaml.Node) {
	p.shaped(v.path+".else", n, v.other)
	switch {
	case v.table != nil: // the text is looked up
	case v.expr == nil:
		p.shaped(v.path, n, v.text)
	case v.expr.builds && len(v.expr.columns) > 0:
		p.fail(n, `from: '{{"name": "{name}"}' puts cells into JSON safely`, "%s puts a JSON value together, whose shape a cell could change", v.path)
	}
}

// fixedValue checks a value that names no column and whose text, if any, is the constant
// c. It comes to the same in every row, so a rule that it breaks is a mistake of the file.
func (p *parser) fixedValue(v *value, n *yaml.Node, c string) {
	if v.table == nil && v.expr == nil {
		before := len(p.errs)
		c = p.constant(v, v.path, n, c)
		v.text = text{{kind: literal, text: c}}
		if len(p.errs) > before {
			return
		}
	}
	var r row
	if _, broken := v.eval(&r); broken != "" {
		p.fail(n, "", "%s %s", v.path, v.complaint(broken, r.why))
	}
}

// into is a member's read that puts a value into its place.
func (p *parser) into(place **value, traits ...trait) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) { *place = p.value(path, n, traits...) }
}

func (p *parser) valueObject(v *value, n *yaml.Node) {
	if v.identity && !p.steady(v.path, n) {
		return
	}
	before := len(p.errs)
	if as := child(n, "as"); as != nil { // first: constants are checked by it
		p.as(v, v.path+".as", as)
	}
	members := []member{
		{"from", func(path string, n *yaml.Node) { v.text = p.text(v, path, n) }},
		{"apply", func(path string, n *yaml.Node) { v.apply = p.steps(path, n) }},
		{"format", func(path string, n *yaml.Node) { p.format(v, path, n) }},
	}
	if !v.identity {
		members = append(members, p.changing(v)...)
	}
	p.object(v.path, n, members...)
	from, expr := has(n, "from"), has(n, "expr")
	switch {
	case from && expr:
		p.fail(n, "keep one of them", "%s has both from and expr", v.path)
	case !from && !expr && len(p.errs) == before: // else it was misspelt
		p.fail(n, `add from: "{column}"`, "%s lacks from", v.path)
	case v.other != nil && v.table == nil:
		p.fail(n, "", "%s has else without map", v.path)
	}
}

// changing are the keys by which a value may come to another text.
func (p *parser) changing(v *value) []member {
	return []member{
		{"expr", func(path string, n *yaml.Node) { v.expr = p.expression(path, n) }},
		{"map", func(path string, n *yaml.Node) { v.table = p.table(v, path, n) }},
		{"else", func(path string, n *yaml.Node) { v.other = p.otherwise(v, path, n) }},
		{"default", func(path string, n *yaml.Node) { v.preset = p.fixed(v, path, n) }},
		{"required", func(path string, n *yaml.Node) {
			if yes, _ := p.boolean(path, n); yes && v.needed == "" {
				v.needed = ruleRequired
			}
		}},
		{"as", func(string, *yaml.Node) {}},
		{"empty", func(path string, n *yaml.Node) { p.empty(v, path, n) }},
	}
}

func (p *parser) steps(path string, n *yaml.Node) []namedStep {
	var steps []namedStep
	p.list(path, n, func(path string, n *yaml.Node) {
		word, ok := p.scalar(path, n)
		if !ok {
			return
		}
		f, fault, hint := parseStep(word)
		if fault != "" {
			p.fail(n, hint, "%s", fault)
			return
		}
		steps = append(steps, namedStep{word, f})
	})
	return steps
}

func (p *parser) format(v *value, path string, n *yaml.Node) {
	word, ok := p.scalar(path, n)
	if !ok {
		return
	}
	if strings.HasPrefix(word, "/") {
		if fault := p.patterned(1); fault != nil {
			p.fail(n, "", "%s: %s", path, fault.text)
			return
		}
	}
	check, name, fault, hint := parseFormat(word)
	if fault != "" {
		p.fail(n, hint, "%s", fault)
		return
	}
	v.format, v.formatName = check, name
}

func (p *parser) as(v *value, path string, n *yaml.Node) {
	word := p.oneOf(path, "kind of value", n, "string", "number", "boolean", "json")
	v.kind = kinds[word]
	if v.kind != String && !v.inContent {
		p.fail(n, "", "%s: only values in lead.content can be other than texts", path)
	}
}

func (p *parser) empty(v *value, path string, n *yaml.Node) {
	v.clears = p.oneOf(path, "way with empty values", n, "keep", "clear") == "clear"
	if v.clears && !v.inContent {
		p.fail(n, "", "%s: only values in lead.content can be cleared", path)
	}
}

// identity reads a value that says what a row is: key, external_id or lead_id. A table,
// or what stands in for a cell that is filled later, must not change that; and without a
// column all rows would be one.
func (p *parser) identity(place **value, traits ...trait) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		v := p.value(path, n, append(traits, saysWhatItIs)...)
		if v == nil {
			return
		}
		if c, constant := v.text.constant(); constant {
			p.fail(n, `write "{`+strings.Trim(c, "{}")+`}" for what the column holds`, "%s names no column, so that all rows would be one", path)
			return
		}
		*place = v
	}
}

func saysWhatItIs(v *value) { v.identity = true }

// unsteady are the keys of a value by which a row would become another one.
var unsteady = []string{"expr", "map", "else", "default", "required", "as", "empty"}

// steady reports whether an object has none of those.
func (p *parser) steady(path string, n *yaml.Node) bool {
	before := len(p.errs)
	p.each(path, n, func(key, _ *yaml.Node) {
		if slices.Contains(unsteady, key.Value) {
			p.fail(key, "what a row is must not change with a table, or with a cell that is filled later",
				"%s takes from, apply and format only, not %s", path, key.Value)
		}
	})
	return len(p.errs) == before
}
