package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

// listener keeps what a terminal shows.
type listener struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *listener) listen(person io.Reader) {
	b := make([]byte, 4096)
	for {
		n, err := person.Read(b)
		l.mu.Lock()
		l.text.Write(b[:n])
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (l *listener) heard() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// sentence is what was heard, without the ends of lines.
func (l *listener) sentence() string { return strings.ReplaceAll(l.heard(), "\r\n", " ") }

// waitFor waits until a text was heard so often, and fails when it is not, or oftener. Ends of
// lines are blanks.
func (l *listener) waitFor(t *testing.T, text string, times int) {
	t.Helper()
	for range 6000 {
		if strings.Count(l.sentence(), text) >= times {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := strings.Count(l.sentence(), text); n != times {
		t.Errorf("%q was heard %d times, want %d:\n%s", text, n, times, l.heard())
	}
}

// A checkpoint is missing though a run folder tells of it: the question says so, and a no
// leaves everything as it was.
func TestImportAsksBeforeItBeginsAnew(t *testing.T) {
	server, address := startSandbox(t, "")
	d := newDesk(t, address)
	for name, value := range map[string]string{
		"LEADS_URL": address, "TRUNK_ID": sandbox.TrunkID, "CLIENT_ID": sandbox.ClientID, "CLIENT_SECRET": sandbox.ClientSecret,
	} {
		t.Setenv("LEADFERRY_"+name, value)
	}
	samples, err := filepath.Abs(filepath.Join("..", "..", "samples"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	person, tty := terminalPair(t)
	told := &listener{}
	go told.listen(person)
	run := func(more ...string) int {
		args := append([]string{"leadferry", "import", "-m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, "leads.csv"), "--limit", "3"}, more...)
		return Run(context.Background(), d.interrupt, args, Streams{In: tty, Out: d.file("out"), Err: tty})
	}
	if code := run("--yes"); code != 0 {
		t.Fatalf("exit %d:\n%s", code, told.heard())
	}
	found, err := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "leadferry", "*.db"))
	if err != nil || len(found) != 1 {
		t.Fatalf("checkpoint: %q, %v", found, err)
	}
	for _, path := range found {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if code := run("--yes"); code != 4 {
		t.Errorf("exit %d with --yes, want 4:\n%s", code, told.heard())
	}
	sent := len(server.Counts())
	for _, no := range []string{"n\n", "\n"} { // the second question is asked, too: nothing was begun
		io.WriteString(person, no)
		if code := run(); code != 4 {
			t.Errorf("exit %d, want 4:\n%s", code, told.heard())
		}
	}
	told.waitFor(t, "would be made a second time. Make leads with this checkpoint?", 2)
	if len(server.Counts()) != sent {
		t.Errorf("requests: %v", server.Counts())
	}
}

// A person is asked before leads are made for good; nothing leaves before the answer is yes.
func TestImportAsksFirst(t *testing.T) {
	for typed, want := range map[string]int{"y\n": 0, "yes\n": 0, "n\n": 2, "\n": 2, "interrupt": 130} {
		t.Run(fmt.Sprintf("%q", typed), func(t *testing.T) {
			server, address := startSandbox(t, "")
			d := newDesk(t, address)
			for name, value := range map[string]string{
				"LEADS_URL": address, "TRUNK_ID": sandbox.TrunkID, "CLIENT_ID": sandbox.ClientID, "CLIENT_SECRET": sandbox.ClientSecret,
			} {
				t.Setenv("LEADFERRY_"+name, value)
			}
			person, tty := terminalPair(t)
			told := &listener{}
			go told.listen(person)
			samples := filepath.Join("..", "..", "samples")
			out := d.file("out")
			code := make(chan int)
			go func() {
				args := []string{"leadferry", "import", "--out", "none", "--limit", "3", "-m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, "leads.csv")}
				code <- Run(context.Background(), d.interrupt, args, Streams{In: tty, Out: out, Err: tty})
			}()
			for deadline := time.Now().Add(20 * time.Second); !strings.Contains(told.heard(), "Go on? [y/N] "); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("no question:\n%s", told.heard())
				}
			}
			if text := told.sentence(); !strings.Contains(text, "up to 3 leads for trunk "+sandbox.TrunkID) || len(server.Counts()) > 0 {
				t.Errorf("%v requests before the answer to:\n%s", server.Counts(), text)
			}
			if typed == "interrupt" {
				close(d.interrupt)
			} else {
				io.WriteString(person, typed)
			}
			if got := <-code; got != want {
				t.Errorf("exit %d, want %d\n%s", got, want, told.heard())
			}
			if sent := len(server.Counts()) > 0; sent != (want == 0) {
				t.Errorf("requests: %v", server.Counts())
			}
			if typed == "interrupt" { // the reader of the terminal ends with the process: let it end here
				io.WriteString(person, "\n")
			}
			if text := told.heard(); want == 130 && strings.Contains(text, "hint:") {
				t.Errorf("an interruption is no mistake:\n%s", text)
			}
		})
	}
}
