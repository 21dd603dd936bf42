package main

import (
	"bytes"
	"embed"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// manifests tell package managers where a version's archives are and what they must hash to.
//
//go:embed manifests
var manifests embed.FS

var manifestTemplates = template.Must(template.New("").Funcs(template.FuncMap{"upper": strings.ToUpper}).ParseFS(manifests, "manifests/*"))

// managers are package managers, the system that their archives are for, and the file that they read.
var managers = []struct{ os, template, path string }{
	{"darwin", "homebrew.rb", "homebrew/leadferry.rb"},
	{"windows", "scoop.json", "scoop/leadferry.json"},
	{"windows", "winget.yaml", "winget/Leadferry.Leadferry.yaml"},
	{"windows", "winget.installer.yaml", "winget/Leadferry.Leadferry.installer.yaml"},
	{"windows", "winget.locale.yaml", "winget/Leadferry.Leadferry.locale.en-US.yaml"},
}

// download is an archive as the manifests name it.
type download struct{ OS, Arch, Folder, URL, SHA256 string }

// writeManifests writes those for which every archive was made: half a manifest would install nothing on the other half
// of the machines.
func (r *release) writeManifests(made []product) error {
	downloads, err := r.downloads(made)
	if err != nil {
		return err
	}
	for _, m := range managers {
		if len(downloads[m.os]) < 2 {
			continue
		}
		var text bytes.Buffer
		err := manifestTemplates.ExecuteTemplate(&text, m.template, map[string]any{
			"Version": r.version, "Date": r.when.Format("2006-01-02"), "URL": r.url, "Downloads": downloads[m.os],
		})
		if err != nil {
			return err
		}
		path := filepath.Join(r.out, filepath.FromSlash(m.path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// downloads are the archives by their systems.
func (r *release) downloads(made []product) (map[string][]download, error) {
	all := map[string][]download{}
	for _, p := range made {
		sum, err := sumOf(filepath.Join(r.out, p.archive))
		if err != nil {
			return nil, err
		}
		all[p.os] = append(all[p.os], download{p.os, p.arch, r.name(p.target), r.url + "/" + r.version + "/" + p.archive, sum})
	}
	return all, nil
}
