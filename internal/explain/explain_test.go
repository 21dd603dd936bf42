package explain

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

// messages are all texts in the sources of the program.
type messages struct {
	names   map[string]string   // of rules, outcomes, exit codes, answers and refusals: kind by name
	warns   map[string][]string // literals at each place that warns or stops a run, by file:line
	refuses []string            // texts of errors
	all     []string            // every literal
}

const module = "../.."

// readSources reads the sources of the program.
func readSources(t *testing.T) *messages {
	t.Helper()
	s := &messages{names: map[string]string{}, warns: map[string][]string{}}
	set := token.NewFileSet()
	skipped := []string{"tools", "testdata", "e2e", "sandbox", "explain"}
	err := filepath.WalkDir(module, func(name string, entry fs.DirEntry, err error) error {
		base := filepath.Base(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != module && (strings.HasPrefix(base, ".") || slices.Contains(skipped, base)):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err == nil {
			s.file(set, file, filepath.ToSlash(strings.TrimPrefix(name, module+string(filepath.Separator))))
		}
		return err
	})
	must.Do(t, err)
	return s
}

// viaVariable are functions whose texts reach a warning through a variable.
var viaVariable = []string{
	"internal/cli.exposed", "leadapi.MixedRegions", "mapping.secrets", "mapping.warnUnknownExceptions",
}

// Names of functions and types by what their texts are. A rule is the first argument.
var (
	warnFuncs  = []string{"Warn", "warn", "warnOf"}
	errorFuncs = []string{"Usage", "Stopped", "Interrupted", "Errorf", "New", "refuse", "fail", "broken", "runError"}
	ruleFuncs  = []string{"problem", "inMapping", "occurrences", "limit", "Flaw"}
	stopTypes  = []string{"Stop", "End"}
)

func (s *messages) file(set *token.FileSet, file *ast.File, name string) {
	rules := strings.HasPrefix(name, "mapping/") && !strings.HasPrefix(name, "mapping/propose") || strings.HasPrefix(name, "importer/")
	ast.Inspect(file, func(n ast.Node) bool {
		place := ""
		if n != nil {
			place = fmt.Sprintf("%s:%d", name, set.Position(n.Pos()).Line)
		}
		switch n := n.(type) {
		case *ast.BasicLit:
			s.all = append(s.all, literals(n)...)
		case *ast.GenDecl:
			s.refusals(n)
		case *ast.ValueSpec:
			s.constant(n, name)
		case *ast.FuncDecl:
			if slices.Contains(viaVariable, path.Dir(name)+"."+n.Name.Name) {
				s.warns[place] = literals(n.Body)
			}
		case *ast.CallExpr:
			s.call(n, place, rules)
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if to, ok := left.(*ast.SelectorExpr); ok && to.Sel.Name == "Rule" && len(n.Rhs) == len(n.Lhs) {
					s.rule(n.Rhs[i])
				}
			}
		case *ast.CompositeLit:
			s.fields(n, place, rules)
		}
		return true
	})
}

// call notes the text of a warning or an error, or the rule of a problem.
func (s *messages) call(n *ast.CallExpr, place string, rules bool) {
	if len(n.Args) == 0 {
		return
	}
	called, first := lastName(n.Fun), literals(n.Args[0])
	switch {
	case slices.Contains(warnFuncs, called) && len(first) > 0:
		s.warns[place] = first
	case slices.Contains(errorFuncs, called):
		s.refuses = append(s.refuses, first...)
	case called == "fault" && len(n.Args) > 1: // an error about a file: path, then text
		s.refuses = append(s.refuses, literals(n.Args[1])...)
	case rules && len(n.Args) > 1 && slices.Contains(ruleFuncs, called):
		s.rule(n.Args[0])
	}
}

// rule notes a rule that is written as a literal.
func (s *messages) rule(e ast.Expr) {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		s.names[literals(l)[0]] = "rule"
	}
}

