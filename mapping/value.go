package mapping

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/rowkey"
)

// value is one compiled value: a text or an expression and what is done to its
// result, in the order of the fields.
type value struct {
	path   string // how the mapping file calls it: lead.content.email
	at     position
	role   role
	clears bool // empty: clear

	text    text
	expr    *expression // instead of text
	columns []use       // of text or expr
	cells   []int       // those of the columns once bound, -1: the row has none

	apply  []stage
	table  map[string]string // map; nil: none
	other  text              // what else says; nil: none
	preset string            // default
	needed string            // the rule that an empty result breaks, or ""
	checks []stage           // format, and what the role and as ask for
	kind   Kind              // as
}

// use is where a value is made of a column.
type use struct {
	name     string
	at       position
	variable string // of an expression's program
	from     int    // in an expression, in characters from 0
}

// role is what a value is for, where that asks for more or less than of others.
type role uint8

const (
	anyRole    role = iota
	keyRole         // says what a row is: key or external_id
	leadIDRole      // says what a row is by the service's own ID
	statusRole
	searchRole  // a locator searches by it
	contentRole // stands in lead.content, where more is allowed
)

// isIdentity reports whether the value says what a row is. A table, or what stands in
// for a cell that is filled later, must not change that.
func (v *value) isIdentity() bool { return v.role == keyRole || v.role == leadIDRole }

// eval is what the value comes to in a row, or the problem of a row that breaks its rules.
func (v *value) eval(r *row) (string, *Problem) {
	s := ""
	if v.expr == nil {
		s = v.text.fill(r, v.cells, "")
	} else {
		var err error
		if s, err = v.compute(r); err != nil {
			return "", v.problem(ruleExpr, reason(err), "")
		}
	}
	s, broken := through(v.apply, s)
	if broken != nil {
		return "", v.problem(broken.rule, broken.called, "")
	}
	if v.table != nil && s != "" {
		to, found := v.table[s]
		switch {
		case found:
			s = to
		case v.other != nil:
			s = v.other.fill(r, nil, s)
		default:
			return "", v.problem(ruleMap, "", s)
		}
	}
	if s == "" {
		s = v.preset
	}
	if v.isIdentity() {
		s = rowkey.Trim(s)
	}
	if s == "" && v.needed != "" {
		return "", v.problem(v.needed, "", "")
	}
	result, broken := through(v.checks, s)
	if broken != nil {
		return "", v.problem(broken.rule, broken.called, s)
	}
	return result, nil
}

// problem says how a row breaks the rule: about is what the rule asks for, s the text
// that breaks it.
func (v *value) problem(rule, about, s string) *Problem {
	var names []string
	for _, c := range v.columns {
		names = append(names, c.name)
	}
	p := &Problem{Column: strings.Join(names, ", "), Rule: rule, Text: v.path + " " + strings.Replace(complaints[rule], "%s", about, 1)}
	if v.role == statusRole && (rule == ruleStatus || rule == ruleMap) {
		p.Status = shortened(s, maxShown)
	}
	return p
}

// into is a member's read that puts a value like v into its place.
func (p *parser) into(place **value, v value) func(node) {
	return func(n node) { *place = p.value(n, v) }
}

// value reads the text or the object n as a value like v, which says what is particular
// to its place. It gives nil after an error.
func (p *parser) value(n node, v value) *value {
	v.path, v.at = n.path, n.at()
	before := len(p.errs)
	r := valueReader{parser: p, value: &v}
	if n.Kind == yaml.MappingNode && !n.isUnquoted() {
		r.readObject(n)
	} else {
		r.readText(n)
	}
	r.addChecks()
	if len(p.errs) > before {
		return nil
	}
	if v.kind == JSON {
		r.checkShape(n)
	}
	c, constant := v.text.constant() // of an expression: none
	switch {
	case constant && v.isIdentity():
		p.fail(n, `write "{`+strings.Trim(c, "{}")+`}" for what the column holds`, "%s names no column, so that all rows would be one", v.path)
	case constant && len(v.columns) == 0:
		r.checkFixed(n)
	}
	return &v
}

// valueReader reads one value: what the file says goes into the value, mistakes to the
// parser.
type valueReader struct {
	*parser
	*value
	format    []stage // none or one
	constants []constant
}

// constant is a text that may take the place of the value's: one of map, else or default.
type constant struct {
	node
	text string
}

// readObject reads a value by its keys: a new one is an entry here and a function.
func (r *valueReader) readObject(n node) {
	members := []member{
		{"from", r.readText},
		{"apply", r.addSteps},
		{"format", r.addFormat},
	}
	changing := []member{
		{"expr", r.readExpr},
		{"map", r.readMap},
		{"else", r.readElse},
		{"default", func(n node) { r.preset = r.readConstant(n) }},
		{"required", r.readRequired},
		{"as", r.readAs},
		{"empty", r.readEmpty},
	}
	before := len(r.errs)
	for _, m := range changing {
		if key, _, found := n.child(m.name); found && r.isIdentity() {
			r.fail(key, "what a row is must not change with a table, or with a cell that is filled later",
				"%s takes from, apply and format only, not %s", n.path, m.name)
		}
	}
	if len(r.errs) > before {
		return
	}
	if !r.isIdentity() {
		members = append(members, changing...)
	}
	r.object(n, members...)
	switch from, expr := n.has("from"), n.has("expr"); {
	case from && expr:
		r.fail(n, "keep one of them", "%s has both from and expr", n.path)
	case !from && !expr && len(r.errs) == before: // else it was misspelt
		r.fail(n, `add from: "{column}"`, "%s lacks from", n.path)
	case n.has("else") && !n.has("map"):
		r.fail(n, "", "%s has else without map", n.path)
	}
}

