package explain

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/messages.md anew")

// spoken is what the program can say, as its sources have it.
type spoken struct {
	names map[string]string   // of rules, exit codes, answers and refusals: kind by name
	texts map[string][]string // literals of each place that warns, or stops a run, by the place
	all   []string            // every literal
	files map[string][]string // the same by file
}

const module = "../.."

// listen reads the sources of the program.
func listen(t *testing.T) *spoken {
	t.Helper()
	s := &spoken{names: map[string]string{}, texts: map[string][]string{}, files: map[string][]string{}}
	set := token.NewFileSet()
	err := filepath.WalkDir(module, func(name string, entry fs.DirEntry, err error) error {
		base := filepath.Base(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != module && (strings.HasPrefix(base, ".") || slices.Contains([]string{"tools", "testdata", "e2e", "sandbox", "explain"}, base)):
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
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tellers are functions whose texts reach a warning by way of a variable.
var tellers = []string{
	"checkpoint/bolt.warning", "checkpoint/bolt.otherCheckpoint", "importer.shared", "internal/cli.exposed", "internal/cli.mixedRegions",
	"mapping.columnConstants", "mapping.secrets", "mapping.strangers",
}

// coded are functions whose first argument is a rule.
var coded = []string{"problem", "faults", "again", "lacking"}

func (s *spoken) file(set *token.FileSet, file *ast.File, name string) {
	rules := strings.HasPrefix(name, "mapping/") && !strings.HasPrefix(name, "mapping/propose") || strings.HasPrefix(name, "importer/")
	ast.Inspect(file, func(n ast.Node) bool {
		place := ""
		if n != nil {
			place = fmt.Sprintf("%s:%d", name, set.Position(n.Pos()).Line)
		}
		switch n := n.(type) {
		case *ast.BasicLit:
			s.all = append(s.all, literals(n)...)
			s.files[name] = append(s.files[name], literals(n)...)
		case *ast.GenDecl:
			s.constants(n, name)
		case *ast.FuncDecl:
			if slices.Contains(tellers, path.Dir(name)+"."+n.Name.Name) {
				s.texts[place] = literals(n.Body)
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

// call takes down what is warned of, or the rule of a problem.
func (s *spoken) call(n *ast.CallExpr, place string, rules bool) {
	if len(n.Args) == 0 {
		return
	}
	switch called := calledName(n); {
	case slices.Contains([]string{"Warn", "warn", "warnOf"}, called) && len(literals(n.Args[0])) > 0:
		s.texts[place] = literals(n.Args[0])
	case called == "Fprintf" && strings.HasPrefix(strings.Join(literals(n), ""), "warning: ") && !warned.MatchString(literals(n)[0]):
		s.texts[place] = literals(n)
	case rules && len(n.Args) > 1 && slices.Contains(coded, called):
		s.rule(n.Args[0])
	}
}

// warned are formats for warnings whose texts come from elsewhere.
var warned = regexp.MustCompile(`^warning: (%s|: )+\n$`)

// rule takes down one that stands as a literal.
func (s *spoken) rule(e ast.Expr) {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		s.names[literals(l)[0]] = "rule"
	}
}

// fields takes rules out of problems, and reasons out of stops.
func (s *spoken) fields(n *ast.CompositeLit, place string, rules bool) {
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
		case slices.Contains([]string{"Stop", "End"}, typeName(n.Type)) && key.Name == "Reason" && len(literals(pair.Value)) > 0:
			s.texts[place] = literals(pair.Value)
		}
	}
}

var (
	exitCode = regexp.MustCompile(`^(Code[A-Z]\w*|codeUsage)$`)
	rule     = regexp.MustCompile(`^rule[A-Z]\w*$`)
	reason   = regexp.MustCompile(`^(reason|Reason)[A-Z]\w*$`)
	failure  = regexp.MustCompile(`^Err[A-Z]\w*$`)
)

// constants takes exit codes, rules, reasons and kinds of refusals out of declarations.
func (s *spoken) constants(d *ast.GenDecl, file string) {
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || len(v.Names) != 1 || len(v.Values) != 1 {
			continue
		}
		name := v.Names[0].Name
		if name == "outcomeNames" {
			for _, outcome := range literals(v.Values[0]) {
				s.names[outcome] = "outcome"
			}
		}
		switch l, isText := v.Values[0].(*ast.BasicLit); {
		case isText && exitCode.MatchString(name) && l.Kind == token.INT:
			s.names[l.Value] = "exit code"
		case isText && rule.MatchString(name) && strings.HasPrefix(file, "mapping/"):
			s.names[literals(l)[0]] = "rule"
		case isText && reason.MatchString(name):
			s.names[literals(l)[0]] = "answer"
		case file == "checkpoint/errors.go" && failure.MatchString(name) && d.Specs[0] == spec:
			s.refusals(d)
		}
	}
}

// refusals are the errors of the group that begins with ErrLocked: those of opening.
func (s *spoken) refusals(d *ast.GenDecl) {
	if d.Specs[0].(*ast.ValueSpec).Names[0].Name != "ErrLocked" {
		return
	}
	for _, spec := range d.Specs {
		words := regexp.MustCompile(`[A-Z][a-z]+`).FindAllString(spec.(*ast.ValueSpec).Names[0].Name, -1)
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

func calledName(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// Whatever the program can say has an entry, and no entry is about what it does not say.
func TestEverythingSaidIsExplained(t *testing.T) {
	s := listen(t)
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
	for place, texts := range s.texts {
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

// verb parts the literal pieces of a format.
var verb = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z%]`)

// saidPieces are the pieces of texts that a file's code may print: at least two words, and no SQL or HTML.
func saidPieces(texts []string) (pieces []string) {
	for _, text := range texts {
		if strings.Contains(text, "SELECT ") || strings.Contains(text, "UPDATE ") || strings.Contains(text, "</") {
			continue
		}
		for _, piece := range verb.Split(text, -1) {
			if len(plainWords(piece)) >= few {
				pieces = append(pieces, piece)
			}
		}
	}
	return pieces
}

// Every message that the program can print is found, however it is pasted: the index of messages holds them all.
func TestEveryMessageIsFound(t *testing.T) {
	s := listen(t)
	var index [][record]byte
	for file, texts := range s.files {
		for _, piece := range saidPieces(texts) {
			words := plainWords(piece)
			together := min(window, len(words))
			for _, at := range []int{0, len(words) - together} {
				var one [record]byte
				binary.BigEndian.PutUint32(one[:], windowHash(words[at:at+together]))
				one[record-1] = byte(areaOf(file))
				index = append(index, one)
			}
		}
	}
	slices.SortFunc(index, func(a, b [record]byte) int { return bytes.Compare(a[:], b[:]) })
	index = slices.Compact(index)
	want := bytes.Join(slices.Collect(func(yield func([]byte) bool) {
		for i := range index {
			if !yield(index[i][:]) {
				return
			}
		}
	}), nil)
	if *update {
		if err := os.WriteFile("messages.bin", want, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Skip("written")
	}
	if !bytes.Equal(messages, want) {
		t.Error("messages.bin is not what the sources say: go test ./internal/explain -update writes it")
	}
	found := 0
	for file, texts := range s.files {
		for _, piece := range saidPieces(texts) {
			pasted := "leadferry: some/file.csv:12: " + strings.Join(strings.Fields(piece), "\n  ") + " \"x\""
			if _, ok := Find(pasted); !ok {
				t.Errorf("%s: %q is not found", file, piece)
			}
			found++
		}
	}
	if found < 1000 {
		t.Errorf("only %d messages were walked", found)
	}
}

// A message is explained by the area that says it, where it has no entry of its own.
func TestMessagesAreExplainedByTheirArea(t *testing.T) {
	for message, want := range map[string]string{
		`leadferry: leads.yaml:7:5: unknown key "organisation" in assign[1]`:                                                                   "mapping_file",
		"leadferry: the checkpoint /x/y.db: is damaged: page 3 is none":                                                                        "damaged",
		"leadferry: flag --limit needs a value":                                                                                                "command_line",
		"found.csv:3 (row 2 of the file): its lead ID stands twice in the list; nothing was settled\nhint: one lead cannot belong to two rows": "checkpoint_command",
		"leadferry: no client secret given\nhint: set LEADFERRY_CLIENT_SECRET, --client-secret-file with a file":                               "command_line",
	} {
		if e, ok := Find(message); !ok || e.Name != want {
			t.Errorf("%q: %q, want %q", message, e.Name, want)
		}
	}
	if e, ok := Find("nothing of this is ours xyzzy"); ok {
		t.Errorf("a strange text is explained by %s", e.Name)
	}
}

// Entries are whole: sentences, commands that begin with the program's name, pages that are there.
func TestEntriesAreWhole(t *testing.T) {
	for _, k := range Kinds() {
		for _, e := range k.Entries {
			if e.Means == "" || e.Do == "" {
				t.Errorf("%s: what it means, or what to do, is missing", e.Name)
			}
			for _, text := range []string{e.Means, e.Why, e.Do} {
				if text != "" && (!strings.HasSuffix(text, ".") || strings.ToUpper(text[:1]) != text[:1] && !strings.HasPrefix(text, "leadferry") && !strings.HasPrefix(text, "skip_if") && !strings.HasPrefix(text, "apply") && !strings.HasPrefix(text, "rest")) {
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

// anchors are what links of a page can lead to.
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
		"warning: the checkpoint lies on SMB: there, locks": "checkpoint_place", "warning: the checkpoint\n  lies on SMB": "checkpoint_place",
		"nonsense": "", "": "", "7": "", "999": "",
	} {
		if e, found := Find(asked); e.Name != want || found != (want != "") {
			t.Errorf("%q: %q, want %q", asked, e.Name, want)
		}
	}
}

// docs/messages.md says what the catalogue says.
func TestPageOfMessages(t *testing.T) {
	const file = module + "/docs/messages.md"
	want := page()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil || string(have) != want {
		t.Errorf("%s is not what the catalogue says (%v): go test ./internal/explain -update writes it", file, err)
	}
}

func page() string {
	var b strings.Builder
	b.WriteString("# Every message\n\n<!-- Written by `go test ./internal/explain -update`, from internal/explain/catalogue. -->\n\n" +
		"The same texts as those of `leadferry explain NAME`, which takes names, exit codes, statuses of HTTP, and pieces of messages.\n")
	for _, k := range Kinds() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| %s | means | what to do |\n|---|---|---|\n", k.Title, k.About, k.Name)
		for _, e := range k.Entries {
			name := "`" + strings.Join(append([]string{e.Name}, e.Also...), "` `") + "`"
			does := e.Do
			for _, c := range e.Next {
				does += " `" + c + "`"
			}
			if e.See != "" {
				does += fmt.Sprintf(" ([more](%s))", cmp.Or(strings.TrimPrefix(e.See, "docs/"), e.See))
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name, strings.TrimSpace(e.Means+" "+e.Why), strings.TrimSpace(does))
		}
	}
	return b.String()
}
