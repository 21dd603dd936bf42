package expression

import (
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"

	"leadferry/mapping/texts"
)

// builtins are the functions that the language takes from the library as they are. What is missing asks the clock or
// the machine (now, date, duration, timezone), loses digits (fromJSON, toJSON), can grow beyond all bounds (reduce,
// concat, flatten, toBase64, …) or serves objects, which no cell is.
var builtins = map[string]bool{
	"len": true, "trim": true, "trimPrefix": true, "trimSuffix": true, "upper": true, "lower": true,
	"hasPrefix": true, "hasSuffix": true, "abs": true, "ceil": true, "floor": true, "round": true,
	"min": true, "max": true, "sum": true, "mean": true, "median": true,
	"first": true, "last": true, "take": true, "get": true, "sort": true, "reverse": true,
	"any": true, "all": true, "none": true, "one": true, "filter": true, "map": true, "count": true,
	"find": true, "findIndex": true, "findLast": true, "findLastIndex": true,
}

// ownFunctions are those that replace the library's: they count characters and not
// bytes, take no number for another one, and are bounded by the budget. Those without
// types stand for operators. A new one is an entry here and a function.
func ownFunctions() []*builtin.Function {
	return []*builtin.Function{
		own("int", toInt, new(func(string) int), new(func(int) int), new(func(float64) int), new(func(any) int)),
		own("float", toFloat, new(func(string) float64), new(func(int) float64), new(func(float64) float64), new(func(any) float64)),
		own("string", toText, new(func(string) string), new(func(int) string), new(func(float64) string), new(func(bool) string), new(func(any) string)),
		own("split", splitText, new(func(string, string) []string), new(func(string, string, int) []string)),
		own("join", joinTexts, new(func([]string, string) string), new(func([]any, string) string), new(func([]string) string), new(func([]any) string)),
		own("coalesce", firstText, new(func(string, ...string) string)),
		own("replace", replaceText, new(func(string, string, string) string)),
		own("repeat", repeatText, new(func(string, int) string)),
		own("indexOf", indexOf(strings.Index), new(func(string, string) int)),
		own("lastIndexOf", indexOf(strings.LastIndex), new(func(string, string) int)),
		own("+", add),
		own("-", arithmetic((*big.Int).Sub, runtime.Subtract)),
		own("*", arithmetic((*big.Int).Mul, runtime.Multiply)),
		own("[:]", slice),
	}
}

// own is a function as the library wants it, of one of the types. Its first argument is
// the budget: guard puts it there once the types are checked.
func own(name string, do func(b *budget, args []any) any, types ...any) *builtin.Function {
	f := &builtin.Function{
		Name: name,
		Func: func(args ...any) (any, error) { return do(args[0].(*budget), args[1:]), nil },
	}
	for _, t := range types {
		f.Types = append(f.Types, reflect.TypeOf(t).Elem())
	}
	return f
}

func functionNames() []string {
	names := slices.Collect(maps.Keys(builtins))
	for _, f := range ownFunctions() {
		if f.Types != nil {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

func toInt(_ *budget, args []any) any {
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
	panic(runError("int takes a whole number of at most 18 digits"))
}

func toFloat(_ *budget, args []any) any {
	switch x := args[0].(type) {
	case int:
		return float64(x)
	case float64:
		return x
	case string:
		if f, err := strconv.ParseFloat(x, 64); err == nil && texts.IsNumber(x) {
			return f
		}
	}
	panic(runError("float takes a number with a point and no comma"))
}

func toText(b *budget, args []any) any {
	s, err := textOf(args[0])
	if err != nil {
		panic(err)
	}
	b.take(len(s))
	return s
}

// arithmetic is an operator by which no number becomes another one because it does not
// fit: exact does it for whole numbers, other for the rest.
func arithmetic(exact func(z, a, b *big.Int) *big.Int, other func(a, b any) any) func(*budget, []any) any {
	return func(_ *budget, args []any) any {
		a, isWhole := args[0].(int)
		b, areWhole := args[1].(int)
		if !isWhole || !areWhole {
			return other(args[0], args[1])
		}
		z := exact(new(big.Int), big.NewInt(int64(a)), big.NewInt(int64(b)))
		if !z.IsInt64() {
			panic(errOverflow)
		}
		return int(z.Int64())
	}
}

var addNumbers = arithmetic((*big.Int).Add, runtime.Add)

func add(b *budget, args []any) any {
	x, isText := args[0].(string)
	y, areTexts := args[1].(string)
	if !isText || !areTexts {
		return addNumbers(b, args)
	}
	b.take(len(x) + len(y))
	return x + y
}

func splitText(b *budget, args []any) any {
	s, separator, n := args[0].(string), args[1].(string), -1
	if len(args) > 2 {
		n = runtime.ToInt(args[2])
	}
	parts := strings.Count(s, separator) + 1
	b.take(parts * int(reflect.TypeFor[string]().Size()))
	return strings.SplitN(s, separator, n)
}

func joinTexts(b *budget, args []any) any {
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
		b.take(len(s) + len(glue))
	}
	return strings.Join(texts, glue)
}

func firstText(_ *budget, args []any) any {
	for _, s := range args {
		if s := s.(string); strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

func replaceText(b *budget, args []any) any {
	s, from, to := args[0].(string), args[1].(string), args[2].(string)
	b.take(len(s) + strings.Count(s, from)*len(to))
	return strings.ReplaceAll(s, from, to)
}

func repeatText(b *budget, args []any) any {
	s, n := args[0].(string), max(0, runtime.ToInt(args[1]))
	if n > maxMade {
		panic(errTooLong)
	}
	b.take(len(s) * n)
	return strings.Repeat(s, n)
}

func indexOf(index func(s, of string) int) func(*budget, []any) any {
	return func(_ *budget, args []any) any {
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
func slice(_ *budget, args []any) any {
	if s, isText := args[0].(string); isText {
		characters := []rune(s)
		from, to := bounds(len(characters), args[1], args[2])
		return string(characters[from:to])
	}
	list := reflect.ValueOf(args[0])
	from, to := bounds(list.Len(), args[1], args[2])
	return list.Slice(from, to).Interface()
}

func bounds(n int, from, to any) (int, int) {
	clip := func(bound any, missing int) int {
		if bound == nil {
			return missing
		}
		i := runtime.ToInt(bound)
		if i < 0 {
			i += n
		}
		return min(max(i, 0), n)
	}
	end := clip(to, n)
	return min(clip(from, 0), end), end
}
