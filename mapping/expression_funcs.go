package mapping

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"
)

// builtins are the functions that the language takes from the library as they are.
// What is missing asks the clock or the machine (now, date, duration, timezone),
// loses digits (fromJSON, toJSON), can grow beyond all bounds (reduce, concat,
// flatten, toBase64, …) or serves objects, which no cell is.
var builtins = map[string]bool{
	"len": true, "trim": true, "trimPrefix": true, "trimSuffix": true, "upper": true, "lower": true,
	"hasPrefix": true, "hasSuffix": true, "abs": true, "ceil": true, "floor": true, "round": true,
	"min": true, "max": true, "sum": true, "mean": true, "median": true,
	"first": true, "last": true, "take": true, "get": true, "sort": true, "reverse": true,
	"any": true, "all": true, "none": true, "one": true, "filter": true, "map": true, "count": true,
	"find": true, "findIndex": true, "findLast": true, "findLastIndex": true,
}

// function is one of the language's own: it gets the meter and its arguments.
type function struct {
	name  string
	do    func(m *meter, args []any) any
	types []any
}

// own are the functions that replace the library's: these count characters and not
// bytes, take no number for another one, and are bounded by the meter. Those without
// types stand for operators.
func own() []function {
	return []function{
		{"int", toInt, []any{new(func(string) int), new(func(int) int), new(func(float64) int), new(func(any) int)}},
		{"float", toFloat, []any{new(func(string) float64), new(func(int) float64), new(func(float64) float64), new(func(any) float64)}},
		{"string", toText, []any{new(func(string) string), new(func(int) string), new(func(float64) string), new(func(bool) string), new(func(any) string)}},
		{"split", splitText, []any{new(func(string, string) []string), new(func(string, string, int) []string)}},
		{"join", joinTexts, []any{new(func([]string, string) string), new(func([]any, string) string), new(func([]string) string), new(func([]any) string)}},
		{"replace", replaceText, []any{new(func(string, string, string) string)}},
		{"repeat", repeatText, []any{new(func(string, int) string)}},
		{"indexOf", indexOf(strings.Index), []any{new(func(string, string) int)}},
		{"lastIndexOf", indexOf(strings.LastIndex), []any{new(func(string, string) int)}},
		{"+", add, nil},
		{"-", subtract, nil},
		{"*", multiply, nil},
		{"[:]", slice, nil},
	}
}

// functions are own as the library wants them. Their first argument is the meter:
// guard puts it there once the types are checked.
func functions() []*builtin.Function {
	var fs []*builtin.Function
	for _, f := range own() {
		do := f.do
		var types []reflect.Type
		for _, t := range f.types {
			types = append(types, reflect.TypeOf(t).Elem())
		}
		fs = append(fs, &builtin.Function{
			Name:  f.name,
			Types: types,
			Func:  func(args ...any) (any, error) { return do(args[0].(*meter), args[1:]), nil },
		})
	}
	return fs
}

func functionNames() []string {
	var names []string
	for name := range builtins {
		names = append(names, name)
	}
	for _, f := range own() {
		if f.types != nil {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}

// guard puts the language's own functions in place of operators and calls, below n,
// whose types have been checked: of the library's, one would count bytes, another
// would go on with a wrong number, and each could fill the memory.
func guard(n *ast.Node) { ast.Walk(n, guards{}) }

type guards struct{}

func (guards) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		floats := n.Left.Type().Kind() == reflect.Float64 && n.Right.Type().Kind() == reflect.Float64
		if (n.Operator == "+" || n.Operator == "-" || n.Operator == "*") && !floats {
			callOwn(node, n.Operator, n.Left, n.Right)
		}
	case *ast.SliceNode:
		if kind := n.Node.Type().Kind(); kind == reflect.String || kind == reflect.Interface {
			callOwn(node, "[:]", n.Node, orNil(n.From), orNil(n.To))
		}
	case *ast.CallNode:
		callOwn(node, n.Callee.(*ast.IdentifierNode).Value, n.Arguments...)
	}
}

func orNil(n ast.Node) ast.Node {
	if n == nil {
		return &ast.NilNode{}
	}
	return n
}

func callOwn(node *ast.Node, name string, args ...ast.Node) {
	args = append([]ast.Node{&ast.IdentifierNode{Value: meterName}}, args...)
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: args}
	call.SetNature(*(*node).Nature())
	ast.Patch(node, call)
}

