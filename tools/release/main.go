// Command release makes everything that a version of leadferry is installed from, into an empty or new folder:
//
//	go -C tools run ./release -out DIR                        # linux, macOS and Windows, amd64 and arm64
//	go -C tools run ./release -out DIR -targets linux/amd64   # some of them
//
// For each target an archive (program, manual pages, completions, docs, samples, licences of what it is made of) and a
// bill of materials; packages for Debian and Red Hat; an OCI image layout; manifests for Homebrew, Scoop and winget;
// SHA256SUMS of all. The same commit gives the same bytes, wherever its clone lies: times are the commit's, paths are
// trimmed, and nothing of this machine gets in. So whoever doubts a file makes it again and compares.
//
// The version is the one in the source ([leadferry --version] says it), the commit the clone's, which has to be clean.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "release:", err)
	os.Exit(1)
}

func run(ctx context.Context, args []string, log io.Writer) error {
	set := flag.NewFlagSet("release", flag.ContinueOnError)
	set.SetOutput(log)
	out := set.String("out", "", "`folder` that gets the files; new or empty")
	names := set.String("targets", allTargets(), "what to build for, `os/arch` separated by commas")
	url := set.String("url", "https://downloads.example.com/leadferry", "`address` below which a version's files will be found, for the manifests of package managers")
	maintainer := set.String("maintainer", "leadferry maintainers <maintainers@example.com>", "who answers for the packages")
	changed := set.Bool("changed", false, "build although the clone has changes that are in no commit (to try things out)")
	if err := set.Parse(args); err != nil {
		return err
	}
	targets, err := parseTargets(*names)
	switch {
	case err != nil:
		return err
	case *out == "" || set.NArg() > 0:
		return errors.New("usage: release -out DIR [-targets OS/ARCH,...] [-url ADDRESS]")
	}
	folder, err := emptyFolder(*out)
	if err != nil {
		return err
	}
	b, err := newBuilder(ctx, ".", *changed)
	if err != nil {
		return err
	}
	defer os.RemoveAll(b.work)
	r := release{builder: b, out: folder, url: strings.TrimSuffix(*url, "/"), maintainer: *maintainer}
	return r.make(ctx, targets, log)
}

// emptyFolder is the folder's whole path; it is made when it is not there.
func emptyFolder(path string) (string, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", err
	}
	switch found, err := os.ReadDir(path); {
	case err != nil:
		return "", err
	case len(found) > 0:
		return "", fmt.Errorf("%s is not empty: a release is made whole, into a folder of its own", path)
	}
	return filepath.Abs(path)
}

// release is one version on its way into a folder.
type release struct {
	*builder
	out, url, maintainer string
}

// product is what was built for one target.
type product struct {
	target
	binary   string // its path
	archive  string // name of its archive
	contents []file // of the archive
}

func (r *release) make(ctx context.Context, targets []target, log io.Writer) error {
	common, err := r.commonFiles(ctx)
	if err != nil {
		return err
	}
	var made []product
	for _, t := range targets {
		fmt.Fprintf(log, "%s %s: %s\n", program, r.version, t)
		p, err := r.product(ctx, t, common)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		made = append(made, p)
	}
	if err := r.writeImage(made); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := r.writeManifests(made); err != nil {
		return fmt.Errorf("manifests: %w", err)
	}
	return writeSums(r.out)
}

// product builds for one target and writes what holds that build alone.
func (r *release) product(ctx context.Context, t target, common []file) (product, error) {
	p := product{target: t}
	var err error
	if p.binary, err = r.build(ctx, t); err != nil {
		return p, err
	}
	binary, err := os.ReadFile(p.binary)
	if err != nil {
		return p, err
	}
	bill, err := r.bill(p.binary)
	if err != nil {
		return p, err
	}
	licences, err := r.licences(ctx, p.binary)
	if err != nil {
		return p, err
	}
	p.contents = slices.Concat([]file{{name: t.binary(), mode: 0o755, data: binary}}, common,
		[]file{{name: "THIRD-PARTY-LICENCES.txt", data: licences}, {name: "bill-of-materials.cdx.json", data: bill}})
	if err := os.WriteFile(filepath.Join(r.out, r.name(t)+".cdx.json"), bill, 0o644); err != nil {
		return p, err
	}
	if p.archive, err = r.writeArchive(t, p.contents); err != nil {
		return p, err
	}
	if t.os == "linux" {
		return p, r.writePackages(p)
	}
	return p, nil
}

// name begins the names of all files of a target.
func (r *release) name(t target) string {
	return fmt.Sprintf("%s_%s_%s_%s", program, r.version, t.os, t.arch)
}
