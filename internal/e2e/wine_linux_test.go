package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	bits "encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// wineKills above 0 runs the tests of the Windows build, which take minutes. .ci/run has -wine 3, the long suite 100.
var wineKills = flag.Int("wine", 0, "how many times TestWindowsKill kills an import under wine; 0 skips all tests of the Windows build")

// wineMachine is a wine prefix with what Go programs need.
type wineMachine struct {
	wine, dir string
	env       []string
	overlay   string // for go build
	built     sync.Map
}

// windows makes the machine of all tests when the first of them needs it.
var windows = sync.OnceValues(newWine)

func onWindows(t *testing.T) *wineMachine {
	t.Helper()
	if *wineKills == 0 {
		t.Skip("-wine is not given")
	}
	installed(t, "wine")
	m, err := windows()
	must.Do(t, err)
	return m
}

func newWine() (*wineMachine, error) {
	wine, err := exec.LookPath("wine")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(os.Getenv("LEADFERRY_TEST_BIN"), "wine") // is removed with the program
	prefix := filepath.Join(dir, "prefix")
	m := &wineMachine{wine: wine, dir: dir, env: append(os.Environ(), "WINEPREFIX="+prefix, "WINEDEBUG=-all", "WINEDLLOVERRIDES=bcryptprimitives=n;mscoree,mshtml=")}
	if err := os.MkdirAll(prefix, 0o700); err != nil {
		return nil, err
	}
	boot := exec.Command(wine, "wineboot", "-i")
	boot.Env = m.env
	if err := boot.Run(); err != nil {
		return nil, fmt.Errorf("make a machine: %w", err)
	}
	if err := os.WriteFile(filepath.Join(prefix, "drive_c", "windows", "system32", "bcryptprimitives.dll"), forwarder("bcryptprimitives.dll", "ProcessPrng", "advapi32.SystemFunction036"), 0o600); err != nil {
		return nil, err
	}
	return m, cmp.Or(m.mapDrive(), m.turnOn(), m.removeAsOfOld())
}

// turnOn starts the machine. It stays on for 60 s without a program. Otherwise the next program would start it, and a
// kill at that moment would leave a half-started machine that keeps the program's output open.
func (m *wineMachine) turnOn() error {
	for _, words := range [][]string{{"wineserver", "-p60"}, {m.wine, "cmd", "/c", "exit"}} {
		c := exec.Command(words[0], words[1:]...)
		c.Env = m.env
		if err := c.Run(); err != nil {
			return fmt.Errorf("%q: %w", words, err)
		}
	}
	return nil
}

// mappedDrive is the folder behind Q:, a drive of another machine.
const mappedDrive = "q"

// mapDrive makes Q: while nothing else runs, since wine reads the kinds of drives when it starts.
func (m *wineMachine) mapDrive() error {
	folder := filepath.Join(m.dir, mappedDrive)
	err := cmp.Or(os.Mkdir(folder, 0o700), os.Symlink(folder, filepath.Join(m.dir, "prefix", "dosdevices", "q:")))
	for _, words := range [][]string{
		{m.wine, "reg", "add", `HKLM\Software\Wine\Drives`, "/v", "q:", "/d", "network", "/f"},
		{"wineserver", "-k"},
		{"wineserver", "-w"},
	} {
		c := exec.Command(words[0], words[1:]...)
		c.Env = m.env
		if out, failed := c.CombinedOutput(); failed != nil && words[1] != "-k" { // wineserver may have ended by itself
			err = cmp.Or(err, fmt.Errorf("%q: %w\n%s", words, failed, out))
		}
	}
	return err
}

// asOfOld makes a program remove files as on older Windows. Go tries the newer way first, which wine refuses with an
// error that Go does not know.
const asOfOld = `package %s

import _ "unsafe"

//go:linkname old internal/syscall/windows.TestDeleteatFallback
var old bool

var _ = func() bool { old = true; return old }()
`