// fields notes the rules of problems, the reasons of stops and the texts of errors.
func (s *messages) fields(n *ast.CompositeLit, place string, rules bool) {
	for _, e := range n.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, _ := pair.Key.(*ast.Ident)
		switch {
		case key == nil:
		case rules && (key.Name == "Rule" || key.Name == "Code"):
			s.rule(pair.Value)
		case slices.Contains(stopTypes, lastName(n.Type)) && key.Name == "Reason" && len(literals(pair.Value)) > 0:
			s.warns[place] = literals(pair.Value)
		case lastName(n.Type) == "Error" && key.Name == "Text":
			s.refuses = append(s.refuses, literals(pair.Value)...)
		}
	}
}

var (
	exitCode = regexp.MustCompile(`^Code[A-Z]\w*$`)
	rule     = regexp.MustCompile(`^rule[A-Z]\w*$`)
	reason   = regexp.MustCompile(`^(reason|Reason)[A-Z]\w*$`)
	word     = regexp.MustCompile(`[A-Z][a-z]+`)
)

// constant notes an exit code, a rule, an answer or the outcomes from their declaration.
func (s *messages) constant(v *ast.ValueSpec, file string) {
	if len(v.Names) != 1 || len(v.Values) != 1 {
		return
	}
	name := v.Names[0].Name
	if name == "outcomes" && strings.HasPrefix(file, "importer/report/") {
		for _, outcome := range v.Values[0].(*ast.CompositeLit).Elts {
			s.names[literals(outcome)[0]] = "outcome"
		}
	}
	switch l, isText := v.Values[0].(*ast.BasicLit); {
	case isText && exitCode.MatchString(name) && l.Kind == token.INT:
		s.names[l.Value] = "exit code"
	case rule.MatchString(name) && strings.HasPrefix(file, "mapping/"):
		s.names[literals(v.Values[0])[0]] = "rule"
	case isText && reason.MatchString(name):
		s.names[literals(l)[0]] = "answer"
	}
}

// refusals notes the errors of the group that begins with ErrLocked: reasons to refuse a checkpoint.
func (s *messages) refusals(d *ast.GenDecl) {
	first, ok := d.Specs[0].(*ast.ValueSpec)
	if !ok || first.Names[0].Name != "ErrLocked" {
		return
	}
	for _, spec := range d.Specs {
		words := word.FindAllString(spec.(*ast.ValueSpec).Names[0].Name, -1)
		s.names[strings.ToLower(strings.Join(words[1:], "_"))] = "refusal"
	}
}

func literals(n ast.Node) (texts []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}

// lastName returns the last part of the name of a function or type.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// Every message has an entry, and no entry is about a message that is gone.
func TestEveryMessageHasAnEntry(t *testing.T) {
	s := readSources(t)
	entries := map[string]Entry{}
	for _, k := range Kinds() {
		for _, e := range k.Entries {
			if before, twice := entries[e.Name]; twice {
				t.Errorf("%s is an entry twice: %s and %s", e.Name, before.Kind, e.Kind)
			}
			entries[e.Name] = e
		}
	}
	for name, kind := range s.names {
		if e, found := entries[name]; !found || e.Kind != kind {
			t.Errorf("the %s %s has no entry in catalogue/", kind, name)
		}
	}
	for place, texts := range s.warns {
		explained := func(text string) bool {
			return slices.ContainsFunc(Kinds(), func(k Kind) bool {
				return slices.ContainsFunc(k.Entries, func(e Entry) bool { return e.speaks(text) })
			})
		}
		if !slices.ContainsFunc(texts, explained) {
			t.Errorf("%s: no entry in catalogue/ has a piece of this message among its says: %q", place, texts)
		}
	}
	for _, e := range entries {
		for _, piece := range e.Says {
			if !slices.ContainsFunc(s.all, func(text string) bool { return strings.Contains(text, piece) }) {
				t.Errorf("%s: nothing says %q", e.Name, piece)
			}
		}
		if kind := s.names[e.Name]; kind == "" && slices.Contains([]string{"outcome", "exit code", "rule", "answer", "refusal"}, e.Kind) {
			t.Errorf("%s: there is no such %s", e.Name, e.Kind)
		}
	}
}

