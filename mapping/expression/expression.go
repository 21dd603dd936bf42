// Package expression is the language of expressions in mapping files: expr-lang/expr over the cells of a row. It has
// the library's functions that read neither the clock nor the machine, and a few of our own that lose no digit. Texts
// are counted in characters. The package comment of mapping says what it promises to authors of mappings.
package expression

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	exprfile "github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
	"github.com/go-json-experiment/json/jsontext"

	"leadferry/internal/spelling"
	"leadferry/mapping/texts"
)

// builtins are functions of the library. own are ours: coalesce, and three that change no number, unlike the library's.
const (
	builtins = `len trim trimPrefix trimSuffix upper lower split join replace repeat hasPrefix hasSuffix abs ceil floor
		round min max sum mean median first last take get sort reverse any all none one filter map count find findIndex
		findLast findLastIndex`
	own = " int float string coalesce"
)

// Program is a compiled expression. It may be shared.
type Program struct {
	Columns []string // each once, in the order of first use
	Result  string   // the kind of result, as people call it, such as Condition

	program *vm.Program
}

// Condition is the Result of an expression that gives only true or false.
const Condition = "true or false"

// results are the kinds of result that an expression may have. For an Interface the kind is known only in each row.
var results = map[reflect.Kind]string{
	reflect.String: "a text", reflect.Int: "a number", reflect.Float64: "a number", reflect.Bool: Condition,
	reflect.Interface: "a value of no fixed kind",
}

// Compile compiles s, which the mapping's author wrote.
func Compile(s string) (*Program, *texts.Fault) {
	tree, err := parser.Parse(s)
	if err != nil {
		return nil, faultOf(err)
	}
	n, x, columns := new(names), new(patcher), map[string]any{}
	ast.Walk(&tree.Node, n)
	for _, c := range n.columns() {
		columns[c] = ""
	}
	options := []expr.Option{
		expr.Env(columns), expr.DisableAllBuiltins(), expr.Patch(x), expr.Function("int", toInt, new(func(any) int)),
		expr.Function("float", toFloat, new(func(any) float64)),
		expr.Function("string", func(args ...any) (any, error) { return textOf(args[0]) }, new(func(any) string)),
		expr.Function("coalesce", firstText, new(func(string, ...string) string)),
	}
	for _, name := range strings.Fields(builtins) {
		options = append(options, expr.EnableBuiltin(name))
	}
	program, err := expr.Compile(s, options...)
	switch {
	case columns["$env"] != nil:
		return nil, texts.NewFault("$env goes before a column's name only", `$env["column"]`)
	case x.fault != nil:
		return nil, x.fault
	case err != nil:
		return nil, faultOf(err)
	}
	result := results[program.Node().Type().Kind()]
	if result == "" {
		return nil, texts.NewFault("the expression comes to a list or an object, not to a text",
			`write join(list, ", ")`)
	}
	return &Program{n.columns(), result, program}, nil
}

// faultOf turns the library's error into a Fault in our words. Of the file, it quotes only words of the expression.
func faultOf(err error) *texts.Fault {
	e, ok := errors.AsType[*exprfile.Error](err)
	if !ok {
		return &texts.Fault{Text: "the expression cannot be compiled"}
	}
	f := texts.NewFault(e.Message, example)
	if token := unexpected().FindStringSubmatch(f.Text); token != nil {
		f.Text = "unexpected " + token[1]
	}
	name, isUnknown := strings.CutPrefix(f.Text, "unknown name ")
	switch {
	case isUnknown:
		known := slices.Sorted(slices.Values(strings.Fields(builtins + own)))
		return texts.Unknown("function "+texts.Quote(name), name, known)
	case strings.HasPrefix(f.Text, "unexpected token EOF"):
		f.Text = "the expression ends where more must follow"
	case f.Text == `unexpected "="`:
		f.Hint = `== compares: column == "yes"`
	case strings.Contains(f.Text, "type"):
		f.Hint = cellHint
	}
	return f
}

// unexpected matches the library's error about a word that does not fit.
var unexpected = spelling.Form(`^unexpected token \w+\((.*)\)$`)

const (
	example  = `for example: stage == "Won" ? first + " " + last : coalesce(nick, $env["Nick name"])`
	cellHint = `a cell is a text and never missing: int(a) makes a number of it, a != "" asks whether it holds ` +
		`anything, coalesce(a, b) takes the first that does; $env["E-mail"] and $env["a.b"] are columns that are no single word`
)

// runError says why an expression cannot be computed. It never holds a cell.
type runError string

func (e runError) Error() string { return string(e) }

