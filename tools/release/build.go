package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"

	"leadferry/tools/must"
)

// target is a system to build for, in the words of Go.
type target struct{ os, arch string }

const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func (t target) String() string { return t.os + "/" + t.arch }

// binary returns the program's file name.
func (t target) binary() string { return program + map[string]string{"windows": ".exe"}[t.os] }

func parseTargets(list string) (all []target) {
	for name := range strings.SplitSeq(list, ",") {
		goos, arch, _ := strings.Cut(strings.TrimSpace(name), "/")
		t := target{goos, arch}
		if !slices.Contains(strings.Split(allTargets, ","), t.String()) || slices.Contains(all, t) {
			must.Do(fmt.Errorf("target %q is unknown or named twice: there are %s", name, allTargets))
		}
		all = append(all, t)
	}
	return all
}

// file is a file in an archive, a package or an image.
type file struct {
	name string // with slashes, from the top of the archive; a folder's name ends with one
	mode fs.FileMode
	data []byte
	user int
}

// begin reads the clone and builds the program for this machine. The caller removes r.work.
func (r *release) begin() {
	r.root = r.output("git", "rev-parse", "--show-toplevel")
	if r.output("git", "status", "--porcelain") != "" {
		must.Do(errors.New("the clone has changes that are in no commit, so nobody could make the same files again"))
	}
	r.commit = r.output("git", "rev-parse", "HEAD")
	r.when = time.Unix(must.Get(strconv.ParseInt(r.output("git", "log", "-1", "--format=%ct"), 10, 64)), 0).UTC()
	r.work = must.Get(os.MkdirTemp("", "leadferry-release-"))
	r.host = r.build(target{runtime.GOOS, runtime.GOARCH})
	r.version = strings.Fields(r.output(r.host, "--version"))[2] // leadferry version 0.1.0 …
}

// build compiles the program for a target and returns its path. The Go tool writes commit and time into it.
func (r *release) build(t target) string {
	path := filepath.Join(r.work, t.os+"-"+t.arch, t.binary())
	r.output("env", "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=",
		"GOEXPERIMENT=", "go", "build", "-trimpath", "-buildvcs=true", "-tags=urfave_cli_no_docs",
		"-ldflags=-s -w -buildid=", "-o", path, ".")
	return path
}

// output returns what a command prints in the clone, without the line end.
func (r *release) output(name string, args ...string) string {
	c := exec.CommandContext(r.ctx, name, args...)
	c.Dir = r.root
	out, err := c.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s: %w\n%s", c, err, failed.Stderr)
	}
	must.Do(err)
	return strings.TrimRight(string(out), "\n")
}

// commonFiles returns the files that are the same for all targets: documents, samples, completions.
func (r *release) commonFiles() (all []file) {
	add := func(name, path string) {
		all = append(all, file{name: name, mode: 0o644, data: must.Get(os.ReadFile(path))})
	}
	listed := r.output("git", "ls-files", "README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "docs", "samples")
	for name := range strings.SplitSeq(listed, "\n") {
		add(name, filepath.Join(r.root, filepath.FromSlash(name)))
	}
	for shell, name := range map[string]string{
		"bash": "leadferry.bash", "fish": "leadferry.fish", "zsh": "_leadferry", "powershell": "leadferry.ps1",
	} {
		script := r.output(r.host, "completion", shell) + "\n"
		all = append(all, file{name: "completion/" + name, mode: 0o644, data: []byte(script)})
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return all
}

// licenceFile matches the names of the texts that must go with every copy of a module.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

// licences returns the licence texts of all parts of a binary: Go itself and the linked modules. A module without a
// licence is an error, because nobody may distribute it.
func (r *release) licences(binary string) []byte {
	info := must.Get(buildinfo.ReadFile(binary))
	folders := map[string]string{}
	for in := json.NewDecoder(strings.NewReader(r.output("go", "list", "-m", "-json=Path,Dir", "all"))); in.More(); {
		var m struct{ Path, Dir string }
		must.Do(in.Decode(&m))
		folders[m.Path] = m.Dir
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "This program holds parts of the following works, each under its own licence.\n")
	writeLicences(&text, "Go, "+info.GoVersion, r.output("go", "env", "GOROOT"))
	for _, m := range info.Deps {
		writeLicences(&text, m.Path+" "+m.Version, folders[m.Path])
	}
	writeLicences(&text, "libphonenumber: plans; locales: names of months", filepath.Join(r.root, "mapping", "texts"))
	return text.Bytes()
}

func writeLicences(to *bytes.Buffer, work, folder string) {
	before := to.Len()
	for _, entry := range must.Get(os.ReadDir(folder)) {
		if !entry.IsDir() && licenceFile.MatchString(entry.Name()) {
			data := bytes.TrimSpace(must.Get(os.ReadFile(filepath.Join(folder, entry.Name()))))
			fmt.Fprintf(to, "\n%s\n%s (%s)\n\n%s\n", strings.Repeat("=", 80), work, entry.Name(), data)
		}
	}
	if to.Len() == before {
		must.Do(fmt.Errorf("%s has no text of a licence", work))
	}
}

// bill returns the bill of materials of a binary in CycloneDX form: Go, and the modules that the binary names.
func (r *release) bill(binary string) []byte {
	info, sum := must.Get(buildinfo.ReadFile(binary)), sumOf(binary)
	component := func(path, version string, properties ...cdx.Property) cdx.Component {
		ref := fmt.Sprintf("pkg:golang/%s@%s", path, url.QueryEscape(version)) // keeps slashes
		c := cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: ref}
		c.Properties = &properties
		return c
	}
	parts := []cdx.Component{component("std", info.GoVersion)}
	refs := []string{parts[0].BOMRef}
	for _, m := range info.Deps {
		// a hash in go.sum is of names and hashes, not of a file: no cdx.Hash
		p := component(m.Path, m.Version, cdx.Property{Name: "go.sum", Value: m.Sum})
		parts, refs = append(parts, p), append(refs, p.BOMRef)
	}
	doc := cdx.NewBOM()
	// The same binary has the same bill, with the same number.
	doc.SerialNumber = uuid.NewHash(sha256.New(), uuid.Nil, []byte(sum), 8).URN()
	doc.Metadata = &cdx.Metadata{Timestamp: r.when.Format(time.RFC3339), Component: &cdx.Component{
		BOMRef: program, Type: cdx.ComponentTypeApplication, Name: program, Version: r.version,
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
		Properties: &[]cdx.Property{{Name: "vcs.revision", Value: r.commit}},
	}}
	doc.Components = &parts
	doc.Dependencies = &[]cdx.Dependency{{Ref: program, Dependencies: &refs}}
	var text bytes.Buffer
	must.Do(cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(doc, cdx.SpecVersion1_6))
	return text.Bytes()
}
