package mapping

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/rowkey"
	"leadferry/mapping/expression"
)

func (p *parser) into(place **value, v value) func(node) {
	return func(n node) { *place = p.value(n, v) }
}

// value reads the text or object n as a value. v holds what depends on its place. It returns nil after an error.
func (p *parser) value(n node, v value) *value {
	v.path, v.at = n.path, n.at()
	if v.role == keyRole && v.inside == nothing {
		shows := func(s string) bool { return !strings.ContainsFunc(s, unicode.IsControl) }
		whole := func(s string) bool { return !rowkey.IsCut(s) }
		v.checks = []stage{onlyIf(ruleControl, "", shows), onlyIf(ruleCut, "", whole)}
	}
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
	if v.literal == asJSON && !v.keepsShape() {
		p.fail(n, `for example '{{"name": "{name}", "seats": {seats}}': in quotes a cell is a text, else a JSON value`,
			"%s: as json takes one column, or a JSON value around columns, and no expression: a cell could change the "+
				"shape", v.path)
	}
	switch {
	case len(v.uses()) > 0 || v.has(rowKey, file, line, run):
	case !v.isIdentity():
		r.checkFixed(n)
	case v.inside == nothing:
		c, _ := v.text.constant() // a join has none
		p.fail(n, `write "{`+cmp.Or(bareName(c), "column")+`}" for what the column holds`,
			"%s names no column: all rows would be one", v.path)
	}
	return &v
}

// valueReader reads one value: it fills the value and notes mistakes in the parser.
type valueReader struct {
	*parser
	*value
	constants []constant
	pull      node
}

// constant is a text of the file that may become the value: from else, from default, or from map for a word.
type constant struct {
	file       string
	at         position
	path       string
	word, text string
}

// readObject reads a value by its keys. To add a key, add an entry here and a function.
func (r *valueReader) readObject(n node) {
	sep, required := " ", false
	var format stage
	members := []member{
		{"from", r.readText},
		{"expr", func(n node) { r.expr, r.columns = r.expression(n) }},
		{"first", r.readParts(first)},
		{"object", r.readParts(object)},
		{"list", r.readParts(list)},
		{"join", r.readParts(join)},
		{"sep", set(r.parser, &sep, anyText)},
		{"apply", r.list(r.addStep)},
		{"map", r.readMap},
		{"else", r.readElse},
		{"default", r.readDefault},
		{"required", set(r.parser, &required, lastOf("false", "true"))},
		{"format", set(r.parser, &format, readFormat)},
		{"as", set(r.parser, &r.literal, readAs)},
		{"on_invalid", set(r.parser, &r.drops, lastOf("row", "drop"))},
		{"empty", set(r.parser, &r.clears, lastOf("keep", "clear"))},
		{"pull", func(n node) { r.pull = n }},
		{"conflict", r.readConflict},
	}
	before := len(r.errs)
	r.object(n, slices.DeleteFunc(members, func(m member) bool { return !r.takes(m.name) })...)
	if required && r.needed.name == "" {
		r.needed = ruleRequired
	}
	if format.do != nil {
		r.checks = append(r.checks, format)
	}
	forms := "from expr first join object list"
	if r.parts != nil {
		if r.parts.sep = sep; r.parts.isJSON() {
			r.literal = asJSON
			forms += " apply map else default format as"
		}
	}
	given := slices.DeleteFunc(strings.Fields(forms), func(key string) bool { return !n.has(key) })
	switch {
	case len(given) > 1:
		r.fail(n, "keep one of them", "%s has both %s and %s", n.path, given[0], given[1])
	case len(r.errs) > before:
	case len(given) == 0:
		r.fail(n, `add from: "{column}"`, "%s lacks from", n.path)
	case r.drops && r.needed.name != "":
		r.fail(n, "keep one of them", "%s is required, and on_invalid would leave it out", n.path)
	case n.has("else") && !n.has("map"):
		r.fail(n, "default is for an empty result", "%s has else without map", n.path)
	case n.has("sep") && !n.has("join"):
		r.fail(n, `for example {join: ["{street}", "{city}"], sep: ", "}`, "%s has sep without join", n.path)
	}
}

