package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/leadapi/sandbox"
)

// asked runs a command on a terminal, types what a person answers to its question, or
// interrupts it, and returns its exit code and what the terminal showed.
func (d *desk) asked(typed string, args ...string) (code int, shown string) {
	d.t.Helper()
	person, tty := terminalPair(d.t)
	told := &listener{}
	go told.listen(person)
	ended := make(chan int)
	go func() {
		ended <- Run(context.Background(), d.interrupt, append([]string{"leadferry"}, args...), Streams{In: tty, Out: tty, Err: tty})
	}()
	if typed != "" {
		for deadline := time.Now().Add(20 * time.Second); !strings.Contains(told.heard(), "[y/N] "); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				d.t.Fatalf("no question:\n%s", told.heard())
			}
		}
		if typed == "interrupt" {
			close(d.interrupt)
		} else {
			io.WriteString(person, typed)
		}
	}
	code = <-ended
	if typed == "interrupt" { // the reader of the terminal ends with the process: let it end here
		io.WriteString(person, "\n")
	}
	io.WriteString(tty, "\x04end\n")
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(told.heard(), "\x04end"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			d.t.Fatal("the terminal shows nothing")
		}
	}
	shown, _, _ = strings.Cut(told.heard(), "\x04end")
	return code, shown
}

// inDoubt makes a checkpoint with rows in doubt and returns its path.
func (d *desk) inDoubt(entries ...checkpoint.Entry) string {
	d.t.Helper()
	path := filepath.Join(d.dir, "c.db")
	db, err := bolt.Open(path, checkpoint.Target{LeadsURL: "https://leads.example.com", TrunkID: "t"}, bolt.Options{AnyPlace: true})
	if err != nil {
		d.t.Fatal(err)
	}
	_, err = checkpoint.Adopt(d.t.Context(), db, checkpoint.ListOf(entries...))
	if closed := db.Close(); err != nil || closed != nil {
		d.t.Fatal(err, closed)
	}
	return path
}

// All rows at once are freed by a yes alone. faults 127
func TestNoneCreatedAsks(t *testing.T) {
	for typed, want := range map[string]struct{ code, doubts int }{"y\n": {0, 0}, "n\n": {2, 2}, "\n": {2, 2}, "interrupt": {130, 2}} {
		t.Run(fmt.Sprintf("%q", typed), func(t *testing.T) {
			d := newDesk(t, "")
			path := d.inDoubt(checkpoint.Entry{Key: "a", State: checkpoint.InDoubt}, checkpoint.Entry{Key: "b", State: checkpoint.InDoubt})
			code, shown := d.asked(typed, "checkpoint", "resolve", "--none-created", "--checkpoint", path)
			if code != want.code || !strings.Contains(shown, "2 rows in doubt") {
				t.Errorf("exit %d\n%s", code, shown)
			}
			s, err := bolt.ReadStatus(path, checkpoint.Target{}, bolt.Options{AnyPlace: true})
			if err != nil || s.Keys[checkpoint.InDoubt] != want.doubts {
				t.Errorf("%d in doubt, %v", s.Keys[checkpoint.InDoubt], err)
			}
		})
	}
}

// A no at the question leaves no checkpoint behind, an interruption neither. faults 136
func TestANoLeavesNoCheckpoint(t *testing.T) {
	for _, typed := range []string{"n\n", "interrupt"} {
		_, address := startSandbox(t, "")
		d := newDesk(t, address)
		for name, value := range map[string]string{
			"LEADS_URL": address, "TRUNK_ID": sandbox.TrunkID, "CLIENT_ID": sandbox.ClientID, "CLIENT_SECRET": sandbox.ClientSecret,
		} {
			t.Setenv("LEADFERRY_"+name, value)
		}
		samples := filepath.Join("..", "..", "samples")
		path := filepath.Join(d.dir, "c.db")
		if code, shown := d.asked(typed, "import", "--out", "none", "--limit", "3", "--checkpoint", path,
			"-m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, "leads.csv")); code == 0 {
			t.Fatalf("%q: exit %d\n%s", typed, code, shown)
		}
		if files, _ := filepath.Glob(path + "*"); len(files) > 0 {
			t.Errorf("%q left %q", typed, files)
		}
	}
}

// What texts from outside hold, a terminal does not obey. faults 118, 134
func TestATerminalObeysNothingOfACheckpoint(t *testing.T) {
	const evil = "\x1b[2Jevil\u202e"
	d := newDesk(t, "")
	path := d.inDoubt(
		checkpoint.Entry{Key: "a", LeadID: "lead-1", Status: evil, Organization: evil, Location: evil, ExternalID: evil},
		checkpoint.Entry{Key: "b", State: checkpoint.InDoubt, File: evil, Run: evil, WantLink: evil, Locator: evil},
	)
	for _, args := range [][]string{{"status"}, {"export"}, {"export", "--format", "jsonl"}, {"history", "a"}, {"history", "b"}, {"check"}} {
		code, shown := d.asked("", append(append([]string{"checkpoint"}, args...), "--checkpoint", path)...)
		if code != 0 || strings.ContainsAny(shown, "\x1b\u202e") || !strings.Contains(shown, "evil") && args[0] != "check" && args[0] != "status" {
			t.Errorf("%q: exit %d\n%q", args, code, shown)
		}
	}
	out := d.file("out.csv")
	if code := Run(context.Background(), d.interrupt, []string{"leadferry", "checkpoint", "export", "--checkpoint", path}, Streams{In: d.file("in"), Out: out, Err: d.file("err")}); code != 0 {
		t.Error(code)
	}
	if b, err := os.ReadFile(out.Name()); err != nil || !strings.Contains(string(b), ","+evil+",") {
		t.Errorf("a file keeps them: %q, %v", b, err)
	}
}
