package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"

	"leadferry/tools/must"
)

var (
	every = flag.Bool("every", false, "build for every system and processor, not only for Linux and Windows on amd64")
	cold  = flag.Bool("cold", false, "compile the second time with an empty cache: takes a minute or two more")
)

// makeRelease makes a release of the last commit, in a new clone, and returns its folder.
func makeRelease(t *testing.T, targets string) string {
	t.Helper()
	clone, out := filepath.Join(t.TempDir(), "clone"), t.TempDir()
	if said, err := exec.Command("git", "clone", "-q", "--no-hardlinks", "../..", clone).CombinedOutput(); err != nil {
		t.Skipf("no clone to make a release of: %v\n%s", err, said)
	}
	r := release{
		ctx: t.Context(), root: clone, out: out, targets: targets, log: t.Output(),
		url: "https://downloads.example.com/leadferry",
	}
	must.Do(r.make())
	return out
}

func TestRelease(t *testing.T) {
	targets := "linux/amd64,windows/amd64"
	if *every {
		targets = allTargets
	}
	out := makeRelease(t, targets)
	t.Run("sums", func(t *testing.T) { sums(t, out) })
	t.Run("archives", func(t *testing.T) { archives(t, out) })
	t.Run("bill", func(t *testing.T) { billOfMaterials(t, out) })
	t.Run("image", func(t *testing.T) { image(t, out) })
	t.Run("deb", func(t *testing.T) { debianPackage(t, out) })
	t.Run("rpm", func(t *testing.T) { redHatPackage(t, out) })
	t.Run("again", func(t *testing.T) { again(t, out) })
}

// sums checks SHA256SUMS with sha256sum, and that it lists every file.
func sums(t *testing.T, out string) {
	check := exec.Command("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	check.Dir = out
	if said, err := check.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, said)
	}
	list := must.Get(os.ReadFile(filepath.Join(out, "SHA256SUMS")))
	if have, want := strings.Count(string(list), "\n"), len(filesBelow(t, out))-1; have != want {
		t.Errorf("%d sums of %d files", have, want)
	}
}

// archives checks that each archive has one folder with all files that people install.
func archives(t *testing.T, out string) {
	wanted := []string{
		"README.md", "samples/leads.yaml", "completion/leadferry.bash",
		"completion/_leadferry", "completion/leadferry.fish", "completion/leadferry.ps1", "THIRD-PARTY-LICENCES.txt", "bill-of-materials.cdx.json",
	}
	for path, read := range map[string]func(*testing.T, string) map[string][]byte{
		"leadferry_*_linux_amd64.tar.gz": tarGz, "leadferry_*_windows_amd64.zip": zipped,
	} {
		path := one(t, out, path)
		files := read(t, path)
		folder := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".tar.gz"), ".zip") + "/"
		for name := range files {
			if !strings.HasPrefix(name, folder) {
				t.Errorf("%s: %s lies outside of %s", path, name, folder)
			}
		}
		for _, name := range wanted {
			if len(files[folder+name]) == 0 {
				t.Errorf("%s: no %s", path, name)
			}
		}
		for _, work := range []string{"Go, go1", "go.etcd.io/bbolt v", "github.com/urfave/cli/v2 v", "libphonenumber"} {
			if !bytes.Contains(files[folder+"THIRD-PARTY-LICENCES.txt"], []byte(work)) {
				t.Errorf("%s: no licence of %s", path, work)
			}
		}
	}
}

// billOfMaterials checks that the bill names every module that `go version -m` finds in the program.
func billOfMaterials(t *testing.T, out string) {
	text := must.Get(os.ReadFile(one(t, out, "*_linux_amd64.cdx.json")))
	doc := new(cdx.BOM)
	must.Do(cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(doc))
	listed := map[string]bool{}
	for _, c := range *doc.Components {
		listed[c.Name+" "+c.Version] = true
	}
	said := must.Get(exec.Command("go", "version", "-m", linuxProgram(t, out)).Output())
	seen := 0
	for line := range strings.Lines(string(said)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "dep" {
			seen++
			if !listed[words[1]+" "+words[2]] {
				t.Errorf("no component %s %s", words[1], words[2])
			}
		}
	}
	if seen == 0 || seen+1 != len(listed) {
		t.Errorf("%d modules in the program, %d components (Go is one)", seen, len(listed))
	}
}

