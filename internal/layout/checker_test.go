// Package layout checks that the rooms of the module stay apart: who may import whom, where bbolt and HTTP calls live.
// It holds tests only and has no place in the flow of a row. A breach fails `go test` with the file and the rule.
package layout

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
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

// reserved is an import path, with everything below it, that only some rooms may import.
type reserved struct {
	path  string
	rooms []string
	tests bool // for test files, too
}

// check reads all Go files of a module and returns its faults. It leaves out folders that have their own go.mod or
// that the go command skips.
func (p plan) check(module fs.FS) (faults []string, err error) {
	seen := map[string]bool{}
	err = fs.WalkDir(module, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil || name == ".":
			return err
		case entry.IsDir():
			if _, err := fs.Stat(module, path.Join(name, "go.mod")); err == nil || base == "testdata" || base[0] == '.' || base[0] == '_' {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		seen[path.Dir(name)] = true
		text, err := fs.ReadFile(module, name)
		if err != nil {
			return err
		}
		found, err := p.file(name, string(text))
		for _, f := range found {
			faults = append(faults, name+": "+f)
		}
		return err
	})
	for folder := range p.rooms {
		if !seen[folder] {
			faults = append(faults, folder+": the table has this room, the module has no Go file in it")
		}
	}
	return faults, err
}

var (
	vague     = regexp.MustCompile(`^(utils?|helpers?)$`)
	initiates = regexp.MustCompile(`(?m)^func init\(`)
)

// file returns the faults of one file.
func (p plan) file(name, text string) (faults []string, err error) {
	folder, test := path.Dir(name), strings.HasSuffix(name, "_test.go")
	tree, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".go"), "_test")
	for _, word := range []string{stem, path.Base(folder), strings.TrimSuffix(tree.Name.Name, "_test")} {
		if vague.MatchString(word) {
			faults = append(faults, fmt.Sprintf("%q says nothing of what it holds", word))
		}
	}
	if initiates.MatchString(text) {
		faults = append(faults, "init function")
	}
	own, known := p.rooms[folder]
	if !known {
		return append(faults, "package "+folder+" has no room in the table"), nil
	}
	for _, spec := range tree.Imports {
		target, _ := strconv.Unquote(spec.Path.Value) // the parser has checked the literal
		if why := p.refuse(own, folder, target, test); why != "" {
			faults = append(faults, why)
		}
		if target != p.calls.path || test || slices.Contains(p.calls.rooms, folder) {
			continue
		}
		local := path.Base(target)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if call := regexp.MustCompile(`\b` + local + `\.(` + strings.Join(p.names, "|") + `)\b`).FindString(text); call != "" {
			faults = append(faults, call+" is for "+strings.Join(p.calls.rooms, " and ")+" only")
		}
	}
	return faults, nil
}

// refuse says why a file may not import a path, or "".
func (p plan) refuse(own room, folder, target string, test bool) string {
	if inside, ok := strings.CutPrefix(target+"/", p.module+"/"); ok {
		to := path.Clean(inside)
		if test && to == folder || slices.Contains(own.imports, to) || test && slices.Contains(own.tests, to) { // an external test imports its own package
			return ""
		}
		return folder + " may not import " + to
	}
	if own.stdOnly && !test && strings.Contains(strings.Split(target, "/")[0], ".") {
		return folder + " may import the standard library only, not " + target
	}
	for _, r := range p.reserved {
		if strings.HasPrefix(target+"/", r.path+"/") && (r.tests || !test) && !slices.Contains(r.rooms, folder) {
			return r.path + " is for " + strings.Join(r.rooms, " and ") + " only"
		}
	}
	return ""
}
