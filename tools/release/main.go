// Command release builds all files of a version of leadferry into a new or empty folder:
//
//	go -C tools run ./release -out DIR                        # linux, macOS and Windows, amd64 and arm64
//	go -C tools run ./release -out DIR -targets linux/amd64   # some of them
//
// For each target it makes an archive (program, completions, docs, samples, licences of all parts) and a bill of
// materials. It also makes packages for Debian and Red Hat, an OCI image layout, manifests for Homebrew, Scoop and
// winget, and SHA256SUMS of all files. The same clean commit gives the same bytes, wherever the clone is: times are the
// commit's, paths are trimmed, and nothing comes from this machine. The version is that of the source.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"leadferry/tools/must"
)

const program = "leadferry"

func main() {
	must.Main("release", func(ctx context.Context, args []string) error { return run(ctx, args, os.Stderr) })
}

func run(ctx context.Context, args []string, log io.Writer) error {
	r := release{ctx: ctx, root: ".", log: log}
	set := flag.NewFlagSet("release", flag.ContinueOnError)
	set.SetOutput(log)
	set.StringVar(&r.out, "out", "", "`folder` that gets the files; new or empty")
	set.StringVar(&r.targets, "targets", allTargets, "what to build for, `os/arch` separated by commas")
	set.StringVar(&r.url, "url", "https://downloads.example.com/leadferry",
		"`address` below which a version's files will be found, for the manifests of package managers")
	if err := set.Parse(args); err != nil {
		return err
	}
	if r.out == "" || set.NArg() > 0 {
		return errors.New("usage: release -out DIR [-targets OS/ARCH,...] [-url ADDRESS]")
	}
	return r.make()
}

// release is one version while it is built: a clone at a commit, and the version in its source.
type release struct {
	ctx               context.Context
	out, targets, url string
	log               io.Writer

	root, work string // the clone, or a folder in it; a folder for temporary files
	host       string // the program built for this machine; it prints version and completions
	version    string
	commit     string
	when       time.Time // of the commit, and so of all files
}

// product is the result for one target.
type product struct {
	target
	binary   string // its path
	archive  string // the path of its archive
	contents []file // of the archive
}

func (r *release) make() (err error) {
	defer must.Catch(&err)
	targets := parseTargets(r.targets)
	must.Do(os.MkdirAll(r.out, 0o755))
	if len(must.Get(os.ReadDir(r.out))) > 0 {
		return fmt.Errorf("%s is not empty: a release is made whole, into a folder of its own", r.out)
	}
	r.out, r.url = must.Get(filepath.Abs(r.out)), strings.TrimSuffix(r.url, "/")
	r.begin()
	defer os.RemoveAll(r.work)
	common := r.commonFiles()
	var made []product
	for _, t := range targets {
		fmt.Fprintf(r.log, "%s %s: %s\n", program, r.version, t)
		made = append(made, r.product(t, common))
	}
	r.writeImage(made)
	r.writeManifests(made)
	writeSums(r.out)
	return nil
}

// product builds for one target and writes the files for that target.
func (r *release) product(t target, common []file) product {
	p := product{target: t, binary: r.build(t)}
	bill := r.bill(p.binary)
	binary := file{name: t.binary(), mode: 0o755, data: must.Get(os.ReadFile(p.binary))}
	p.contents = slices.Concat([]file{binary}, common, []file{
		{name: "THIRD-PARTY-LICENCES.txt", mode: 0o644, data: r.licences(p.binary)},
		{name: "bill-of-materials.cdx.json", mode: 0o644, data: bill},
	})
	name := r.name(t)
	r.create(name+".cdx.json", func(to io.Writer) { must.Get(to.Write(bill)) })
	if t.os == "windows" {
		p.archive = r.create(name+".zip", func(to io.Writer) { writeZip(to, name+"/", p.contents, r.when) })
	} else {
		p.archive = r.create(name+".tar.gz", func(to io.Writer) { writeTarGz(to, name+"/", p.contents, r.when) })
	}
	if t.os == "linux" {
		r.writePackage("deb", p, placed(p, "/usr/share/zsh/vendor-completions/_"+program))
		r.writePackage("rpm", p, placed(p, "/usr/share/zsh/site-functions/_"+program))
	}
	return p
}

// name returns the beginning of the names of all files of a target.
func (r *release) name(t target) string {
	return fmt.Sprintf("%s_%s_%s_%s", program, r.version, t.os, t.arch)
}

// create writes a file of the release and returns its path.
func (r *release) create(name string, write func(io.Writer)) string {
	path := filepath.Join(r.out, filepath.FromSlash(name))
	must.Do(os.MkdirAll(filepath.Dir(path), 0o755))
	to := must.Get(os.Create(path))
	defer to.Close()
	write(to)
	must.Do(to.Close())
	return path
}

// writeSums writes SHA256SUMS of every file in the folder and below, in the form for sha256sum --check.
func writeSums(folder string) {
	var list strings.Builder
	must.Do(filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			fmt.Fprintf(&list, "%s  %s\n", sumOf(path), filepath.ToSlash(must.Get(filepath.Rel(folder, path))))
		}
		return err
	}))
	must.Do(os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(list.String()), 0o644))
}

// sumOf returns the SHA-256 of a file in hexadecimal digits.
func sumOf(path string) string {
	return fmt.Sprintf("%x", sha256.Sum256(must.Get(os.ReadFile(path))))
}
