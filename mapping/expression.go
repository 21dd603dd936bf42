package mapping

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/expr-lang/expr/ast"
	exprchecker "github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	exprfile "github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/optimizer"
	exprparser "github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
	"go.yaml.in/yaml/v4"
)

const (
	maxExpression  = 4096    // bytes: brackets cost the parser stack, and nothing else bounds them
	maxNodes       = 1000    // of a parsed expression
	maxExpressions = 128_000 // characters of all in a mapping file, where each counts for 128 more
	maxPatterns    = 100     // regular expressions of a mapping file

	cellsHint = `a cell is a text: int(column) or float(column) makes a number of it`
	emptyHint = `a cell is a text and never missing: a != "" asks whether it holds anything, and a != "" ? a : b takes the first that does`
)

// expression is a compiled expression. It may be shared.
type expression struct {
	program *vm.Program
	columns []exprColumn // each once, in the order in which they stand first
	builds  bool         // it puts a text together
	runs    sync.Pool    // of *exprRun
}

// exprColumn is a column that an expression names, and where.
type exprColumn struct {
	name, cell string // cell: among the variables of the program
	at         position
}

// exprFault is a mistake in an expression, at a character from 0.
type exprFault struct {
	at         int
	text, hint string
}

// expression reads the expression at n. It gives nil after an error.
func (p *parser) expression(path string, n *yaml.Node) *expression {
	s, ok := p.scalar(path, n)
	if !ok {
		return nil
	}
	if p.expressions += len(s) + maxExpressions/1000; p.expressions > maxExpressions {
		p.fail(n, "", "%s: the expressions of the mapping file are too many or too long", path)
		return nil
	}
	places := p.places(n)
	place := func(i int) position {
		if i < len(places) {
			return places[i]
		}
		return at(n)
	}
	tree, fault := p.compile(s)
	if fault != nil {
		p.failAt(place(fault.at), fault.hint, "%s: %s", path, fault.text)
		return nil
	}
	e := &expression{program: tree.program, builds: tree.builds, runs: sync.Pool{New: newExprRun}}
	for _, c := range tree.columns {
		e.columns = append(e.columns, exprColumn{c.name, cellName(c.name), place(c.from)})
	}
	return e
}

// condition reads the expression at n, which must be true or false.
func (p *parser) condition(path string, n *yaml.Node) *value {
	e := p.expression(path, n)
	if e == nil {
		return nil
	}
	if kind := e.program.Node().Type().Kind(); kind != reflect.Bool && kind != reflect.Interface {
		p.fail(n, `for example: column == "yes"`, "%s must be true or false, and this is %s", path, typeName(kind))
		return nil
	}
	return &value{path: path, at: at(n), expr: e}
}

// exprTree is an expression on its way to a program.
type exprTree struct {
	program *vm.Program
	columns []treeColumn
	fault   *exprFault
	locals  map[string]bool // that let declares
	known   *conf.Config

	builds   bool
	patterns int // how many regular expressions it has
}

type treeColumn struct {
	name string
	from int
}

// exprConfig knows the functions of the language and no others: they are pure, do
// not ask the machine, and their results do not outgrow what they are made of.
func exprConfig() *conf.Config {
	c := conf.CreateNew()
	c.MaxNodes = maxNodes
	for name := range c.Builtins {
		if !builtins[name] {
			c.Disabled[name] = true
			delete(c.Builtins, name)
		}
	}
	for _, f := range functions() {
		c.Functions[f.Name] = f
	}
	return c
}

// errExpression is what is told when the library cannot say what is wrong, or says
// it with a stack trace.
const errExpression = "the expression cannot be compiled"

// compile makes a program of s. The library may stumble over input that
// nobody foresaw: that is the expression's fault, too.
func (p *parser) compile(s string) (tree *exprTree, fault *exprFault) {
	defer func() {
		if recover() != nil {
			tree, fault = nil, &exprFault{text: errExpression}
		}
	}()
	if len(s) > maxExpression {
		return nil, &exprFault{text: fmt.Sprintf("the expression is longer than %d bytes", maxExpression)}
	}
	if p.exprs == nil {
		p.exprs = exprConfig()
	}
	parsed, err := exprparser.ParseWithConfig(s, p.exprs)
	if err != nil {
		return nil, faultOf(err)
	}
	t := &exprTree{locals: map[string]bool{}, known: p.exprs}
	t.resolve(&parsed.Node)
	if t.fault == nil {
		t.fault = p.patterned(t.patterns)
	}
	if t.fault == nil {
		t.program, t.fault = t.link(parsed)
	}
	if t.fault != nil {
		return nil, t.fault
	}
	return t, nil
}

// link checks the types of a resolved tree and makes the program.
func (t *exprTree) link(parsed *exprparser.Tree) (*vm.Program, *exprFault) {
	cells := map[string]any{meterName: new(meter)}
	for _, c := range t.columns {
		cells[cellName(c.name)] = ""
	}
	t.known.WithEnv(cells)
	if _, err := exprchecker.Check(parsed, t.known); err != nil {
		return nil, faultOf(err)
	}
	if typeName(parsed.Node.Type().Kind()) == "" {
		return nil, &exprFault{text: "the expression comes to a list or an object, not to a text", hint: `join(list, ", ") makes a text of a list`}
	}
	ast.Walk(&parsed.Node, typed{t})
	if t.fault != nil {
		return nil, t.fault
	}
	guard(&parsed.Node)
	if err := optimizer.Optimize(&parsed.Node, t.known); err != nil {
		return nil, faultOf(err)
	}
	program, err := compiler.Compile(parsed, t.known)
	if err != nil {
		return nil, &exprFault{text: errExpression}
	}
	return program, nil
}

// truth finds the library's errors about texts in place of conditions.
var truth = regexp.MustCompile(`^invalid operation: (\|\||&&|or|and|!|not) .*string|used as condition`)

// faultOf is the library's error, which holds nothing but words of the expression,
// in the words of the other errors.
func faultOf(err error) *exprFault {
	var e *exprfile.Error
	if !errors.As(err, &e) {
		return &exprFault{text: errExpression}
	}
	fault := &exprFault{at: e.From, text: strings.ReplaceAll(e.Message, cellMark, "")}
	if token, found := strings.CutPrefix(fault.text, "unexpected token "); found {
		switch _, word, quoted := strings.Cut(token, "("); {
		case token == "EOF":
			fault.text = "the expression ends where more must follow"
		case quoted:
			fault.text = "unexpected " + strings.TrimSuffix(word, ")")
		}
	}
	switch text := fault.text; {
	case truth.MatchString(text):
		fault.hint = emptyHint
	case strings.Contains(text, "type"):
		fault.hint = cellsHint
	}
	return fault
}

// patterned counts n more regular expressions of the file.
func (p *parser) patterned(n int) *exprFault {
	if p.patterns += n; p.patterns > maxPatterns {
		return &exprFault{text: fmt.Sprintf("a mapping file has at most %d regular expressions", maxPatterns)}
	}
	return nil
}

// typeName is what people call the results that an expression may have, or "".
func typeName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a text"
	case reflect.Int, reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Interface: // known when it is computed
		return "no condition"
	}
	return ""
}
