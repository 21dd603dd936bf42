package cli

import (
	"flag"
	"fmt"
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
	"leadferry/internal/explain"
)

var update = flag.Bool("update", false, "write the tables of docs anew")

// TestPages compares the tables of docs/scripting.md with what the program has. Tables that stand between `<!-- written: NAME -->` and `<!-- end -->` are written by
// -update. What a field means is written by hand: -update keeps it, and puts a ? for a new one.
func TestPages(t *testing.T) {
	tables := map[string]func(old map[string]string) string{
		"exit codes": func(map[string]string) string { return exitTable() },
		"variables":  func(old map[string]string) string { return variableTable(t, old) },
		"summary": func(old map[string]string) string {
			return fieldTable("field", fieldsOf(reflect.TypeFor[report.Summary](), ""), old)
		},
		"results":    func(old map[string]string) string { return columnTable(reflect.TypeFor[report.Result](), old) },
		"problems":   func(old map[string]string) string { return columnTable(reflect.TypeFor[report.Problem](), old) },
		"comparison": func(old map[string]string) string { return columnTable(reflect.TypeFor[report.Compared](), old) },
		"pull":       func(old map[string]string) string { return columnTable(reflect.TypeFor[report.Pulled](), old) },
		"export": func(old map[string]string) string {
			return columnTable(reflect.TypeFor[checkpointcmd.ExportLine](), old)
		},
	}
	path := filepath.Join("..", "..", "docs", "scripting.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	have := string(text)
	for name, table := range tables {
		begin, rest, found := strings.Cut(have, "<!-- written: "+name+" -->\n")
		old, end, closed := strings.Cut(rest, "<!-- end -->")
		if !found || !closed {
			t.Fatalf("docs/scripting.md has no place for the table %s", name)
		}
		want := "\n" + table(meanings(old)) + "\n"
		if strings.Contains(want, "| ? |") {
			t.Errorf("docs/scripting.md: the table %s does not say what all of its lines mean (\"?\")", name)
		}
		if old != want && !*update {
			t.Errorf("docs/scripting.md: table %s is out of date: go test ./internal/cli -run TestPages -update", name)
		}
		have = begin + "<!-- written: " + name + " -->\n" + want + "<!-- end -->" + end
	}
	if *update {
		if err := os.WriteFile(path, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Links of the pages lead to files, and to headings, that are there.
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
		if err != nil {
			t.Fatal(err)
		}
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

// meanings are the last cells of a table's lines by the name in the first.
func meanings(table string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		all[strings.Trim(cells[0], " `")] = strings.TrimSpace(cells[len(cells)-1])
	}
	return all
}

func exitTable() string {
	kinds := explain.Kinds()
	i := slices.IndexFunc(kinds, func(k explain.Kind) bool { return k.Name == "exit code" })
	var b strings.Builder
	b.WriteString("| code | means |\n|---|---|\n")
	for _, e := range kinds[i].Entries {
		fmt.Fprintf(&b, "| %s | %s |\n", e.Name, e.Means)
	}
	return b.String()
}

// variableTable lists the variables of flags, then all others that the sources name.
func variableTable(t *testing.T, old map[string]string) string {
	var b strings.Builder
	b.WriteString("| variable | flag | means |\n|---|---|---|\n")
	listed := map[string]bool{}
	list := func(c *cli.Command, _ []string) {
		for _, f := range c.Flags {
			d := f.(cli.DocGenerationFlag)
			for _, variable := range d.GetEnvVars() {
				if !listed[variable] {
					listed[variable] = true
					about := strings.ReplaceAll(strings.ReplaceAll(d.GetUsage(), "`", ""), "|", `\|`)
					fmt.Fprintf(&b, "| `%s` | `--%s` | %s |\n", variable, f.Names()[0], about)
				}
			}
		}
	}
	list((&program{}).importCommand(), nil) // its flags mean the same for most commands
	everyCommand(list)
	for _, name := range variables(t) {
		if !listed[name] {
			fmt.Fprintf(&b, "| `%s` | none | %s |\n", name, kept(old, name))
		}
	}
	return b.String()
}

// variables are all that the sources of the program name, but for those of tests.
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
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.HasSuffix(name, "_") || strings.HasPrefix(name, "LEADFERRY_TEST_")
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// fieldsOf are the fields of a JSON object, with those of the objects in it.
func fieldsOf(of reflect.Type, above string) (names []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner, list := f.Type, ""
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				list = "[]"
			}
			inner = inner.Elem()
		}
		switch {
		case name == "-" || name == "" && !f.Anonymous || !f.IsExported():
			continue
		case f.Anonymous:
			names = append(names, fieldsOf(inner, above)...)
			continue
		}
		names = append(names, above+name+list)
		if inner.Kind() == reflect.Struct && inner.PkgPath() == of.PkgPath() {
			names = append(names, fieldsOf(inner, above+name+list+".")...)
		}
	}
	return names
}

func fieldTable(title string, names []string, old map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | is |\n|---|---|\n", title)
	for _, name := range names {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, kept(old, name))
	}
	return b.String()
}

func columnTable(of reflect.Type, old map[string]string) string {
	var names []string
	for i := range of.NumField() {
		if name := of.Field(i).Tag.Get("csv"); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return fieldTable("column", names, old)
}

func kept(old map[string]string, name string) string {
	if meaning := old[name]; meaning != "" {
		return meaning
	}
	return "?"
}