func (r *valueReader) readExpr(n node) {
	r.expr = r.expression(n)
	if r.expr != nil {
		r.columns = r.expr.columns
	}
}

func (r *valueReader) addSteps(n node) {
	r.list(n, func(n node) {
		if word, ok := r.scalar(n); ok {
			if s, problem := readStep(word); !r.refuse(n, problem) {
				r.apply = append(r.apply, s)
			}
		}
	})
}

func (r *valueReader) addFormat(n node) {
	if word, ok := r.scalar(n); ok {
		if format, problem := r.readFormat(word); !r.refuse(n, problem) {
			r.format = []stage{format}
		}
	}
}

func (r *valueReader) readMap(n node) {
	r.table = map[string]string{}
	r.each(n, func(key, child node) {
		from := strings.TrimSpace(key.Value)
		if from == "" {
			r.fail(key, "use default", "%s is not asked for empty texts", n.path)
			return
		}
		r.table[from] = r.readConstant(child)
	})
}

func (r *valueReader) readElse(n node) {
	r.other = r.placeholders(n)
	if c, ok := r.other.constant(); ok {
		r.constants = append(r.constants, constant{n, c})
	}
	if r.other.has(column, rowKey, file, line, run) {
		r.fail(n, "write {} for the text itself, {{ for a brace", "%s takes no placeholder but {}", n.path)
	}
}

func (r *valueReader) readConstant(n node) string {
	c, ok := r.placeholders(n).constant()
	if !ok {
		r.fail(n, "write {{ for a brace", "%s takes no placeholders", n.path)
	}
	r.constants = append(r.constants, constant{n, c})
	return c
}

func (r *valueReader) readRequired(n node) {
	if yes, _ := r.boolean(n); yes && r.needed == "" {
		r.needed = ruleRequired
	}
}

func (r *valueReader) readAs(n node) {
	var words []string
	for _, k := range kindWords {
		words = append(words, k.name)
	}
	r.kind = Kind(max(0, slices.Index(words, r.oneOf(n, "kind of value", words...))))
	if r.kind != String && r.role != contentRole {
		r.fail(n, "", "%s: only values in lead.content can be other than texts", n.path)
	}
}

func (r *valueReader) readEmpty(n node) {
	r.clears = r.oneOf(n, "way with empty values", "keep", "clear") == "clear"
	if r.clears && r.role != contentRole {
		r.fail(n, "", "%s: only values in lead.content can be cleared", n.path)
	}
}

// addChecks gives the value its checks, and sees to it that its constants pass the last:
// they come behind apply and format, which are for cells.
func (r *valueReader) addChecks() {
	if r.role == keyRole {
		r.checks = append(r.checks, onlyIf(ruleControl, "", showsWhole))
	}
	r.checks = append(r.checks, r.format...)
	before := len(r.checks)
	switch kind := kindWords[r.kind]; {
	case r.role == leadIDRole:
		r.checks = append(r.checks, onlyIf(ruleLeadID, "", isLeadID))
	case r.role == statusRole:
		r.checks = append(r.checks, stage{ruleStatus, aStatus, statusKey})
	case r.kind != String:
		r.checks = append(r.checks, stage{ruleAs, kind.called, kind.do})
	}
	last := r.checks[before:]
	for _, c := range r.constants {
		if _, broken := through(last, c.text); broken != nil {
			r.refuseConstant(c.node, c.text, broken.called)
		}
	}
}

const aStatus = "a status of the service"

func (r *valueReader) refuseConstant(n node, s, called string) {
	hint := ""
	if called == aStatus {
		hint = statusHint(s)
	}
	r.fail(n, hint, "%s: %s is not %s", n.path, quote(s), called)
}

// checkShape sees to it that nothing a cell holds can change a JSON value around it.
func (r *valueReader) checkShape(n node) {
	other := n
	other.path += ".else"
	r.markPlaces(other, r.other)
	switch {
	case r.table != nil: // the text is looked up
	case r.expr == nil:
		r.markPlaces(n, r.text)
	case r.expr.builds && len(r.columns) > 0:
		r.fail(n, `from: '{{"name": "{name}"}' puts cells into JSON safely`, "%s puts a JSON value together, whose shape a cell could change", n.path)
	}
}

// checkFixed checks a value that names no column. It comes to the same in every row, so
// a rule that it breaks is a mistake of the file.
func (r *valueReader) checkFixed(n node) {
	switch _, problem := r.eval(new(row)); {
	case problem == nil:
	case problem.Rule == ruleStatus:
		r.refuseConstant(n, problem.Status, aStatus)
	default:
		r.fail(n, "", "%s", problem.Text)
	}
}
