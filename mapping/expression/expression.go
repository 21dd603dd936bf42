// Package expression is the language of expressions in mapping files: that of expr-lang/expr over the cells of a row, with a
// choice of its functions and none that asks the clock or the machine.
//
//	text ─▶ parse ─▶ resolve: cells for columns ─▶ check types ─▶ guard: own functions for operators ─▶ Program ─▶ run, a row
//
// The package comment of mapping says what the language promises to those who write it.
package expression

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
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

	"leadferry/internal/spelling"
	"leadferry/mapping/texts"
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

// Language compiles the expressions of one mapping file.
type Language struct {
	config  *conf.Config // once there is an expression
	size    int          // of all, see maxExpressions
	pattern func(pattern string) *texts.Fault
}

// New is the language; pattern says what is wrong with a regular expression, or nil.
func New(pattern func(pattern string) *texts.Fault) *Language { return &Language{pattern: pattern} }

// Program is a compiled expression. It may be shared.
type Program struct {
	Columns []Column // each once, in the order in which they stand first
	Builds  bool     // it puts a text together

	program   *vm.Program
	variables []string  // of the program, one for each of Columns
	runs      sync.Pool // of *run
}

// Column is where an expression names one.
type Column struct {
	Name string
	From int // in characters from 0
}

// Condition reports whether the program may come to true or false, or else what it comes to.
func (p *Program) Condition() (other string, ok bool) {
	kind := p.program.Node().Type().Kind()
	return results[kind], kind == reflect.Bool || kind == reflect.Interface
}

// results are what people call those that an expression may have. That of an Interface is known when it is computed.
var results = map[reflect.Kind]string{
	reflect.String: "a text", reflect.Int: "a number", reflect.Float64: "a number", reflect.Bool: "true or false", reflect.Interface: "unknown",
}

