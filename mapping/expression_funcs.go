package mapping

import (
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/builtin"
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
