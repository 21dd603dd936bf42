// Package layout checks that the rooms of the module stay apart: who may import whom, where bbolt and
// HTTP calls live. It holds tests only and has no place in the flow of a row.
// It promises that a breach fails `go test` with the file, the line and the rule.
package layout

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// plan is the layout that a module has to keep. Folders are slash-separated from the module's root, "." is the root.
type plan struct {
	module   string
	rooms    map[string]room
	reserved []reserved
	calls    reserved // names of a package (path "net/http": Get, Client) that only some rooms may use
	names    []string // the names that calls reserves
}

// room says what the Go files of one folder may import.
type room struct {
	imports []string // folders of the module
	tests   []string // further folders, for test files
	stdOnly bool     // code, not tests: the standard library only
}

// reserved is an import path, with everything below it, for the use of some rooms.
type reserved struct {
	path  string
	rooms []string
	tests bool // test files have to obey too
}

// fault is one breach of a plan.
type fault struct {
	file string
	line int
	text string
}

func (f fault) String() string { return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.text) }

// source is one Go file as the rules see it.
type source struct {
	file   string
	folder string
	test   bool
	set    *token.FileSet
	tree   *ast.File
}

// check reads all Go files of a module and returns its faults by file and line. An error means that a file
// could not be read or parsed. Folders with a go.mod of their own and folders that the go command skips are left out.
func (p plan) check(module fs.FS) ([]fault, error) {
	var faults []fault
	seen := map[string]bool{}
	err := fs.WalkDir(module, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(module, name)
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		seen[path.Dir(name)] = true
		found, err := p.checkFile(module, name)
		faults = append(faults, found...)
		return err
	})
	for folder := range p.rooms {
		if !seen[folder] {
			faults = append(faults, fault{folder, 0, "the table has this room, the module has no Go file in it"})
		}
	}
	slices.SortFunc(faults, func(a, b fault) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line, strings.Compare(a.text, b.text))
	})
	return faults, err
}

func skip(module fs.FS, folder string) error {
	if folder == "." {
		return nil
	}
	base := path.Base(folder)
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(module, path.Join(folder, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (p plan) checkFile(module fs.FS, name string) ([]fault, error) {
	text, err := fs.ReadFile(module, name)
	if err != nil {
		return nil, err
	}
	s := source{file: name, folder: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), set: token.NewFileSet()}
	s.tree, err = parser.ParseFile(s.set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	faults := append(s.checkNames(), s.checkInit()...)
	faults = append(faults, p.checkImports(s)...)
	return append(faults, p.checkCalls(s)...), nil
}

func (s source) checkNames() []fault {
	vague := []string{"util", "utils", "helper", "helpers"}
	stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.file), ".go"), "_test")
	for _, name := range []string{stem, path.Base(s.folder), strings.TrimSuffix(s.tree.Name.Name, "_test")} {
		if slices.Contains(vague, name) {
			return []fault{{s.file, 1, fmt.Sprintf("%q says nothing of what it holds", name)}}
		}
	}
	return nil
}

func (s source) checkInit() []fault {
	var faults []fault
	for _, d := range s.tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			faults = append(faults, s.fault(f, "init function"))
		}
	}
	return faults
}

func (p plan) checkImports(s source) []fault {
	own, known := p.rooms[s.folder]
	if !known {
		return []fault{{s.file, 1, "package " + s.folder + " has no room in the table"}}
	}
	var faults []fault
	for _, spec := range s.tree.Imports {
		target, _ := strconv.Unquote(spec.Path.Value) // the parser has checked the literal
		if why := p.refuse(own, s, target); why != "" {
			faults = append(faults, s.fault(spec, why))
		}
	}
	return faults
}

// refuse says why a file may not import a path, or "".
func (p plan) refuse(own room, s source, target string) string {
	if folder, inside := p.inside(target); inside {
		self := s.test && folder == s.folder // an external test imports its own package
		if self || slices.Contains(own.imports, folder) || s.test && slices.Contains(own.tests, folder) {
			return ""
		}
		return fmt.Sprintf("%s may not import %s", s.folder, folder)
	}
	if own.stdOnly && !s.test && strings.Contains(strings.Split(target, "/")[0], ".") {
		return fmt.Sprintf("%s may import the standard library only, not %s", s.folder, target)
	}
	for _, r := range p.reserved {
		if below(r.path, target) && (r.tests || !s.test) && !slices.Contains(r.rooms, s.folder) {
			return fmt.Sprintf("%s is for %s only", r.path, strings.Join(r.rooms, " and "))
		}
	}
	return ""
}

// inside tells the folder of a package of this module.
func (p plan) inside(target string) (folder string, ok bool) {
	if target == p.module {
		return ".", true
	}
	return strings.CutPrefix(target, p.module+"/")
}

func below(parent, target string) bool {
	return target == parent || strings.HasPrefix(target, parent+"/")
}

// checkCalls finds uses of the reserved names of a package that the file may import otherwise.
func (p plan) checkCalls(s source) []fault {
	local := s.localName(p.calls.path)
	if local == "" || s.test || slices.Contains(p.calls.rooms, s.folder) {
		return nil
	}
	var faults []fault
	ast.Inspect(s.tree, func(n ast.Node) bool {
		use, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains(p.names, use.Sel.Name) {
			return true
		}
		if id, ok := use.X.(*ast.Ident); ok && id.Name == local {
			text := fmt.Sprintf("%s.%s is for %s only", p.calls.path, use.Sel.Name, strings.Join(p.calls.rooms, " and "))
			faults = append(faults, s.fault(use, text))
		}
		return true
	})
	return faults
}

// localName is the name under which the file knows an import, or "".
func (s source) localName(target string) string {
	for _, spec := range s.tree.Imports {
		if spec.Path.Value != strconv.Quote(target) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(target)
	}
	return ""
}

func (s source) fault(at ast.Node, text string) fault {
	return fault{s.file, s.set.Position(at.Pos()).Line, text}
}
