package expression

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"leadferry/mapping/texts"
)

// cellMark begins the names of cells among the variables of a program, so that no column is taken for something else;
// budgetName is the one variable that is no cell, and cannot be named.
const (
	cellMark   = "\x00"
	budgetName = "#budget"
)

// tree is an expression on its way to a program.
type tree struct {
	language  *Language
	locals    map[string]bool              // that let declares
	callees   map[*ast.IdentifierNode]bool // names of functions
	columns   []Column                     // each once, in the order in which they stand first
	variables []string                     // that hold their cells
	builds    bool                         // it puts texts together
	fault     *texts.Fault                 // the first
}

// visitor is a function that a walk shows each node, the parts of a node before itself.
type visitor func(*ast.Node)

func (v visitor) Visit(n *ast.Node) { v(n) }

func (t *tree) fail(n ast.Node, hint, text string) {
	if t.fault == nil {
		t.fault = &texts.Fault{Text: text, Hint: hint, From: n.Location().From}
	}
}

// resolve puts cells in place of the columns under n: name, $env["any name"], and
// for the paths a.b and a[0]. It refuses what the language leaves out.
func (t *tree) resolve(n *ast.Node) {
	t.locals, t.callees = map[string]bool{}, map[*ast.IdentifierNode]bool{}
	ast.Walk(n, visitor(t.gather))
	ast.Walk(n, visitor(t.putCell))
	ast.Walk(n, visitor(t.check))
}

// gather notes the names that are no columns: those that let declares, and functions.
func (t *tree) gather(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.VariableDeclaratorNode:
		t.locals[n.Name] = true
	case *ast.CallNode:
		t.gatherCall(n)
	case *ast.BuiltinNode: // some of these the library's settings cannot switch off
		if !builtins[n.Name] {
			t.unknown(n, n.Name)
		}
	}
}

func (t *tree) gatherCall(n *ast.CallNode) {
	switch callee := n.Callee.(type) {
	case *ast.IdentifierNode:
		t.callees[callee] = true
		if t.language.config.Functions[callee.Value] == nil {
			t.unknown(n, callee.Value)
		}
	case *ast.MemberNode:
		t.fail(callee, strings.Trim(callee.Property.String(), `"`)+"(column)", "there are no methods, only functions")
	default:
		t.fail(n, "", "only functions can be called")
	}
}

func (t *tree) unknown(n ast.Node, name string) {
	problem := texts.Unknown("function "+texts.Quote(name), name, functionNames())
	t.fail(n, cmp.Or(otherwise[name], otherwise[strings.ToLower(name)], problem.Hint), problem.Text)
}

// putCell puts a cell in place of one node, if it is the name of a column or goes into
// one. Of a.b.c the walk shows a first, so that a member of a cell is a longer path.
func (t *tree) putCell(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value != "$env" && !t.locals[n.Value] && !t.callees[n] {
			toCell(node, n.Value, n)
		}
	case *ast.MemberNode:
		t.putPath(node, n)
	case *ast.ChainNode: // made for a?.b, which is a.b here
		if _, isCell := nameOfCell(n.Node); isCell {
			*node = n.Node
		}
	}
}

// putPath makes one column of $env["name"] and of the paths a.b and a[0].
func (t *tree) putPath(node *ast.Node, n *ast.MemberNode) {
	step, constant := "", true
	switch property := n.Property.(type) {
	case *ast.StringNode:
		step = property.Value
	case *ast.IntegerNode:
		step = strconv.Itoa(property.Value)
	default:
		constant = false
	}
	path, isCell := nameOfCell(n.Node)
	switch isEnv := isBareEnv(n.Node); {
	case isEnv && constant:
		toCell(node, strings.TrimSpace(step), n.Node)
	case isEnv:
		t.fail(n.Property, `$env["column"]`, "a column's name must be written out")
	case isCell && constant:
		toCell(node, path+"."+step, n.Node)
	}
}

