package mapping

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/vm"
)

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

// meter bounds what one computation makes: each text that is put together costs its
// bytes, each list the place of its elements.
type meter struct{ left int }

const maxMade = 1 << 20 // bytes

func (m *meter) take(n int) {
	if n < 0 || n > m.left {
		panic(errTooLong) // the library turns it into the error of the run
	}
	m.left -= n
}

// maxElements bounds the elements of all lists that one computation makes.
const maxElements = 100_000

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
	for i, c := range v.expr.columns {
		cell := strings.TrimSpace(r.cell(v.cells[i]))
		size += len(cell)
		run.cells[c.cell] = cell
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
func (v *value) compute(r *row) (result, broken string) {
	found, err := v.run(r)
	if err == nil {
		result, err = textOf(found)
	}
	if err != nil {
		r.why = reason(err)
		return "", ruleExpr
	}
	return strings.TrimSpace(result), ""
}

// holds reports whether the condition v holds in a row.
func (v *value) holds(r *row) (yes bool, broken string) {
	found, err := v.run(r)
	yes, isBool := found.(bool)
	if err == nil && found != nil && !isBool {
		err = errNotBool
	}
	if err != nil {
		r.why = reason(err)
		return false, ruleExpr
	}
	return yes, ""
}

// reason is what can be told of an error: the library's own hold cells.
func reason(err error) string {
	var e exprError
	if errors.As(err, &e) {
		return e.Error()
	}
	return errUnknown.Error()
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
	switch size := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return "", errOverflow
	case f == math.Trunc(f) && size < 1<<63:
		return strconv.FormatInt(int64(f), 10), nil
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'e', 14, 64), 64)
	if err != nil {
		return "", errOverflow
	}
	format := byte('f')
	if size := math.Abs(rounded); size >= 1e21 || size < 1e-6 {
		format = 'e'
	}
	return strconv.FormatFloat(rounded, format, -1, 64), nil
}