// takes reports whether a value may have this key here. No table and no later cell may change which row is which.
func (r *valueReader) takes(key string) bool {
	inContent, whole := r.role == contentRole, r.inside == nothing
	switch key {
	case "from", "join", "sep", "apply", "format":
		return true
	case "pull":
		return whole && r.role == statusRole
	case "conflict":
		return whole && (inContent || r.role == statusRole || r.path == externalID)
	case "on_invalid":
		return inContent
	case "as", "object", "list":
		return inContent && r.inside != aText
	case "empty":
		return inContent && whole
	}
	return !r.isIdentity()
}

// expression reads an expression and the columns that it names. It returns nil after an error.
func (p *parser) expression(n node) (e *expression.Program, columns []part) {
	if set(p, &e, expression.Compile)(n); e != nil {
		for _, name := range e.Columns {
			columns = append(columns, p.column(name))
		}
	}
	return e, columns
}

func (p *parser) condition(n node) *value {
	e, columns := p.expression(n)
	if e == nil {
		return nil
	}
	if e.Result != expression.Condition {
		p.fail(n, `for example: column == "yes"`, "%s must be true or false, and this is %s", n.path, e.Result)
		return nil
	}
	return &value{path: n.path, at: n.at(), expr: e, columns: columns}
}

// column returns a placeholder for the column of this name.
func (p *parser) column(name string) part {
	index := slices.Index(p.m.names, name)
	if index < 0 {
		index = len(p.m.names)
		p.m.names = append(p.m.names, name)
	}
	return part{kind: column, text: name, index: index}
}

func (r *valueReader) addStep(n node) {
	var s stage
	set(r.parser, &s, readStep)(n)
	if r.columnsOf(s.by); s.by != nil && r.isIdentity() {
		r.fail(n, `name the country: "e164:US"`, "%s: what a row is must not change with another column", n.path)
	}
	r.apply = append(r.apply, s)
}

func (r *valueReader) readMap(n node) {
	if n.Kind != yaml.ScalarNode {
		r.table = r.words(n)
	} else if set(r.parser, &r.table, r.namedTable)(n); r.table == nil {
		return
	}
	r.constants = append(r.constants, r.table.entries...)
}

func (r *valueReader) readElse(n node) {
	r.elseText = r.placeholders(n)
	if c, ok := r.elseText.constant(); ok {
		r.constants = append(r.constants, constant{r.file, n.at(), n.path, "", c})
	}
	if r.elseText.has(column, rowKey, file, line, run) {
		r.fail(n, "write {} for the text itself, {{ for a brace", "%s takes no placeholder but {}", n.path)
	}
}

func (r *valueReader) readDefault(n node) {
	r.preset = r.fixed(n)
	r.constants = append(r.constants, constant{r.file, n.at(), n.path, "", r.preset})
}

func (p *parser) fixed(n node) string {
	c, ok := p.placeholders(n).constant()
	if !ok {
		p.fail(n, "the text is one and the same in every row; write {{ for a brace", "%s takes no placeholders", n.path)
	}
	return c
}

const (
	externalID = "lead.external_id" // the path of the value that becomes the lead's ExternalID
	maxLevels  = 8                  // of nested objects and lists
)

// readParts reads the values of first, join, object or list.
func (r *valueReader) readParts(kind way) func(node) {
	return func(n node) {
		ps := &parts{way: kind}
		part := value{role: r.role, inside: aText, level: r.level}
		if r.value.parts = ps; ps.isJSON() {
			part.inside, part.level = aMember, r.level+1
		}
		if part.level > maxLevels {
			r.fail(n, "", "%s is more than %d levels deep", n.path, maxLevels)
			return
		}
		add := func(n node) { ps.values = append(ps.values, r.parser.value(n, part)) }
		if kind != object {
			r.list(add)(n)
			return
		}
		r.each(n, func(key, child node) {
			ps.names = append(ps.names, key.Value)
			add(child)
		})
		if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
			r.fail(n, `for example object: {make: "{make}"}`, "%s has no members", n.path)
		}
	}
}
