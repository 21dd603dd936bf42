package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"leadferry/checkpoint"
)

// underStrace runs [TestWorkUnderStrace] in a process under strace and returns what it printed.
func underStrace(t *testing.T, path string, options ...string) string {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed, so no disk fault can be injected")
	}
	args := append(options, os.Args[0], "-test.run=^TestWorkUnderStrace$")
	c := exec.CommandContext(t.Context(), strace, args...)
	c.Env = append(os.Environ(), "CHECKPOINT_WORK="+path)
	var said, noise bytes.Buffer
	c.Stdout, c.Stderr = &said, &noise
	if err := c.Run(); err != nil && !strings.Contains(said.String(), "begin") {
		t.Skipf("strace does not work here: %v: %s", err, noise.String())
	}
	if strings.Contains(noise.String(), "goroutine ") {
		t.Fatalf("stack trace:\n%s", noise.String())
	}
	return said.String()
}

// TestWorkUnderStrace is the worker of other tests. It does what runs do, on one thread, so the Nth system call is the
// same each time, and prints what is durable. After an error it tries to go on.
func TestWorkUnderStrace(t *testing.T) {
	path := os.Getenv("CHECKPOINT_WORK")
	if path == "" {
		t.Skip("runs only inside other tests")
	}
	runtime.LockOSThread()
	say := func(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }
	say("begin")
	d, err := Open(path, target(), Options{gather: generationSize{least: 2, most: 2}})
	if err != nil {
		say("not opened: %v", strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	failed := false
	told := func(done string, err error) {
		switch {
		case err != nil:
			failed = true
		case failed:
			say("went on: %s", done)
		default:
			say("%s", done)
		}
	}
	for i := 4; i >= 0; i-- { // backwards, so that entries gather
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		in, next := intentOf(a, i), intentOf(b, i)
		told("claimed "+a+" "+b, d.Commit(t.Context(), []*checkpoint.Change{{Entry: in}, {Entry: next}}))
		_, err := settle(d, createdEntry(a, "lead-"+a, i))
		told("settled "+a, err)
	}
	told("settled b0", resolve(d, checkpoint.Decision{Key: "b0", LeadID: "lead-b0"}))
	if strings.HasSuffix(path, "forget.db") {
		_, err := checkpoint.Forget(context.Background(), d, []string{"a1"}, false)
		told("forgotten a1", err)
	}
	if err := d.Close(); err == nil {
		say("ended")
	}
}

// durable opens the file that a worker left and compares it with what the worker had printed.
func durable(t *testing.T, path, said string) error {
	t.Helper()
	d, err := Open(path, target(), Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer d.Close()
	want := make(map[string]checkpoint.State)
	for line := range strings.Lines(said) {
		words := strings.Fields(line)
		for _, key := range words[min(1, len(words)):] {
			switch words[0] {
			case "claimed":
				want[key] = checkpoint.InDoubt
			case "settled":
				want[key] = checkpoint.Created
			case "forgotten":
				want[key] = checkpoint.Forgotten
			}
		}
	}
	for key, state := range want {
		got := lookup(t, d, key)
		fits := got.State == state || state == checkpoint.InDoubt && got.State == checkpoint.Created || key == "a1" && got.State == checkpoint.Forgotten
		if !fits || got.State == checkpoint.Created && got.LeadID != "lead-"+key {
			t.Errorf("%s is %v (%s), but %v was durable", key, got.State, got.LeadID, state)
		}
	}
	return nil
}

// If the Nth write, sync, cut, link or rename fails, nothing goes on, and all that was reported is there when the disk
// works again. N has up to three values, with -thorough all. faults 13, 31, m21, m22
func TestDiskFaultStopsEverythingAndLosesNothing(t *testing.T) {
	skipIfShort(t)
	most := 3
	if *thorough {
		most = 1000
	}
	for _, name := range []string{"work.db", "forget.db"} {
		for _, call := range []string{"pwrite64", "fdatasync", "fsync", "ftruncate", "linkat", "renameat"} {
			t.Run(name+" "+call, func(t *testing.T) {
				fired := 0
				for n := 1; fired < most; n += 1 + fired*fired*boolInt(!*thorough) {
					path := strings.TrimSuffix(newPath(t), "c.db") + name
					fault := []string{"EIO", "ENOSPC", "EDQUOT"}[n%3]
					said := underStrace(t, path, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+call,
						"-e", fmt.Sprintf("inject=%s:error=%s:when=%d", call, fault, n))
					if strings.Contains(said, "went on") {
						t.Errorf("call %d: %s", n, said)
					}
					clean := strings.Contains(said, "ended")
					err := durable(t, path, said)
					switch {
					case errors.Is(err, checkpoint.ErrMissing) && strings.Contains(said, "not opened"):
					case err != nil:
						t.Errorf("call %d, then: %v\n%s", n, err, said)
					default:
						opened(t, path, Options{}).Close()
					}
					if clean && (call != "linkat" || err == nil) {
						break
					}
					fired++
				}
				if t.Logf("%d faults", fired); fired == 0 && call != "renameat" {
					t.Error("no fault was injected")
				}
			})
		}
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A new or compacted file is synced before it gets its name, and its folder is synced afterwards. fault 31
func TestFilesAreSyncedBeforeTheyAreNamed(t *testing.T) {
	skipIfShort(t)
	trace := filepath.Join(t.TempDir(), "trace")
	path := filepath.Join(t.TempDir(), "forget.db")
	underStrace(t, path, "-f", "-qq", "-y", "-o", trace, "-e", "trace=pwrite64,ftruncate,fdatasync,fsync,linkat,renameat")
	var calls []string
	for line := range strings.Lines(string(read(t, trace))) {
		_, call, _ := strings.Cut(line, " ")
		switch name, _, _ := strings.Cut(strings.TrimSpace(call), "("); {
		case name == "linkat" || name == "renameat":
			calls = append(calls, "name")
		case name == "fsync" && strings.Contains(call, "<"+filepath.Dir(path)+">"):
			calls = append(calls, "folder")
		case name == "pwrite64" || name == "ftruncate":
			calls = append(calls, "write")
		case name == "fdatasync" || name == "fsync":
			calls = append(calls, "sync")
		}
	}
	named := 0
	for i, call := range calls {
		if call != "name" {
			continue
		}
		named++
		if i == 0 || calls[i-1] != "sync" || i+1 == len(calls) || calls[i+1] != "folder" {
			t.Errorf("around a new name: %v", calls[max(0, i-2):min(len(calls), i+2)])
		}
	}
	if named != 2 {
		t.Errorf("%d new names, want 2, of the new and of the compacted file: %v", named, calls)
	}
	intact(t, path)
}