func toInt(_ *meter, args []any) any {
	switch x := args[0].(type) {
	case int:
		return x
	case string:
		if n, err := strconv.Atoi(x); err == nil {
			return n
		}
	case float64:
		if math.Abs(x) < 1<<53 { // beyond, not every whole number is a float64
			return int(x)
		}
	}
	panic(exprError("int takes a whole number of at most 18 digits"))
}

func toFloat(_ *meter, args []any) any {
	switch x := args[0].(type) {
	case int:
		return float64(x)
	case float64:
		return x
	case string:
		if f, err := strconv.ParseFloat(x, 64); err == nil && isNumber(x) {
			return f
		}
	}
	panic(exprError("float takes a number with a point and no comma"))
}

func toText(m *meter, args []any) any {
	s, err := textOf(args[0])
	if err != nil {
		panic(err)
	}
	m.take(len(s))
	return s
}

func add(m *meter, args []any) any {
	switch a := args[0].(type) {
	case string:
		b := args[1].(string)
		m.take(len(a) + len(b))
		return a + b
	case int:
		if b, ok := args[1].(int); ok {
			if sum := a + b; (sum > a) == (b > 0) {
				return sum
			}
			panic(errOverflow)
		}
	}
	return runtime.Add(args[0], args[1])
}

func subtract(_ *meter, args []any) any {
	a, isInt := args[0].(int)
	b, areInts := args[1].(int)
	if !isInt || !areInts {
		return runtime.Subtract(args[0], args[1])
	}
	if difference := a - b; (difference < a) == (b > 0) {
		return difference
	}
	panic(errOverflow)
}

func multiply(_ *meter, args []any) any {
	a, isInt := args[0].(int)
	b, areInts := args[1].(int)
	if !isInt || !areInts {
		return runtime.Multiply(args[0], args[1])
	}
	if a == 0 || b == 0 {
		return 0
	}
	if product := a * b; product/b == a && (a != -1 || b != math.MinInt) && (b != -1 || a != math.MinInt) {
		return product
	}
	panic(errOverflow)
}

func splitText(m *meter, args []any) any {
	s, separator, n := args[0].(string), args[1].(string), -1
	if len(args) > 2 {
		n = runtime.ToInt(args[2])
	}
	parts := strings.Count(s, separator) + 1
	m.take(parts * int(reflect.TypeFor[string]().Size()))
	return strings.SplitN(s, separator, n)
}

func joinTexts(m *meter, args []any) any {
	glue := ""
	if len(args) > 1 {
		glue = args[1].(string)
	}
	texts, ok := args[0].([]string)
	if !ok {
		for _, x := range args[0].([]any) {
			texts = append(texts, x.(string))
		}
	}
	for _, s := range texts {
		m.take(len(s) + len(glue))
	}
	return strings.Join(texts, glue)
}

func replaceText(m *meter, args []any) any {
	s, from, to := args[0].(string), args[1].(string), args[2].(string)
	m.take(len(s) + strings.Count(s, from)*len(to))
	return strings.ReplaceAll(s, from, to)
}

func repeatText(m *meter, args []any) any {
	s, n := args[0].(string), max(0, runtime.ToInt(args[1]))
	if n > maxMade {
		panic(errTooLong)
	}
	m.take(len(s) * n)
	return strings.Repeat(s, n)
}

// indexOf counts characters, as len does.
func indexOf(index func(s, of string) int) func(*meter, []any) any {
	return func(_ *meter, args []any) any {
		s := args[0].(string)
		at := index(s, args[1].(string))
		if at < 0 {
			return -1
		}
		return utf8.RuneCountInString(s[:at])
	}
}

// slice is a part of a text, counted in characters, or of a list. A negative bound
// counts from the end; one beyond an end is that end.
func slice(m *meter, args []any) any {
	s, ok := args[0].(string)
	if !ok {
		return sliceList(args)
	}
	runes := []rune(s)
	from, to := bounds(len(runes), args[1], args[2])
	return string(runes[from:to])
}

func sliceList(args []any) any {
	list := reflect.ValueOf(args[0])
	from, to := bounds(list.Len(), args[1], args[2])
	return list.Slice(from, to).Interface()
}

func bounds(n int, from, to any) (int, int) {
	a, b := 0, n
	if from != nil {
		a = runtime.ToInt(from)
	}
	if to != nil {
		b = runtime.ToInt(to)
	}
	clip := func(i int) int {
		if i < 0 {
			i += n
		}
		return min(max(i, 0), n)
	}
	a, b = clip(a), clip(b)
	return min(a, b), b
}