// configuration knows the functions of the language and no others: they are pure, do
// not ask the machine, and their results do not outgrow what they are made of.
func configuration() *conf.Config {
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

// errExpression is what is told when the library cannot say what is wrong, or says it with a stack trace.
const errExpression = "the expression cannot be compiled"

// Compile makes a program of s. The library may stumble over input that
// nobody foresaw: that is the expression's fault, too.
func (l *Language) Compile(s string) (p *Program, problem *texts.Fault) {
	defer func() {
		if recover() != nil {
			p, problem = nil, &texts.Fault{Text: errExpression}
		}
	}()
	if l.size += len(s) + maxExpressions/1000; l.size > maxExpressions {
		return nil, &texts.Fault{Text: "the expressions of the mapping file are too many or too long"}
	}
	if len(s) > maxExpression {
		return nil, &texts.Fault{Text: fmt.Sprintf("the expression is longer than %d bytes", maxExpression)}
	}
	if l.config == nil {
		l.config = configuration()
	}
	parsed, err := exprparser.ParseWithConfig(s, l.config)
	if err != nil {
		return nil, faultOf(s, err)
	}
	t := &tree{language: l}
	t.resolve(&parsed.Node)
	if t.fault != nil {
		return nil, t.fault
	}
	program, problem := t.link(s, parsed)
	if problem != nil {
		return nil, problem
	}
	return &Program{Columns: t.columns, Builds: t.builds, program: program, variables: t.variables, runs: sync.Pool{New: newRun}}, nil
}

// link checks the types of a resolved tree and makes the program.
func (t *tree) link(s string, parsed *exprparser.Tree) (*vm.Program, *texts.Fault) {
	config := t.language.config
	variables := map[string]any{budgetName: new(budget)}
	for _, name := range t.variables {
		variables[name] = ""
	}
	config.WithEnv(variables)
	if _, err := exprchecker.Check(parsed, config); err != nil {
		return nil, faultOf(s, err)
	}
	if results[parsed.Node.Type().Kind()] == "" {
		return nil, &texts.Fault{Text: "the expression comes to a list or an object, not to a text", Hint: `join(list, ", ") makes a text of a list`}
	}
	t.guard(&parsed.Node)
	if t.fault != nil {
		return nil, t.fault
	}
	if err := optimizer.Optimize(&parsed.Node, config); err != nil {
		return nil, faultOf(s, err)
	}
	program, err := compiler.Compile(parsed, config)
	if err != nil {
		return nil, &texts.Fault{Text: errExpression}
	}
	return program, nil
}

// truth finds the library's errors about texts in place of conditions.
var truth = spelling.Form(`^invalid operation: (\|\||&&|or|and|!|not) .*string|used as condition`)

// faultOf is the library's error, which holds nothing but words of the expression, in the words of the other errors.
func faultOf(s string, err error) *texts.Fault {
	var e *exprfile.Error
	if !errors.As(err, &e) {
		return &texts.Fault{Text: errExpression}
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
	return &texts.Fault{Text: text, Hint: hintFor(s, text), From: e.From}
}

// runError is why an expression cannot be computed. It never holds a cell.
type runError string

func (e runError) Error() string { return string(e) }

const (
	errTooLong  = runError("it makes texts of more than 1 MiB together")
	errOverflow = runError("a number is too large")
	errNotText  = runError("it comes to bytes that are no text")
	errList     = runError("it comes to a list or an object, not to a text")
	errNotBool  = runError("it is neither true nor false")
	errUnknown  = runError("a function or an operator does not take what the columns hold")
)

// Reason is what can be told of an error: the library's own hold cells.
func Reason(err error) string {
	told := errUnknown
	errors.As(err, &told)
	return told.Error()
}

// budget bounds what one computation makes: each text that is put together costs its
// bytes, each list the place of its elements.
type budget struct{ left int }

func (b *budget) take(n int) {
	if n < 0 || n > b.left {
		panic(errTooLong) // the library turns it into the error of the run
	}
	b.left -= n
}

// run is what a computation works with. It serves one after another.
type run struct {
	vm     vm.VM
	cells  map[string]any
	budget budget
}

func newRun() any {
	r := &run{vm: vm.VM{MemoryBudget: maxElements}}
	r.cells = map[string]any{budgetName: &r.budget}
	return r
}

// run computes the expression over cells, one for each of Columns. One that fails though none of
// its columns holds anything comes to nil: so int(score) of an empty score is empty, and an
// expression that knows what to do with empty cells still sees them.
func (p *Program) run(cell func(i int) string) (any, error) {
	r := p.runs.Get().(*run)
	defer p.runs.Put(r)
	r.budget.left = maxMade
	size := 0
	for i, name := range p.variables {
		cell := strings.TrimSpace(cell(i))
		size += len(cell)
		r.cells[name] = cell
	}
	if size > maxMade {
		return nil, errTooLong
	}
	result, err := r.vm.Run(p.program, r.cells)
	if err != nil && size == 0 && len(p.variables) > 0 {
		return nil, nil
	}
	return result, err
}

// Text is the text to which the expression comes, over a cell for each of Columns.
func (p *Program) Text(cell func(i int) string) (string, error) {
	result, err := p.run(cell)
	if err != nil {
		return "", err
	}
	s, err := textOf(result)
	return strings.TrimSpace(s), err
}

// Holds reports whether the condition holds, over a cell for each of Columns.
func (p *Program) Holds(cell func(i int) string) (bool, error) {
	result, err := p.run(cell)
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

// What people write in expressions as other languages have it.
var (
	braced       = spelling.Form(`\{ *([^{}"':]+?) *\}`)
	severalWords = spelling.Form(`(?:^|[^\w"'])([A-Za-z]\w*(?: +[A-Za-z]\w*)+) *(?:[=!<>+)]|$)`)
	hyphened     = spelling.Form(`[A-Za-z]\w*(?:-[A-Za-z]\w*)+`)
	operators    = spelling.Form(` (?:and|or|not|in|matches|contains|startsWith|endsWith|if|else|let) `)
)

// otherwise are functions and operators of other languages, and how this one says it.
var otherwise = map[string]string{
	"=": `== compares: column == "yes"`, "<": "!= asks whether two differ", "&": `and asks whether both are so; + puts texts together: first + " " + last`,
	"then": `write: stage == "Won" ? "yes" : "no"`, "concat": `+ puts texts together: first + " " + last`, "substring": "write column[0:3] for the first three characters",
	"substr": "write column[0:3] for the first three characters", "contains": `write: column contains "text"`, "startsWith": `write: column startsWith "text"`,
	"endsWith": `write: column endsWith "text"`, "ifnull": "write coalesce(a, b)", "nvl": "write coalesce(a, b)", "isnull": `write: column == ""`, "length": "write len(column)",
	"if": `write: stage == "Won" ? "yes" : "no"`, "toUpper": "write upper(column)", "toLower": "write lower(column)", "toInt": "write int(column)", "parseInt": "write int(column)",
	"parseFloat": "write float(column)", "toString": "write string(number)", "strip": "write trim(column)", "regex": `write: column matches "^[0-9]+$"`,
	"is": `== compares: column == "yes"`, "eq": `== compares: column == "yes"`, "ne": "!= asks whether two differ", "like": `write: column matches "^W"`,
	"AND": "write and in small letters", "OR": "write or in small letters", "NOT": "write not in small letters", "IN": `write: column in ["one", "two"]`,
	"isblank": `write: column == ""`, "isempty": `write: column == ""`, "~": `write: column matches "^[0-9]+$"`,
	"now": "there is no clock in an expression: the same row gives the same lead at all times", "today": "there is no clock in an expression: the same row gives the same lead at all times",
}

func hintFor(s, text string) string {
	_, token, _ := strings.Cut(text, `unexpected "`)
	token = strings.TrimSuffix(token, `"`)
	switch {
	case token == ">" && strings.Contains(s, "<>"):
		token = "<"
	case token == "=" && strings.Contains(s, "=~"):
		token = "~"
	}
	name := ""
	if found := severalWords().FindStringSubmatch(s); found != nil && !operators().MatchString(" "+found[1]+" ") {
		name = found[1]
	}
	switch {
	case strings.Contains(text, "unrecognized character") && strings.ContainsAny(s, texts.CurlyQuotes):
		return `write straight quotes: "text"`
	case strings.Contains(text, "not terminated"):
		return `close the quote: "text"`
	case braced().MatchString(s):
		column := braced().FindStringSubmatch(s)[1]
		return "columns have no braces in an expression: " + Naming(column)
	case otherwise[token] != "":
		return otherwise[token]
	case name != "" && strings.HasPrefix(text, "unexpected"):
		return "write " + Naming(name) + " for a column whose name is no single word"
	case strings.Contains(text, "operation: - (") && hyphened().MatchString(s):
		return "write " + Naming(hyphened().FindString(s)) + " for the column, or int(a) - int(b) for a difference"
	case truth().MatchString(text):
		return emptyHint
	case strings.Contains(text, "type"):
		return cellsHint
	case strings.Contains(text, "ends where"):
		return "write what follows, or take the last operator out"
	case !strings.HasPrefix(text, "unexpected"):
		return ""
	}
	return `for example: stage == "Won" ? first + " " + last : coalesce(nick, "?")`
}

// Naming is a column as expressions name it.
func Naming(name string) string {
	if isIdentifier().MatchString(name) {
		return name
	}
	return `$env["` + texts.Shortened(name, texts.MaxQuoted) + `"]`
}

var isIdentifier = spelling.Form(`^[A-Za-z_]\w*$`)

// MissingHint says what may have been meant by a column of an expression that an input does not have.
func MissingHint(name string) string {
	switch {
	case slices.Contains([]string{"null", "nil", "none", "undefined", "empty"}, strings.ToLower(name)):
		return `a cell is a text and never missing: ` + name + ` is written ""`
	case utf8.RuneCountInString(name) <= texts.MaxQuoted && isIdentifier().MatchString(name):
		return `if the text is meant, it needs quotes: "` + name + `"`
	}
	return ""
}
