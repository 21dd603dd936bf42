package mapping

import (
	"reflect"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// cellMark begins the names of cells among the variables of a program, so that no
// column is taken for something else; meterName is the one variable that is no cell,
// and cannot be named.
const (
	cellMark  = "\x00"
	meterName = "#meter"
)

func cellName(column string) string { return cellMark + column }

// resolve puts cells in place of the columns under n: name, $env["any name"], and
// for the paths a.b and a[0]. The same walk refuses what the language leaves out.
func (t *exprTree) resolve(n *ast.Node) {
	ast.Walk(n, declared{t})
	ast.Walk(n, t)
	ast.Walk(n, bare{t})
	ast.Walk(n, loops{t, false})
	ast.Walk(n, used{t})
	slices.SortStableFunc(t.columns, func(a, b treeColumn) int { return a.from - b.from })
	seen := map[string]bool{}
	t.columns = slices.DeleteFunc(t.columns, func(c treeColumn) bool {
		again := seen[c.name]
		seen[c.name] = true
		return again
	})
}

// used gathers the cells of a tree in which all are resolved.
type used struct{ *exprTree }

func (t used) Visit(n *ast.Node) {
	if column, isCell := nameOfCell(*n); isCell {
		t.columns = append(t.columns, treeColumn{column, (*n).Location().From})
	}
}

func (t *exprTree) fail(n ast.Node, hint, text string) {
	if t.fault == nil {
		t.fault = &exprFault{n.Location().From, text, hint}
	}
}

// declared gathers the names that let declares.
type declared struct{ *exprTree }

func (t declared) Visit(n *ast.Node) {
	if d, ok := (*n).(*ast.VariableDeclaratorNode); ok {
		t.locals[d.Name] = true
	}
}

// Visit resolves one node. The walk has shown it the parts of the node before: names
// in them are cells already.
func (t *exprTree) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value != "$env" && !t.locals[n.Value] {
			toCell(node, n.Value, n)
		}
	case *ast.MemberNode:
		t.member(node, n)
	case *ast.ChainNode: // made for a?.b, which is a.b here
		if _, isCell := nameOfCell(n.Node); isCell {
			*node = n.Node
		}
	case *ast.CallNode:
		t.call(n)
	case *ast.BuiltinNode: // some of these the library's settings cannot switch off
		if !builtins[n.Name] {
			t.unknown(n, n.Name)
		}
	case *ast.BinaryNode:
		if n.Operator == "matches" {
			t.pattern(n)
		}
	}
}

// toCell puts a cell in place of a node, at the place of another.
func toCell(node *ast.Node, column string, place ast.Node) {
	ast.Patch(node, &ast.IdentifierNode{Value: cellName(column)})
	(*node).SetLocation(place.Location())
}

// member makes one column of $env["name"] and of the paths a.b and a[0].
func (t *exprTree) member(node *ast.Node, n *ast.MemberNode) {
	property, constant := n.Property.(*ast.StringNode)
	if index, ok := n.Property.(*ast.IntegerNode); ok {
		property, constant = &ast.StringNode{Value: strconv.Itoa(index.Value)}, true
	}
	base, isCell := nameOfCell(n.Node)
	ident, _ := n.Node.(*ast.IdentifierNode)
	isEnv := ident != nil && ident.Value == "$env"
	switch {
	case isEnv && constant:
		toCell(node, strings.TrimSpace(property.Value), n.Node)
	case isEnv:
		t.fail(n.Property, `$env["column"]`, "a column's name must be written out")
	case isCell && constant && n.Method:
		t.fail(n, property.Value+"(column)", "there are no methods, only functions")
	case isCell && constant:
		toCell(node, base+"."+property.Value, n.Node)
	}
}

func nameOfCell(n ast.Node) (column string, ok bool) {
	if id, isIdent := n.(*ast.IdentifierNode); isIdent {
		return strings.CutPrefix(id.Value, cellMark)
	}
	return "", false
}

// call refuses functions that are not known. Those of the library stand in another
// kind of node.
func (t *exprTree) call(n *ast.CallNode) {
	name, isCell := nameOfCell(n.Callee)
	if !isCell {
		t.fail(n, "", "only functions can be called")
		return
	}
	if t.known.Functions[name] == nil {
		t.unknown(n, name)
		return
	}
	n.Callee = &ast.IdentifierNode{Value: name}
}

func (t *exprTree) unknown(n ast.Node, name string) {
	known := functionNames()
	hint := didYouMean(name, known)
	if hint == "" {
		hint = "known here: " + strings.Join(known, ", ")
	}
	t.fail(n, hint, "unknown function "+quote(name))
}

// pattern checks what matches is to look for, which cannot come from a cell.
func (t *exprTree) pattern(n *ast.BinaryNode) {
	s, constant := n.Right.(*ast.StringNode)
	if !constant {
		t.fail(n.Right, `column matches "^[0-9]+$"`, "the regular expression must be written out")
		return
	}
	if len(s.Value) > maxPattern {
		t.fail(s, "", "the regular expression is longer than 1 KiB")
		return
	}
	t.patterns++
	re, err := syntax.Parse(s.Value, syntax.Perl)
	switch {
	case err != nil:
		t.fail(s, "the syntax is that of RE2: no look-ahead, no back-references", patternFault(err))
	case instructions(re) > maxProgram:
		t.fail(s, "use * or + in place of large numbers", "the regular expression is too large once its repetitions are written out")
	}
}

// bare refuses what is left of $env: which columns the expression uses must show.
type bare struct{ *exprTree }

func (t bare) Visit(n *ast.Node) {
	if id, ok := (*n).(*ast.IdentifierNode); ok && id.Value == "$env" {
		t.fail(id, `$env["column"]`, "$env stands before a column's name only")
	}
}

// typed looks at a tree whose types are known: it refuses what would not do what it
// says, and notes whether texts are put together.
type typed struct{ *exprTree }

func (t typed) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		switch {
		case n.Operator == "??" && !mayMiss(n.Left):
			t.fail(n, emptyHint, "?? takes the left side always, since that is never missing")
		case n.Operator == "+" && n.Type().Kind() != reflect.Int && n.Type().Kind() != reflect.Float64:
			t.builds = true
		}
	case *ast.BuiltinNode:
		t.builds = t.builds || slices.Contains(builders, n.Name)
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok {
			t.builds = t.builds || slices.Contains(builders, name.Value)
		}
	}
}

// mayMiss reports whether a node may come to nothing: cells and what is made of them
// never do.
func mayMiss(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		_, isCell := nameOfCell(n)
		return !isCell
	case *ast.BuiltinNode:
		return slices.Contains([]string{"get", "first", "last", "find", "findLast"}, n.Name)
	}
	return n.Type().Kind() != reflect.String && n.Type().Kind() != reflect.Bool
}

// builders are the functions that put texts together.
var builders = []string{"join", "replace", "repeat"}

// loops refuses a loop in a loop, whose time would grow with the square of a cell.
type loops struct {
	*exprTree
	inside bool
}

func (t loops) Visit(n *ast.Node) {
	loop, ok := (*n).(*ast.PredicateNode)
	switch {
	case !ok:
	case t.inside:
		t.fail(loop, "give the inner list a name before: let names = split(column, \",\"); …", "a function over a list stands in another one")
	default:
		ast.Walk(&loop.Node, loops{t.exprTree, true})
	}
}