// Text computes the expression as a text; cell returns the cell of Columns[i]. If all cells are empty, a failed
// expression gives "" and no error, for example int(score) without a score. No error holds a cell.
func (p *Program) Text(cell func(i int) string) (string, error) {
	cells, empty := make(map[string]any, len(p.Columns)), len(p.Columns) > 0
	for i, column := range p.Columns {
		cell := strings.TrimSpace(cell(i))
		empty = empty && cell == ""
		cells[column] = cell
	}
	result, err := vm.Run(p.program, cells)
	switch {
	case err != nil && empty:
		return "", nil
	case err != nil: // the library's own errors hold cells
		reason := runError("a function or an operator does not take what the columns hold")
		errors.As(err, &reason)
		return "", reason
	}
	s, err := textOf(result)
	return strings.TrimSpace(s), err
}

// textOf writes the result of an expression as people do.
func textOf(result any) (string, error) {
	switch result := result.(type) {
	case nil:
		return "", nil
	case string:
		if !utf8.ValidString(result) {
			return "", runError("it comes to bytes that are no text")
		}
		return result, nil
	case bool:
		return strconv.FormatBool(result), nil
	case int:
		return strconv.Itoa(result), nil
	case float64:
		return decimalOf(result)
	}
	return "", runError("it comes to a list or an object, not to a text")
}

// decimalOf writes a number as people do: 70 and not 7e+01. It keeps 15 digits, whole numbers all: 0.1 + 0.2 is 0.3.
func decimalOf(f float64) (string, error) {
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return strconv.FormatInt(int64(f), 10), nil
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'e', 14, 64), 64)
	if err != nil || math.IsNaN(rounded) || math.IsInf(rounded, 0) {
		return "", runError("a number is too large")
	}
	return jsontext.Float(rounded).String(), nil
}

func toInt(args ...any) (any, error) {
	const most = 1e15 // far larger numbers would overflow in sums and products
	switch x := args[0].(type) {
	case int:
		return x, nil
	case string:
		if n, err := strconv.Atoi(x); err == nil && n < most && n > -most {
			return n, nil
		}
	case float64:
		if math.Abs(x) < most {
			return int(x), nil
		}
	}
	return nil, runError("int takes a whole number of at most 15 digits")
}

func toFloat(args ...any) (any, error) {
	switch x := args[0].(type) {
	case int:
		return float64(x), nil
	case float64:
		return x, nil
	case string:
		if f, err := strconv.ParseFloat(x, 64); err == nil && texts.IsNumber(x) {
			return f, nil
		}
	}
	return nil, runError("float takes a number with a point and no comma")
}

func firstText(args ...any) (any, error) {
	holds := func(s any) bool { return strings.TrimSpace(s.(string)) != "" }
	if i := slices.IndexFunc(args, holds); i >= 0 {
		return args[i], nil
	}
	return "", nil
}

// names finds the columns of an expression: name, and $env["any name"].
type names struct {
	found    []*ast.IdentifierNode
	declared []string // by let
}

// Visit is called with the parts of a node before the node itself.
func (s *names) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		s.found = append(s.found, n)
	case *ast.VariableDeclaratorNode:
		s.declared = append(s.declared, n.Name)
	case *ast.CallNode:
		s.found = slices.DeleteFunc(s.found, func(f *ast.IdentifierNode) bool { return n.Callee == ast.Node(f) })
	case *ast.MemberNode:
		of, isName := n.Node.(*ast.IdentifierNode)
		name, isText := n.Property.(*ast.StringNode)
		if isName && isText && of.Value == "$env" {
			of.Value = name.Value // this tree is only searched, never compiled
		}
	}
}

// columns returns the columns that the expression names, each once, in their order there.
func (s *names) columns() (list []string) {
	for _, f := range s.found {
		if !slices.Contains(list, f.Value) && !slices.Contains(s.declared, f.Value) {
			list = append(list, f.Value)
		}
	}
	return list
}

// patcher changes the tree once types are known: it cuts texts by characters. It refuses a ?? that has no effect.
type patcher struct{ fault *texts.Fault }

// Visit is called with each node.
func (f *patcher) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		_, isName := n.Left.(*ast.IdentifierNode)
		if n.Operator == "??" && isName && n.Left.Type().Kind() == reflect.String {
			f.fault = texts.NewFault("?? takes the left side always, since that is never missing", cellHint)
		}
	case *ast.SliceNode:
		if n.Node.Type().Kind() == reflect.String { // text[a:b] is join(split(text, "")[a:b])
			n.Node = &ast.BuiltinNode{Name: "split", Arguments: []ast.Node{n.Node, &ast.StringNode{}}}
			*node = &ast.BuiltinNode{Name: "join", Arguments: []ast.Node{n}}
		}
	}
}