// removeAsOfOld adds asOfOld to the program and to the tests of each room.
func (m *wineMachine) removeAsOfOld() error {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	replace := map[string]string{}
	for _, words := range append(rooms, []string{"main"}) {
		name, file := filepath.Base(words[0]), filepath.Join(root, words[0], "old_test.go")
		if name == "main" {
			file = filepath.Join(root, "old.go")
		}
		replace[file] = filepath.Join(m.dir, name+".go")
		err = cmp.Or(err, os.WriteFile(replace[file], fmt.Appendf(nil, asOfOld, name), 0o600))
	}
	text, failed := json.Marshal(map[string]any{"Replace": replace})
	m.overlay = filepath.Join(m.dir, "overlay.json")
	return cmp.Or(err, failed, os.WriteFile(m.overlay, text, 0o600))
}

// forwarder makes a 64-bit library that forwards one name to another library. Only this name is missing in wine.
func forwarder(library, name, target string) []byte {
	const (
		aligned, image, headers = 0x1000, 0x2000, 0x400
		directory               = 40
	)
	section := make([]byte, 0x200)
	put := func(at int, v ...uint32) {
		for i, x := range v {
			bits.LittleEndian.PutUint32(section[at+4*i:], x)
		}
	}
	// The directory of exports, then addresses, names, ordinals and texts.
	const addresses, names, ordinals, texts = directory, directory + 4, directory + 8, directory + 10
	at, place := texts, map[string]uint32{}
	for _, text := range []string{library, name, target} {
		place[text] = uint32(aligned + at)
		at += copy(section[at:], text+"\x00")
	}
	put(0, 0, 0, 0, place[library], 1, 1, 1, aligned+addresses, aligned+names, aligned+ordinals)
	put(addresses, place[target])
	put(names, place[name])

	var b bytes.Buffer
	w := func(v ...any) {
		for _, x := range v {
			_ = bits.Write(&b, bits.LittleEndian, x) // into memory
		}
	}
	w([]byte("MZ"), make([]byte, 58), uint32(64), []byte("PE\x00\x00"))
	w(uint16(0x8664), uint16(1), uint32(0), uint32(0), uint32(0), uint16(240), uint16(0x2022)) // one section; kind: library
	w(uint16(0x20b), uint16(0), uint32(0), uint32(len(section)), uint32(0), uint32(0), uint32(0))
	w(uint64(0x180000000), uint32(aligned), uint32(0x200), uint16(6), uint16(0), uint16(0), uint16(0), uint16(6), uint16(0), uint32(0))
	w(uint32(image), uint32(headers), uint32(0), uint16(3), uint16(0x100)) // console; no addresses to move
	w(uint64(1<<20), uint64(1<<12), uint64(1<<20), uint64(1<<12), uint32(0), uint32(16))
	w(uint32(aligned), uint32(at), make([]byte, 15*8))
	w([]byte(".edata\x00\x00"), uint32(len(section)), uint32(aligned), uint32(len(section)), uint32(headers), make([]byte, 12), uint32(0x40000040))
	w(make([]byte, headers-b.Len()), section)
	return b.Bytes()
}

// build builds a program or test binary of a package for Windows, once.
func (m *wineMachine) build(t *testing.T, words ...string) string {
	t.Helper()
	made, _ := m.built.LoadOrStore(strings.Join(words, " "), sync.OnceValue(func() string { return m.buildNow(t, words...) }))
	to := made.(func() string)()
	if to == "" {
		t.Fatal("not built")
	}
	return to
}

// buildNow builds it. After an error it fails the test and returns "".
func (m *wineMachine) buildNow(t *testing.T, words ...string) string {
	t.Helper()
	to := filepath.Join(m.dir, strings.ReplaceAll(strings.Join(words, "-"), "/", "_")+".exe")
	c := exec.Command("go", append([]string{words[0], "-overlay", m.overlay, "-ldflags=-w -checklinkname=0", "-o", to}, words[1:]...)...)
	c.Env = append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0")
	c.Dir = root(t)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", words, err, out)
		return ""
	}
	return to
}

