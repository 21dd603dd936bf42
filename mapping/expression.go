package mapping

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	exprchecker "github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	exprfile "github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/optimizer"
	exprparser "github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
	"github.com/go-json-experiment/json/jsontext"

	"leadferry/internal/lazyregexp"
)

const (
	maxExpression  = 4096    // bytes: brackets cost the parser stack, and nothing else bounds them
	maxNodes       = 1000    // of a parsed expression
	maxExpressions = 128_000 // characters of all in a mapping file, where each counts for 128 more
	maxMade        = 1 << 20 // bytes of the texts and lists that one computation makes
	maxElements    = 100_000 // of all lists that one computation makes

	cellsHint = `a cell is a text: int(column) or float(column) makes a number of it`
	emptyHint = `a cell is a text and never missing: coalesce(a, b) takes the first that holds anything, a != "" asks whether it does`
)

// expression is a compiled expression. It may be shared.
type expression struct {
	program *vm.Program
	columns []use     // each once, in the order in which they stand first
	builds  bool      // it puts a text together
	runs    sync.Pool // of *exprRun
}

// expression reads the expression n. It gives nil after an error.
func (p *parser) expression(n node) *expression {
	s, ok := p.scalar(n)
	if !ok {
		return nil
	}
	if p.expressions += len(s) + maxExpressions/1000; p.expressions > maxExpressions {
		p.fail(n, "", "%s: the expressions of the mapping file are too many or too long", n.path)
		return nil
	}
	e, problem := p.compile(s)
	if problem != nil {
		p.failAt(p.placeIn(n, problem.from), problem.hint, "%s: %s", n.path, problem.text)
		return nil
	}
	for i, c := range e.columns {
		e.columns[i].at = p.placeIn(n, c.from)
	}
	return e
}

// condition reads the expression n, which must be true or false.
func (p *parser) condition(n node) *value {
	e := p.expression(n)
	if e == nil {
		return nil
	}
	if kind := e.program.Node().Type().Kind(); kind != reflect.Bool && kind != reflect.Interface {
		p.fail(n, `for example: column == "yes"`, "%s must be true or false, and this is %s", n.path, results[kind])
		return nil
	}
	return &value{path: n.path, at: n.at(), expr: e, columns: e.columns}
}

// results are what people call those that an expression may have. That of an Interface is
// known when it is computed.
var results = map[reflect.Kind]string{
	reflect.String: "a text", reflect.Int: "a number", reflect.Float64: "a number", reflect.Bool: "true or false", reflect.Interface: "unknown",
}

// exprLanguage knows the functions of the language and no others: they are pure, do
// not ask the machine, and their results do not outgrow what they are made of.
func exprLanguage() *conf.Config {
	c := conf.CreateNew()
	c.MaxNodes = maxNodes
	for name := range c.Builtins {
		if !builtins[name] {
			c.Disabled[name] = true
			delete(c.Builtins, name)
		}
	}
	for _, f := range ownFunctions() {
		c.Functions[f.Name] = f
	}
	return c
}

// errExpression is what is told when the library cannot say what is wrong, or says
// it with a stack trace.
const errExpression = "the expression cannot be compiled"

// compile makes a program of s. The library may stumble over input that
// nobody foresaw: that is the expression's fault, too.
func (p *parser) compile(s string) (e *expression, problem *fault) {
	defer func() {
		if recover() != nil {
			e, problem = nil, &fault{text: errExpression}
		}
	}()
	if len(s) > maxExpression {
		return nil, &fault{text: fmt.Sprintf("the expression is longer than %d bytes", maxExpression)}
	}
	if p.language == nil {
		p.language = exprLanguage()
	}
	parsed, err := exprparser.ParseWithConfig(s, p.language)
	if err != nil {
		return nil, faultOf(s, err)
	}
	t := &exprTree{parser: p}
	t.resolve(&parsed.Node)
	if t.fault != nil {
		return nil, t.fault
	}
	program, problem := t.link(s, parsed)
	if problem != nil {
		return nil, problem
	}
	return &expression{program: program, columns: t.columns, builds: t.builds, runs: sync.Pool{New: newExprRun}}, nil
}

// link checks the types of a resolved tree and makes the program.
func (t *exprTree) link(s string, parsed *exprparser.Tree) (*vm.Program, *fault) {
	variables := map[string]any{meterName: new(meter)}
	for _, c := range t.columns {
		variables[c.variable] = ""
	}
	t.parser.language.WithEnv(variables)
	if _, err := exprchecker.Check(parsed, t.parser.language); err != nil {
		return nil, faultOf(s, err)
	}
	if results[parsed.Node.Type().Kind()] == "" {
		return nil, &fault{text: "the expression comes to a list or an object, not to a text", hint: `join(list, ", ") makes a text of a list`}
	}
	t.guard(&parsed.Node)
	if t.fault != nil {
		return nil, t.fault
	}
	if err := optimizer.Optimize(&parsed.Node, t.parser.language); err != nil {
		return nil, faultOf(s, err)
	}
	program, err := compiler.Compile(parsed, t.parser.language)
	if err != nil {
		return nil, &fault{text: errExpression}
	}
	return program, nil
}