// image checks that the image is valid, does not run as root, and has the program and certificates.
func image(t *testing.T, out string) {
	index := must.Get(layout.ImageIndexFromPath(one(t, out, "leadferry_*_image")))
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	all := must.Get(index.IndexManifest())
	found := must.Get(index.Image(all.Manifests[0].Digest))
	config := must.Get(found.ConfigFile())
	if config.OS != "linux" || config.Architecture != "amd64" || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/usr/bin/leadferry"}) {
		t.Errorf("config %+v", config)
	}
	content := mutate.Extract(found)
	defer content.Close()
	files := untar(t, content)
	for name, begins := range map[string]string{"usr/bin/leadferry": "\x7fELF", "etc/ssl/certs/ca-certificates.crt": "-----BEGIN CERTIFICATE-----"} {
		if !bytes.HasPrefix(files[name], []byte(begins)) {
			t.Errorf("%s begins with %q", name, files[name][:min(10, len(files[name]))])
		}
	}
}

// TestManifests checks that each manifest can be read and names exactly the archives of its system, with their hashes.
// Archives of one line replace real ones, so that every system has some.
func TestManifests(t *testing.T) {
	r := release{out: t.TempDir(), version: "1.2.3", url: "https://downloads.example.com/leadferry", when: time.Unix(1e9, 0).UTC()}
	var made []product
	for _, target := range parseTargets(allTargets) {
		archive := r.create(r.name(target), func(to io.Writer) { fmt.Fprintln(to, target) })
		made = append(made, product{target: target, archive: archive})
	}
	r.writeManifests(made)
	for _, m := range managers {
		text := must.Get(os.ReadFile(filepath.Join(r.out, m[2])))
		var read map[string]any
		var err error
		switch filepath.Ext(m[2]) {
		case ".yaml":
			err = yaml.UnmarshalStrict(text, &read)
		case ".json":
			err = json.Unmarshal(text, &read)
		}
		if err != nil {
			t.Errorf("%s: %v", m[2], err)
		}
		if !bytes.Contains(text, []byte("1.2.3")) {
			t.Errorf("%s does not name the version", m[2])
		}
		if m[1] == "winget.yaml" || m[1] == "winget.locale.yaml" {
			continue
		}
		for _, p := range made {
			named := bytes.Contains(text, []byte("/"+filepath.Base(p.archive))) &&
				bytes.Contains(bytes.ToLower(text), []byte(sumOf(p.archive)))
			if named != (p.os == m[0]) {
				t.Errorf("%s names %s with its hash: %t", m[2], filepath.Base(p.archive), named)
			}
		}
	}
}