// newWindowsWorld makes a world that runs the Windows build.
func newWindowsWorld(t *testing.T, o sandbox.Options) *world {
	t.Helper()
	m := onWindows(t)
	w := newWorld(t, o)
	w.program = []string{m.wine, m.build(t, "build", "leadferry")}
	w.env = append(m.env, w.env...)
	w.env = append(w.env, "XDG_STATE_HOME=Z:"+filepath.Join(w.dir, "state"), "LEADFERRY_ANY_FILESYSTEM=0")
	return w
}

// TestWindowsKill kills imports of the Windows build at random moments, in chains, as TestKill does.
// Invariants 1, 2 and 3; faults 1, 3
func TestWindowsKill(t *testing.T) {
	const inFlight, rows = 8, 300
	onWindows(t)
	t.Parallel()
	f := figures{concurrency: inFlight, bound: 2 * inFlight}
	for f.kills < *wineKills && t.Run("chain", func(t *testing.T) {
		w := newWindowsWorld(t, sandbox.Options{Latency: 20 * time.Millisecond})
		w.leads(rows)
		for n, doubts := 1, 0; n <= chained && f.kills < *wineKills && !w.killWithin(time.Second, w.importing(inFlight)...); n++ {
			now := len(w.exported("in_doubt"))
			f.killed(n, now-doubts)
			doubts = now
		}
		w.settle()
		w.complete(rows)
	}) {
		f.chains++
	}
	f.judge(t)
}

func (w *world) importing(inFlight int) []string {
	return words("import -m leads.yaml leads.csv -c", itoa(inFlight), "--out", "none", "--max-in-doubt", "0")
}

