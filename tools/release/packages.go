package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// zshFolders is where each kind of package leaves completions for zsh.
var zshFolders = map[string]string{"deb": "/usr/share/zsh/vendor-completions", "rpm": "/usr/share/zsh/site-functions"}

// writePackages writes the Debian and the Red Hat package of a Linux build.
func (r *release) writePackages(p product) error {
	staged := filepath.Join(r.work, "staged-"+p.arch)
	for _, kind := range []string{"deb", "rpm"} {
		placed, err := placed(kind, p)
		if err != nil {
			return err
		}
		if err := r.writePackage(kind, p, staged, placed); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

// placed are the files of a package by their places in the system.
func placed(kind string, p product) ([]file, error) {
	at := map[string]string{
		p.target.binary():            "/usr/bin/" + program,
		"completion/leadferry.bash":  "/usr/share/bash-completion/completions/" + program,
		"completion/leadferry.fish":  "/usr/share/fish/vendor_completions.d/" + program + ".fish",
		"completion/_leadferry":      zshFolders[kind] + "/_" + program,
		"THIRD-PARTY-LICENCES.txt":   "/usr/share/doc/" + program + "/copyright",
		"bill-of-materials.cdx.json": "/usr/share/doc/" + program + "/bill-of-materials.cdx.json",
	}
	var all []file
	for _, f := range p.contents {
		to, known := at[f.name]
		switch page, isPage := strings.CutPrefix(f.name, "man/"); {
		case known:
			f.name = to
		case isPage:
			packed, err := gzipped(f.data)
			if err != nil {
				return nil, err
			}
			f = file{name: "/usr/share/man/man1/" + page + ".gz", data: packed}
		case strings.HasPrefix(f.name, "completion/"):
			continue // of shells that these systems do not have
		default:
			f.name = "/usr/share/doc/" + program + "/" + f.name
		}
		all = append(all, f)
	}
	return all, nil
}

func gzipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	return b.Bytes(), w.Close()
}

// writePackage hands the files to nfpm, which takes them from a disk.
func (r *release) writePackage(kind string, p product, staged string, all []file) error {
	info := &nfpm.Info{
		Name: program, Version: r.version, Arch: p.arch, Platform: p.os, Section: "utils", Priority: "optional",
		Maintainer: r.maintainer, Vendor: program, Homepage: r.url,
		Description: "carry leads from spreadsheets into a lead-management service, once each\n" +
			"Batch import of CSV, JSON and Excel files, and nightly reconciliation of their status.",
		License: "see /usr/share/doc/" + program + "/copyright", DisableGlobbing: true, MTime: r.when,
	}
	info.RPM.BuildHost = "localhost" // else this machine's name
	for _, f := range all {
		from := filepath.Join(staged, kind, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(from, f.data, 0o644); err != nil {
			return err
		}
		info.Contents = append(info.Contents, &files.Content{
			Source: from, Destination: f.name,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.perm(), MTime: r.when},
		})
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, kind); err != nil {
		return err
	}
	packager, err := nfpm.Get(kind)
	if err != nil {
		return err
	}
	to, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	defer to.Close()
	if err := packager.Package(info, to); err != nil {
		return err
	}
	return to.Close()
}
