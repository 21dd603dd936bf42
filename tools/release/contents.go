package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// file is one in an archive, a package or an image.
type file struct {
	name string // with slashes, from the top of the archive
	mode fs.FileMode
	data []byte
}

// inArchives are the parts of the clone that every archive holds; what is not there yet is left out.
var inArchives = []string{"README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "docs", "samples"}

// shells are those with completion, and the names under which their scripts are kept.
var shells = []struct{ name, script string }{
	{"bash", "completion/leadferry.bash"},
	{"fish", "completion/leadferry.fish"},
	{"zsh", "completion/_leadferry"},
	{"powershell", "completion/leadferry.ps1"},
}

// commonFiles are those that do not depend on the target: documents, samples, manual pages, completions.
func (b *builder) commonFiles(ctx context.Context) ([]file, error) {
	tracked, err := output(ctx, b.root, "git", append([]string{"ls-files", "--"}, inArchives...)...)
	if err != nil {
		return nil, err
	}
	var all []file
	for name := range strings.Lines(tracked) {
		name = strings.TrimSpace(name)
		data, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: name, mode: 0o644, data: data})
	}
	for _, shell := range shells {
		script, err := output(ctx, b.work, b.host, "completion", shell.name)
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: shell.script, mode: 0o644, data: []byte(script + "\n")})
	}
	pages, err := b.manual(ctx)
	return append(all, pages...), err
}

// manual are the manual pages, as the main module makes them.
func (b *builder) manual(ctx context.Context) ([]file, error) {
	folder := filepath.Join(b.work, "man")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if _, err := output(ctx, b.root, "go", "run", "./internal/cli/manual", folder); err != nil {
		return nil, err
	}
	found, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var pages []file
	for _, entry := range found {
		data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		pages = append(pages, file{name: "man/" + entry.Name(), mode: 0o644, data: data})
	}
	return pages, nil
}

// licenceFile is how modules call the texts that must go with copies of them.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

// licences are the texts of everything that a binary holds: Go itself and the modules of which packages are linked in.
// A module without such a text is an error: nobody may hand out a copy of it.
func (b *builder) licences(ctx context.Context, binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	goroot, err := output(ctx, b.root, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	folders, err := b.moduleFolders(ctx)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "This program holds parts of the following works, each under its own licence.\n")
	if err := writeLicences(&text, "Go, "+info.GoVersion, goroot); err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		if err := writeLicences(&text, m.Path+" "+m.Version, folders[m.Path]); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

func writeLicences(to *bytes.Buffer, work, folder string) error {
	found, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("licence of %s: %w", work, err)
	}
	count := 0
	for _, entry := range found {
		if entry.IsDir() || !licenceFile.MatchString(entry.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(to, "\n%s\n%s (%s)\n\n%s\n", strings.Repeat("=", 80), work, entry.Name(), bytes.TrimSpace(data))
		count++
	}
	if count == 0 {
		return fmt.Errorf("%s has no text of a licence", work)
	}
	return nil
}

// moduleFolders is where the modules of the program lie on this machine.
func (b *builder) moduleFolders(ctx context.Context) (map[string]string, error) {
	listed, err := output(ctx, b.root, "go", "list", "-m", "-json=Path,Dir", "all")
	if err != nil {
		return nil, err
	}
	folders := map[string]string{}
	for in := json.NewDecoder(strings.NewReader(listed)); in.More(); {
		var m struct{ Path, Dir string }
		if err := in.Decode(&m); err != nil {
			return nil, err
		}
		folders[m.Path] = m.Dir
	}
	return folders, nil
}

// below are the files whose names begin with a folder's, with the rest of their names.
func below(folder string, all []file) []file {
	var found []file
	for _, f := range all {
		if rest, ok := strings.CutPrefix(f.name, folder+"/"); ok {
			f.name = rest
			found = append(found, f)
		}
	}
	return found
}

// named is the one file of that name.
func named(name string, all []file) (file, error) {
	i := slices.IndexFunc(all, func(f file) bool { return f.name == name })
	if i < 0 {
		return file{}, errors.New("no file " + path.Base(name))
	}
	return all[i], nil
}
