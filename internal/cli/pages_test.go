package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"leadferry/importer/report"
	"leadferry/internal/cli/checkpointcmd"
	"leadferry/internal/testsupport/must"
)

// docs/scripting.md names each field and column that scripts read, and each variable that has no flag.
func TestScriptingPageIsComplete(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "scripting.md"))
	must.Do(t, err)
	names := append(fieldsOf(reflect.TypeFor[report.Summary]()), fieldsOf(reflect.TypeFor[checkpointcmd.ExportLine]())...)
	for _, of := range []reflect.Type{
		reflect.TypeFor[report.Result](), reflect.TypeFor[report.Problem](), reflect.TypeFor[report.Compared](), reflect.TypeFor[report.Pulled](),
	} {
		for i := range of.NumField() {
			names = append(names, strings.Trim(of.Field(i).Tag.Get("csv"), "-"))
		}
	}
	text = regexp.MustCompile("(?s)```.*?```").ReplaceAll(text, nil)
	named := regexp.MustCompile("`[^`]+`").FindAllString(string(text), -1)
	outcomes := (&report.RowCounts{}).ByName()
	for _, name := range append(names, variables(t)...) {
		if _, is := outcomes[name]; !is && name != "" && !slices.ContainsFunc(named, func(one string) bool { return strings.Trim(strings.SplitN(one, "=", 2)[0], "`") == name }) {
			t.Errorf("docs/scripting.md does not name %s", name)
		}
	}
}

// Links of the pages lead to files and headings that exist.
func TestLinksOfPages(t *testing.T) {
	root := filepath.Join("..", "..")
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	headings := func(page string) (all []string) {
		text, _ := os.ReadFile(page)
		for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
			kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
			all = append(all, strings.ReplaceAll(kept, " ", "-"))
		}
		return all
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		must.Do(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(string(text), -1) {
			name, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(name, "://") {
				continue
			}
			to := page
			if name != "" {
				to = filepath.Join(filepath.Dir(page), filepath.FromSlash(name))
			}
			if _, err := os.Stat(to); err != nil || heading != "" && !slices.Contains(headings(to), heading) {
				t.Errorf("%s: the link %s leads nowhere", filepath.Base(page), m[1])
			}
		}
	}
}

// variables are the LEADFERRY_ variables that the program's sources name and no flag reads, except those of tests.
func variables(t *testing.T) (names []string) {
	named := regexp.MustCompile(`\bLEADFERRY_[A-Z_]+\b`)
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		base := filepath.Base(path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(base, ".") || slices.Contains([]string{"tools", "testdata", "failpoint", "e2e"}, base)):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		names = append(names, named.FindAllString(string(text), -1)...)
		return err
	})
	must.Do(t, err)
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.HasSuffix(name, "_") || strings.HasPrefix(name, "LEADFERRY_TEST_")
	})
	eachCommand(func(c *cli.Command, _ []string) {
		for _, f := range c.Flags {
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(f.(cli.DocGenerationFlag).GetEnvVars(), name) })
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// fieldsOf are the names of the fields of a JSON object, with those of the objects in it.
func fieldsOf(of reflect.Type) (names []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if name == "-" || name == "" && !f.Anonymous || !f.IsExported() {
			continue
		}
		if names = append(names, name); inner.Kind() == reflect.Struct && inner.PkgPath() == of.PkgPath() {
			names = append(names, fieldsOf(inner)...)
		}
	}
	return names
}
