package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"leadferry/tools/must"
)

// tree is the folder of the program's sources. No file in it is changed.
type tree string

// changed returns a copy of others (texts by path below the tree), with the files that a bug changes or adds.
func (t tree) changed(others map[string]string, b *bug) (files map[string]string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("bug %d, %s: %w\nhint: the code has changed; in tools/seededbugs/bugs.yaml, "+
				"make the same mistake in what it is now", b.Number, b.Name, err)
		}
	}()
	defer must.Catch(&err)
	files = map[string]string{}
	maps.Copy(files, others)
	for _, e := range b.Edits {
		t.apply(e, files)
	}
	for file, seed := range b.Add {
		files[file] = string(must.Get(table.ReadFile(path.Join("seeds", seed))))
	}
	return files, nil
}

// apply makes one edit in a file, on top of earlier edits.
func (t tree) apply(e edit, files map[string]string) {
	file, text, at := e.File, "", place{}
	if file == "" {
		file, text, at = t.find(e.In, files)
	} else {
		text = t.read(file, files)
		at.end = len(text)
	}
	part := text[at.start:at.end]
	if e.First != "" && at.body > 0 {
		part = text[at.start:at.body] + "\nif true {\n" + e.First + "\n}\n" + text[at.body:at.end]
	} else {
		part = replaced(part, e)
	}
	files[file] = text[:at.start] + part + text[at.end:]
}

func (t tree) read(file string, files map[string]string) string {
	if text, known := files[file]; known {
		return text
	}
	return string(must.Get(os.ReadFile(filepath.Join(string(t), filepath.FromSlash(file)))))
}

// place is where a declaration is in a file. body is the offset after the opening brace of a function; 0: no function.
type place struct{ start, body, end int }

// find finds a function or type by "folder.name", and returns its file, the file's text and the place.
func (t tree) find(in string, files map[string]string) (file, text string, at place) {
	above, last := path.Split(in)
	folder, name, _ := strings.Cut(last, ".")
	folder = above + folder
	for _, p := range must.Get(filepath.Glob(filepath.Join(string(t), filepath.FromSlash(folder), "*.go"))) {
		file = path.Join(folder, filepath.Base(p))
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text = t.read(file, files)
		set := token.NewFileSet()
		for _, d := range must.Get(parser.ParseFile(set, file, text, parser.SkipObjectResolution)).Decls {
			if nameOf(d) != name {
				continue
			}
			at = place{start: set.Position(d.Pos()).Offset, end: set.Position(d.End()).Offset}
			if f, ok := d.(*ast.FuncDecl); ok {
				at.body = set.Position(f.Body.Lbrace).Offset + 1
			}
			return file, text, at
		}
	}
	must.Do(fmt.Errorf("%s has no %q", folder, name))
	return "", "", at
}

// nameOf returns the name of a function or type; for a method, the type's name comes first.
func nameOf(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		receiver := d.Recv.List[0].Type
		if pointer, ok := receiver.(*ast.StarExpr); ok {
			receiver = pointer.X
		}
		if name, ok := receiver.(*ast.Ident); ok {
			return name.Name + "." + d.Name.Name
		}
	case *ast.GenDecl:
		if s, ok := d.Specs[0].(*ast.TypeSpec); ok {
			return s.Name.Name
		}
	}
	return ""
}

// replaced replaces old, which must be there once, by new. Spaces, line breaks and comments between words do not count.
func replaced(text string, e edit) string {
	words := strings.Fields(e.Old)
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	found := regexp.MustCompile(strings.Join(words, `(?:\s|//.*\n)+`)).FindAllStringIndex(text, -1)
	if len(found) != 1 {
		must.Do(fmt.Errorf("%q is %d times in %s%s, not once", e.Old, len(found), e.In, e.File))
	}
	return text[:found[0][0]] + strings.TrimRight(e.New, "\n") + text[found[0][1]:]
}

// overlay writes files into a folder, and the file for go's -overlay that puts them in place of those of the tree.
func (t tree) overlay(files map[string]string, dir string) (path string) {
	dir = must.Get(os.MkdirTemp(dir, ""))
	to := map[string]string{}
	for file, text := range files {
		copied := filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		must.Do(os.WriteFile(copied, []byte(text), 0o600))
		to[filepath.Join(string(t), filepath.FromSlash(file))] = copied
	}
	path = filepath.Join(dir, "overlay.json")
	must.Do(os.WriteFile(path, must.Get(json.Marshal(map[string]any{"Replace": to})), 0o600))
	return path
}