// truth finds the library's errors about texts in place of conditions.
var truth = lazyregexp.New(`^invalid operation: (\|\||&&|or|and|!|not) .*string|used as condition`)

// faultOf is the library's error, which holds nothing but words of the expression,
// in the words of the other errors.
func faultOf(s string, err error) *fault {
	var e *exprfile.Error
	if !errors.As(err, &e) {
		return &fault{text: errExpression}
	}
	text := strings.ReplaceAll(e.Message, cellMark, "")
	if token, found := strings.CutPrefix(text, "unexpected token "); found {
		switch _, word, quoted := strings.Cut(token, "("); {
		case token == "EOF":
			text = "the expression ends where more must follow"
		case quoted:
			text = "unexpected " + strings.TrimSuffix(word, ")")
		}
	}
	return &fault{text, expressionHint(s, text), e.From}
}

// exprError is why an expression cannot be computed. It never holds a cell.
type exprError string

func (e exprError) Error() string { return string(e) }

const (
	errTooLong  = exprError("it makes texts of more than 1 MiB together")
	errOverflow = exprError("a number is too large")
	errNotText  = exprError("it comes to bytes that are no text")
	errList     = exprError("it comes to a list or an object, not to a text")
	errNotBool  = exprError("it is neither true nor false")
	errUnknown  = exprError("a function or an operator does not take what the columns hold")
)

// reason is what can be told of an error: the library's own hold cells.
func reason(err error) string {
	told := errUnknown
	errors.As(err, &told)
	return told.Error()
}

// meter bounds what one computation makes: each text that is put together costs its
// bytes, each list the place of its elements.
type meter struct{ left int }

func (m *meter) take(n int) {
	if n < 0 || n > m.left {
		panic(errTooLong) // the library turns it into the error of the run
	}
	m.left -= n
}

// exprRun is what a computation works with. It serves one after another.
type exprRun struct {
	vm    vm.VM
	cells map[string]any
	meter meter
}

func newExprRun() any {
	run := &exprRun{vm: vm.VM{MemoryBudget: maxElements}}
	run.cells = map[string]any{meterName: &run.meter}
	return run
}

// run computes the expression. One that fails though none of its columns holds
// anything comes to nil: so int(score) of an empty score is empty, and an
// expression that knows what to do with empty cells still sees them.
func (v *value) run(r *row) (any, error) {
	run := v.expr.runs.Get().(*exprRun)
	defer v.expr.runs.Put(run)
	run.meter.left = maxMade
	size := 0
	for i, index := range v.cells {
		cell := strings.TrimSpace(r.cell(index))
		size += len(cell)
		run.cells[v.columns[i].variable] = cell
	}
	if size > maxMade {
		return nil, errTooLong
	}
	result, err := run.vm.Run(v.expr.program, run.cells)
	if err != nil && size == 0 && len(v.cells) > 0 {
		return nil, nil
	}
	return result, err
}

// compute is the text to which the expression comes.
func (v *value) compute(r *row) (string, error) {
	result, err := v.run(r)
	if err != nil {
		return "", err
	}
	s, err := textOf(result)
	return strings.TrimSpace(s), err
}

// holds reports whether the condition v holds in a row.
func (v *value) holds(r *row) (bool, error) {
	result, err := v.run(r)
	if yes, isBool := result.(bool); isBool || err != nil || result == nil {
		return yes, err
	}
	return false, errNotBool
}

// textOf is how people write the result of an expression.
func textOf(result any) (string, error) {
	switch result := result.(type) {
	case nil:
		return "", nil
	case string:
		if !utf8.ValidString(result) {
			return "", errNotText
		}
		return result, nil
	case bool:
		return strconv.FormatBool(result), nil
	case int:
		return strconv.Itoa(result), nil
	case float64:
		return decimalOf(result)
	}
	return "", errList
}

// decimalOf writes a number as people do: 70 and not 7e+01, 0 and not -0, 0.3 for 0.1 + 0.2, which
// is why it keeps 15 digits; whole numbers keep all of theirs.
func decimalOf(f float64) (string, error) {
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return strconv.FormatInt(int64(f), 10), nil
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'e', 14, 64), 64)
	if err != nil || math.IsNaN(rounded) || math.IsInf(rounded, 0) {
		return "", errOverflow
	}
	return jsontext.Float(rounded).String(), nil
}
