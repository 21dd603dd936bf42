package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"embed"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"

	"leadferry/tools/must"
)

// writeTar writes files into a folder of the archive.
func writeTar(to io.Writer, folder string, files []file, when time.Time) {
	out := tar.NewWriter(to)
	for _, f := range files {
		head := &tar.Header{
			Name: folder + f.name, Mode: int64(f.mode), Size: int64(len(f.data)), Uid: f.user, Gid: f.user,
			ModTime: when, Format: tar.FormatPAX,
		}
		must.Do(out.WriteHeader(head))
		must.Get(out.Write(f.data))
	}
	must.Do(out.Close())
}

func writeTarGz(to io.Writer, folder string, files []file, when time.Time) {
	packed := must.Get(gzip.NewWriterLevel(to, gzip.BestCompression))
	writeTar(packed, folder, files, when)
	must.Do(packed.Close())
}

func writeZip(to io.Writer, folder string, files []file, when time.Time) {
	out := zip.NewWriter(to)
	for _, f := range files {
		head := &zip.FileHeader{Name: folder + f.name, Method: zip.Deflate, Modified: when}
		head.SetMode(f.mode)
		must.Get(must.Get(out.CreateHeader(head)).Write(f.data))
	}
	must.Do(out.Close())
}

// placed returns the files of a package with their paths on the system.
func placed(p product, zsh string) (all []file) {
	const docs = "/usr/share/doc/" + program + "/"
	at := map[string]string{
		p.target.binary():           "/usr/bin/" + program,
		"completion/leadferry.bash": "/usr/share/bash-completion/completions/" + program,
		"completion/leadferry.fish": "/usr/share/fish/vendor_completions.d/" + program + ".fish",
		"completion/_leadferry":     zsh,
		"completion/leadferry.ps1":  "", // a shell that these systems lack
		"THIRD-PARTY-LICENCES.txt":  docs + "copyright",
	}
	for _, f := range p.contents {
		to, known := at[f.name]
		if !known {
			to = docs + f.name
		}
		if f.name = to; to != "" {
			all = append(all, f)
		}
	}
	return all
}

// writePackage makes a package with nfpm, which reads its files from a disk.
func (r *release) writePackage(kind string, p product, all []file) {
	info := &nfpm.Info{
		Name: program, Version: r.version, Arch: p.arch, Platform: p.os, Section: "utils", Priority: "optional",
		Maintainer: "leadferry maintainers <maintainers@example.com>", Vendor: program, Homepage: r.url,
		Description: "carry leads from spreadsheets into a lead-management service, once each\n" +
			"Batch import of CSV, JSON and Excel files, and nightly reconciliation of their status.",
		License: "see /usr/share/doc/" + program + "/copyright", DisableGlobbing: true, MTime: r.when,
	}
	info.RPM.BuildHost = "localhost" // otherwise this machine's name
	for _, f := range all {
		from := filepath.Join(r.work, p.arch, kind, filepath.FromSlash(f.name))
		must.Do(os.MkdirAll(filepath.Dir(from), 0o755))
		must.Do(os.WriteFile(from, f.data, 0o644))
		info.Contents = append(info.Contents, &files.Content{
			Source: from, Destination: f.name,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: r.when},
		})
	}
	info = nfpm.WithDefaults(info)
	must.Do(nfpm.PrepareForPackager(info, kind))
	packager := must.Get(nfpm.Get(kind))
	r.create(packager.ConventionalFileName(info), func(to io.Writer) { must.Do(packager.Package(info, to)) })
}

// manifests are templates of the files that tell package managers where the archives are, and their hashes.
//
//go:embed manifests
var manifests embed.FS

// managers are the manifests: system, template, file.
var managers = [][3]string{
	{"darwin", "homebrew.rb", "homebrew/leadferry.rb"},
	{"windows", "scoop.json", "scoop/leadferry.json"},
	{"windows", "winget.yaml", "winget/Leadferry.Leadferry.yaml"},
	{"windows", "winget.installer.yaml", "winget/Leadferry.Leadferry.installer.yaml"},
	{"windows", "winget.locale.yaml", "winget/Leadferry.Leadferry.locale.en-US.yaml"},
}

// download is an archive in the data of manifests.
type download struct{ OS, Arch, Folder, URL, SHA256 string }

// writeManifests writes the manifests of a system whose archives are all there: others would fail on some machines.
func (r *release) writeManifests(made []product) {
	all := map[string][]download{}
	for _, p := range made {
		at := r.url + "/" + r.version + "/" + filepath.Base(p.archive)
		all[p.os] = append(all[p.os], download{p.os, p.arch, r.name(p.target), at, sumOf(p.archive)})
	}
	texts := template.New("").Funcs(template.FuncMap{"upper": strings.ToUpper})
	template.Must(texts.ParseFS(manifests, "manifests/*"))
	for _, m := range managers {
		if len(all[m[0]]) < 2 {
			continue
		}
		values := map[string]any{
			"Version": r.version, "Date": r.when.Format("2006-01-02"), "URL": r.url, "Downloads": all[m[0]],
		}
		r.create(m[2], func(to io.Writer) { must.Do(texts.ExecuteTemplate(to, m[1], values)) })
	}
}