// TestWindowsQuickstart runs README's first import twice, and a sync and a reconciliation with a page.
func TestWindowsQuickstart(t *testing.T) {
	w := newWindowsWorld(t, sandbox.Options{})
	t.Parallel()
	samples := filepath.Join(root(t), "samples")
	for _, want := range []string{`\b200  created\b`, `\b200  unchanged\b`} {
		out := w.must(0, "import --sandbox -m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, "leads.csv"))
		if !regexp.MustCompile(want).MatchString(out) || strings.Contains(out, "warning") {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	for _, command := range []string{"sync", "reconcile"} {
		out := w.must(1, command, "--sandbox", "--web", "-m", filepath.Join(samples, "crm.yaml"), filepath.Join(samples, "crm-export.csv"))
		if !strings.Contains(out, "page: http://127.0.0.1:") {
			t.Errorf("no page of %s in\n%s", command, out)
		}
	}
	w.must(0, "checkpoint forget --sandbox L-104800")
	w.must(0, "checkpoint check --sandbox")
}

// TestWindowsPages follows the page of an import, makes the page of its folder again, and opens the sandbox's page.
func TestWindowsPages(t *testing.T) {
	w := newWindowsWorld(t, sandbox.Options{})
	t.Parallel()
	watchesItsPage(t, w)
	if out := w.must(0, "report run"); strings.TrimSpace(out) != `run\report.html` {
		t.Error(out)
	}
	if out := w.must(0, "report", `.\run\summary.json`, "-o", `new page.html`); strings.TrimSpace(out) != "new page.html" {
		t.Error(out)
	}
	if page := w.read("new page.html"); page != w.read("run/report.html") || !strings.Contains(page, "Import complete: 40 rows") {
		t.Error("report made another page than the run")
	}
	out := w.must(2, "report none")
	if !strings.Contains(out, "none is not there") {
		t.Error(out)
	}
	c := w.command("sandbox --addr 127.0.0.1:0 --web")
	said, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	must.Do(t, err)
	visit(t, bufio.NewScanner(said))
	must.Do(t, c.Process.Kill())
	_ = c.Wait() // killed above
}

// A checkpoint on a network drive is refused, and no file is made there.
func TestWindowsRefusesNetworkDrives(t *testing.T) {
	w := newWindowsWorld(t, sandbox.Options{})
	t.Parallel()
	w.leads(1)
	for _, more := range [][]string{nil, {"--sandbox"}} {
		words := append(words("import -m leads.yaml leads.csv --checkpoint", `Q:\c.db`), more...)
		if out := w.must(4, words...); !strings.Contains(out, "is on a network drive") {
			t.Errorf("%q: %s", more, out)
		}
	}
	if left, err := os.ReadDir(filepath.Join(onWindows(t).dir, mappedDrive)); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Ctrl-C on a console ends an import in order.
func TestWindowsControlC(t *testing.T) {
	w := newWindowsWorld(t, sandbox.Options{Latency: 20 * time.Millisecond})
	t.Parallel()
	const rows = 300
	w.leads(rows)
	words := append(slices.Clone(w.program), append(w.importing(8), "--yes")...)
	c := exec.Command(installed(t, "script"), "-qec", "'"+strings.Join(words, "' '")+"'", "/dev/null")
	c.Dir, c.Env = w.dir, append(w.env, "TERM=xterm")
	keys, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	must.Do(t, err)
	eventually(t, "a lead", func() bool { return len(w.byRef()) > 0 })
	if _, err := keys.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // its exit code is checked below
	if code, made := c.ProcessState.ExitCode(), len(w.byRef()); code != 130 || made == rows {
		t.Errorf("exit code %d, %d of %d leads made", code, made, rows)
	}
	if doubt := w.exported("in_doubt"); len(doubt) > 0 {
		t.Errorf("%d in doubt", len(doubt))
	}
	w.complete(rows)
}

// rooms are the rooms whose own tests run under wine, with flags that choose the tests which can.
var rooms = [][]string{
	{"internal/disk"},
	{"checkpoint"},
	{"internal/config", "-test.skip", "^TestProfileIsAdded"},                  // modes and links
	{"internal/cli", "-test.run", "^Test.*(Window|Line|Flag|Layout|Columns)"}, // the others need a shell, modes, or folders of other systems
	{"internal/cli/external"},
	{"internal/cli/inputs"},
	{"internal/cli/signals"},
	{"internal/cli/terminal"},
	// Tests of damage write into a mapped file, or leave a file mapped. Windows allows neither.
	{"checkpoint/bolt", "-test.run", "^Test(AFile|AWaiting|Drop|NoRunB|Nobody|SecondOp|OpenIn|Wait|Who|Status|Unblocked|Forg|Folds|IncompleteC|KillW|Older|LostC|AnotherC|Removed|Beginning|NotesH|FirstNew|ReadersShare)", "-test.skip", "RemovedWhile|WithoutClaims"},
	{"importer/source", few, "-test.run", "^Test", "-test.skip", "^TestChanges"}, // no open file is replaced there
	// The others need /dev/full, modes, paths with slashes, or to remove an open file.
	{"importer/report", few, "-test.run", "^Test(AResult|FilesArePartial|NoRejects|OnlyWanted|Places|Prune|Old|TwoRows|Results|Rejects|TheNextRunRec|Quote|Problem$)", "-test.skip", "CanBeReadBack"},
}

// few makes rapid check a property five times only.
const few = "-rapid.checks=5"

func TestWindowsRunsTheTestsOfRooms(t *testing.T) {
	m := onWindows(t)
	t.Parallel()
	for _, words := range rooms {
		t.Run(words[0], func(t *testing.T) {
			t.Parallel()
			tests := append([]string{m.build(t, "test", "-c", "./"+words[0])}, words[1:]...)
			// Two tries: on a busy machine, wine sometimes loses a program or a lock.
			for tries := 1; ; tries++ {
				c := exec.Command(m.wine, tests...)
				c.Dir, c.Env = filepath.Join(root(t), words[0]), m.env
				out, err := c.CombinedOutput()
				if err == nil && bytes.Contains(out, []byte("PASS")) && !bytes.Contains(out, []byte("no tests to run")) {
					return
				}
				t.Logf("try %d: %v\n%s", tries, err, out)
				if tries == 2 {
					t.FailNow()
				}
			}
		})
	}
}