// toCell puts a cell in place of a node, at the place of another.
func toCell(node *ast.Node, column string, place ast.Node) {
	ast.Patch(node, &ast.IdentifierNode{Value: cellMark + column})
	(*node).SetLocation(place.Location())
}

func nameOfCell(n ast.Node) (column string, ok bool) {
	if id, isIdent := n.(*ast.IdentifierNode); isIdent {
		return strings.CutPrefix(id.Value, cellMark)
	}
	return "", false
}

func isBareEnv(n ast.Node) bool {
	id, isIdent := n.(*ast.IdentifierNode)
	return isIdent && id.Value == "$env"
}

// check gathers the cells of a tree in which all are resolved. It refuses a rest of $env, since it must show which
// columns the expression uses, and a loop in a loop, whose time would grow with the square of a cell.
func (t *tree) check(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		column, isCell := nameOfCell(n)
		if isCell && !slices.Contains(t.variables, n.Value) {
			t.columns = append(t.columns, Column{column, n.Location().From})
			t.variables = append(t.variables, n.Value)
		}
		if isBareEnv(n) {
			t.fail(n, `$env["column"]`, "$env stands before a column's name only")
		}
	case *ast.PredicateNode:
		ast.Walk(&n.Node, visitor(func(node *ast.Node) {
			if loop, ok := (*node).(*ast.PredicateNode); ok {
				t.fail(loop, "give the inner list a name before: let names = split(column, \",\"); …", "a function over a list stands in another one")
			}
		}))
	case *ast.BinaryNode:
		if n.Operator == "matches" {
			t.checkPattern(n)
		}
	}
}

func (t *tree) checkPattern(n *ast.BinaryNode) {
	s, constant := n.Right.(*ast.StringNode)
	if !constant {
		t.fail(n.Right, `column matches "^[0-9]+$"`, "the regular expression must be written out")
		return
	}
	if problem := t.language.pattern(s.Value); problem != nil {
		t.fail(s, problem.Hint, problem.Text)
	}
}

// guard puts the language's own functions in place of operators and calls, below n, whose types have been checked: of
// the library's, one would count bytes, another would go on with a wrong number, and each could fill the memory. It
// refuses a ?? that would not do what it says.
func (t *tree) guard(n *ast.Node) {
	ast.Walk(n, visitor(func(node *ast.Node) {
		switch n := (*node).(type) {
		case *ast.BinaryNode:
			t.guardOperator(node, n)
		case *ast.SliceNode:
			if kind := n.Node.Type().Kind(); kind == reflect.String || kind == reflect.Interface {
				callOwn(node, "[:]", n.Node, orNil(n.From), orNil(n.To))
			}
		case *ast.CallNode:
			name := n.Callee.(*ast.IdentifierNode).Value
			t.builds = t.builds || name == "join" || name == "replace" || name == "repeat"
			callOwn(node, name, n.Arguments...)
		}
	}))
}

func (t *tree) guardOperator(node *ast.Node, n *ast.BinaryNode) {
	switch left, right := n.Left.Type().Kind(), n.Right.Type().Kind(); n.Operator {
	case "??":
		if !mayMiss(n.Left) {
			t.fail(n, emptyHint, "?? takes the left side always, since that is never missing")
		}
	case "+", "-", "*":
		result := n.Type().Kind()
		t.builds = t.builds || n.Operator == "+" && result != reflect.Int && result != reflect.Float64
		if left != reflect.Float64 || right != reflect.Float64 {
			callOwn(node, n.Operator, n.Left, n.Right)
		}
	}
}

// mayMiss reports whether a node may come to nothing: cells and what is made of them never do.
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

func orNil(n ast.Node) ast.Node {
	if n == nil {
		return &ast.NilNode{}
	}
	return n
}

func callOwn(node *ast.Node, name string, args ...ast.Node) {
	args = append([]ast.Node{&ast.IdentifierNode{Value: budgetName}}, args...)
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: args}
	call.SetNature(*(*node).Nature())
	ast.Patch(node, call)
}