// verb matches a verb of a format, for example %s.
var verb = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z%]`)

// Find finds each message as it is printed, in its own entry or that of its area, and most without "leadferry: ".
func TestFindFindsEveryMessage(t *testing.T) {
	s := readSources(t)
	all, alone := 0, 0
	for _, text := range slices.Concat(append(slices.Collect(maps.Values(s.warns)), s.refuses)...) {
		text = verb.ReplaceAllString(text, "x")
		if len(strings.Fields(text)) < 3 {
			continue
		}
		all++
		if _, found := Find("leadferry: " + strings.ReplaceAll(text, " ", "\n  ")); !found {
			t.Errorf("%q is not found", text)
		}
		if _, found := Find(text); found {
			alone++
		}
	}
	if all < 300 || alone*3 < all*2 {
		t.Errorf("of %d messages %d are found without the program's name before them", all, alone)
	}
	for message, want := range map[string]string{
		`leadferry: leads.yaml:7:5: unknown key "organisation" in assign[1]`:                           "mapping_file",
		"leadferry: the checkpoint /x/y.db: is damaged: page 3 is none":                                "damaged",
		"leadferry: flag --limit needs a value":                                                        "command_line",
		"found.csv:3 (row 2 of the file): its lead ID is in the list twice; nothing was settled":       "checkpoint_command",
		"leadferry: no client secret given\nhint: set LEADFERRY_CLIENT_SECRET, or name a file with it": "connection",
		"nothing of this is ours xyzzy":                                                                "",
	} {
		if e, _ := Find(message); e.Name != want {
			t.Errorf("%q: %q, want %q", message, e.Name, want)
		}
	}
}

// sentence matches a text that begins with a capital or a known name, and ends with a full stop.
var sentence = regexp.MustCompile(`(?s)^([A-Z0-9-]|leadferry|skip_if|apply|rest).*\.$`)

// Entries have whole sentences, commands that begin with leadferry, and links to pages and headings that exist.
func TestEntriesAreComplete(t *testing.T) {
	for _, k := range Kinds() {
		for _, e := range k.Entries {
			if e.Means == "" || e.Do == "" {
				t.Errorf("%s: what it means, or what to do, is missing", e.Name)
			}
			for _, text := range []string{e.Means, e.Why, e.Do} {
				if text != "" && !sentence.MatchString(text) {
					t.Errorf("%s: no sentence: %s", e.Name, text)
				}
			}
			for _, c := range e.Next {
				if !strings.HasPrefix(c, "leadferry ") {
					t.Errorf("%s: no command: %s", e.Name, c)
				}
			}
			if page, heading, _ := strings.Cut(e.See, "#"); page != "" {
				text, err := os.ReadFile(filepath.Join(module, page))
				if err != nil || heading != "" && !slices.Contains(anchors(string(text)), heading) {
					t.Errorf("%s: %s: %v: there is no such heading", e.Name, e.See, err)
				}
			}
		}
	}
}

// anchors are the headings of a page, as links write them.
func anchors(page string) (all []string) {
	for line := range strings.Lines(page) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' {
			title = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			all = append(all, strings.ReplaceAll(title, " ", "-"))
		}
	}
	return all
}

func TestFind(t *testing.T) {
	for asked, want := range map[string]string{
		"in_doubt": "in_doubt", "In Doubt": "in_doubt", "in-doubt": "in_doubt",
		"5": "5", "exit 5": "5", "exit code 5": "5", "rc 5": "5", "rc=5": "5", "Exit code: 5": "5", "return code 5": "5", "exitcode 5": "5", "error 429": "throttled", "5 rc": "",
		"429": "throttled", "HTTP 429": "throttled", "404": "refused", "502": "server_error", "307": "redirect",
		"warning: the checkpoint is on SMB: there, locks": "checkpoint_place", "warning: the checkpoint\n  is on SMB": "checkpoint_place",
		"nonsense": "", "": "", "7": "", "999": "",
	} {
		if e, found := Find(asked); e.Name != want || found != (want != "") {
			t.Errorf("%q: %q, want %q", asked, e.Name, want)
		}
	}
}