// debianPackage installs the package below a new folder and runs the installed program.
func debianPackage(t *testing.T, out string) {
	if _, err := exec.LookPath("dpkg"); err != nil || os.Getuid() != 0 || runtime.GOARCH != "amd64" {
		t.Skip("needs dpkg, root and amd64")
	}
	root := t.TempDir()
	for _, name := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates"} {
		must.Do(os.MkdirAll(filepath.Join(root, name), 0o755))
	}
	must.Do(os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644))
	said, err := exec.Command("dpkg", "--root="+root, "--log=/dev/null", "--install", one(t, out, "leadferry_*_amd64.deb")).CombinedOutput()
	if err != nil {
		t.Fatalf("dpkg: %v\n%s", err, said)
	}
	for _, name := range []string{
		"bash-completion/completions/leadferry", "zsh/vendor-completions/_leadferry",
		"fish/vendor_completions.d/leadferry.fish", "doc/leadferry/copyright", "doc/leadferry/README.md",
	} {
		if _, err := os.Stat(filepath.Join(root, "usr/share", name)); err != nil {
			t.Error(err)
		}
	}
	said, err = exec.Command(filepath.Join(root, "usr/bin/leadferry"), "--version").CombinedOutput()
	if err != nil || !regexp.MustCompile(`^leadferry version \S+ commit [0-9a-f]{40} go1\.`).Match(said) {
		t.Errorf("leadferry --version: %v: %s", err, said)
	}
	samples := filepath.Join(root, "usr/share/doc/leadferry/samples")
	use := exec.Command(filepath.Join(root, "usr/bin/leadferry"), "import", "--sandbox", "-m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, "leads.csv"))
	use.Dir = t.TempDir()
	use.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	if said, err := use.CombinedOutput(); err != nil || !bytes.Contains(said, []byte("200")) {
		t.Errorf("the installed program: %v\n%s", err, said)
	}
}

// redHatPackage reads the package with rpm.
func redHatPackage(t *testing.T, out string) {
	rpm, err := exec.LookPath("rpm")
	if err != nil {
		t.Skip("needs rpm")
	}
	said, err := exec.Command(rpm, "--query", "--package", "--list", "--info", one(t, out, "leadferry-*.x86_64.rpm")).CombinedOutput()
	if err != nil {
		t.Fatalf("rpm: %v\n%s", err, said)
	}
	for _, name := range []string{"/usr/bin/leadferry", "/usr/share/zsh/site-functions/_leadferry", "Build Host  : localhost"} {
		if !bytes.Contains(said, []byte(name)) {
			t.Errorf("rpm does not say %s:\n%s", name, said)
		}
	}
}

// again checks that another clone in another folder gives the same bytes.
func again(t *testing.T, out string) {
	if *cold {
		t.Setenv("GOCACHE", t.TempDir())
	}
	second := makeRelease(t, "linux/amd64")
	same := 0
	for name, sum := range filesBelow(t, second) {
		if strings.Contains(name, "_image/") || name == "SHA256SUMS" {
			continue // these differ: the first release is for more systems
		}
		if sumOf(filepath.Join(out, name)) != sum {
			t.Errorf("%s is another file the second time", name)
		}
		same++
	}
	if same < 4 {
		t.Errorf("%d files compared: an archive, two packages and a bill are wanted", same)
	}
}

// filesBelow returns the hash of each file below a folder.
func filesBelow(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		all[name] = sumOf(path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// one returns the only path that matches a pattern.
func one(t *testing.T, folder, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d files %s: %v (%v)", len(found), pattern, found, err)
	}
	return found[0]
}

// linuxProgram extracts the program for Linux from its archive and returns its path.
func linuxProgram(t *testing.T, out string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), program)
	for name, data := range tarGz(t, one(t, out, "leadferry_*_linux_amd64.tar.gz")) {
		if strings.HasSuffix(name, "/"+program) {
			must.Do(os.WriteFile(path, data, 0o755))
		}
	}
	return path
}

func tarGz(t *testing.T, path string) map[string][]byte {
	t.Helper()
	f := must.Get(os.Open(path))
	defer f.Close()
	unpacked := must.Get(gzip.NewReader(f))
	return untar(t, unpacked)
}

func untar(t *testing.T, from io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for in := tar.NewReader(from); ; {
		head, err := in.Next()
		if err == io.EOF {
			return files
		}
		must.Do(err)
		files[head.Name] = must.Get(io.ReadAll(in))
	}
}

func zipped(t *testing.T, path string) map[string][]byte {
	t.Helper()
	in := must.Get(zip.OpenReader(path))
	defer in.Close()
	files := map[string][]byte{}
	for _, f := range in.File {
		r := must.Get(f.Open())
		files[f.Name] = must.Get(io.ReadAll(r))
		r.Close()
	}
	return files
}
