package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/checkpoint/storetest"
	"leadferry/internal/testsupport/must"
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

// sentence is what was heard, with blanks for line ends.
func (l *listener) sentence() string { return strings.ReplaceAll(l.heard(), "\r\n", " ") }

// waitFor waits until a text was shown so many times. It fails the test if it was not, or more often.
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

// asked runs a command on a terminal, types what a person answers to its question, or interrupts it, and returns its
// exit code and what the terminal showed.
func (d *desk) asked(typed string, args ...string) (code int, shown string) {
	d.t.Helper()
	prompt := "[y/N] "
	if typed == "" {
		prompt = ""
	}
	code, shown, _ = d.prompted(prompt, typed, args...)
	return code, shown
}

// prompted is like asked, for any prompt ("": none). It also returns the terminal. It types passwords without echo.
func (d *desk) prompted(prompt, typed string, args ...string) (code int, shown string, tty *os.File) {
	d.t.Helper()
	person, tty := terminalPair(d.t)
	screen := &listener{}
	go screen.listen(person)
	ended := make(chan int)
	go func() {
		ended <- Run(context.Background(), d.interrupt, append([]string{"leadferry"}, args...), Streams{In: tty, Out: tty, Err: tty})
	}()
	until := func(what string, is func() bool) {
		d.t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				d.t.Fatalf("no %s:\n%s", what, screen.heard())
			}
		}
	}
	shows := func(text string) func() bool { return func() bool { return strings.Contains(screen.heard(), text) } }
	until("question", shows(prompt))
	if strings.HasPrefix(prompt, "Password") {
		until("prompt without echo", func() bool { return !echoes(d.t, tty) })
	}
	if typed == "interrupt" {
		close(d.interrupt)
	} else {
		io.WriteString(person, typed)
	}
	code = <-ended
	if typed == "interrupt" { // the reader of the terminal ends with the process: let it end here
		io.WriteString(person, "\n")
	}
	io.WriteString(tty, "\x04end\n")
	until("end", shows("\x04end"))
	shown, _, _ = strings.Cut(screen.heard(), "\x04end")
	return code, shown, tty
}

// inDoubt makes a checkpoint with rows in doubt and returns its path.
func (d *desk) inDoubt(entries ...checkpoint.Entry) string {
	d.t.Helper()
	path := filepath.Join(d.dir, "c.db")
	db, err := bolt.Open(path, checkpoint.Target{LeadsURL: "https://leads.example.com", TrunkID: "t"}, bolt.Options{AnyPlace: true})
	must.Do(d.t, err)
	_, err = storetest.Adopt(db, entries...)
	if closed := db.Close(); err != nil || closed != nil {
		d.t.Fatal(err, closed)
	}
	return path
}

// Only a typed yes frees all rows in doubt at once. faults 127
func TestNoneCreatedAsksFirst(t *testing.T) {
	for typed, want := range map[string]struct{ code, doubts int }{"y\n": {0, 0}, "n\n": {2, 2}, "\n": {2, 2}, "interrupt": {130, 2}} {
		t.Run(fmt.Sprintf("%q", typed), func(t *testing.T) {
			d := newDesk(t, "")
			t.Chdir(d.dir) // the command writes its witness into this folder
			path := d.inDoubt(checkpoint.Entry{Key: "a", State: checkpoint.InDoubt}, checkpoint.Entry{Key: "b", State: checkpoint.InDoubt})
			code, shown := d.asked(typed, "checkpoint", "resolve", "--none-created", "--checkpoint", path)
			if code != want.code || !strings.Contains(shown, "2 rows in doubt") {
				t.Errorf("exit %d\n%s", code, shown)
			}
			db, err := bolt.Open(path, checkpoint.Target{}, bolt.Options{AnyPlace: true, ReadOnly: true})
			must.Do(t, err)
			if n := db.Info().InDoubt; n != want.doubts {
				t.Errorf("%d in doubt", n)
			}
			must.Do(t, db.Close())
		})
	}
}

// accountDesk is a desk whose environment names a sandbox and its account, and an import of three rows.
func accountDesk(t *testing.T) (d *desk, server *sandbox.Server, importing []string) {
	t.Helper()
	server, address := startSandbox(t, "")
	d = newDesk(t, address)
	for name, value := range map[string]string{
		"LEADS_URL": address, "TRUNK_ID": sandbox.TrunkID, "CLIENT_ID": sandbox.ClientID, "CLIENT_SECRET": sandbox.ClientSecret,
	} {
		t.Setenv("LEADFERRY_"+name, value)
	}
	importing = []string{"import", "-m", sampleFile(t, "leads.yaml"), sampleFile(t, "leads.csv"), "--limit", "3", "--checkpoint", filepath.Join(d.dir, "c.db")}
	t.Chdir(t.TempDir())
	return d, server, importing
}

// A person is asked before leads are made for good. Any answer except yes leaves nothing behind. faults 136
func TestImportAsksFirst(t *testing.T) {
	for typed, want := range map[string]int{"y\n": 0, "yes\n": 0, "n\n": 2, "\n": 2, "interrupt": 130} {
		t.Run(fmt.Sprintf("%q", typed), func(t *testing.T) {
			d, server, importing := accountDesk(t)
			code, shown := d.asked(typed, importing...)
			if code != want || !strings.Contains(shown, "up to 3 leads for trunk "+sandbox.TrunkID) {
				t.Errorf("exit %d, want %d\n%s", code, want, shown)
			}
			if sent := len(server.Counts()) > 0; sent != (want == 0) {
				t.Errorf("requests: %v", server.Counts())
			}
			if files, _ := filepath.Glob(filepath.Join(d.dir, "c.db*")); (len(files) > 0) != (want == 0) {
				t.Errorf("left: %q", files)
			}
			if want == 130 && strings.Contains(shown, "hint:") {
				t.Errorf("an interruption has a hint:\n%s", shown)
			}
		})
	}
}

// A run folder knows a checkpoint that is missing. --yes does not answer the question, and a no changes nothing.
func TestImportAsksBeforeItReplacesALostCheckpoint(t *testing.T) {
	d, server, importing := accountDesk(t)
	if code, shown := d.asked("", with(importing, "--yes")...); code != 0 {
		t.Fatalf("exit %d:\n%s", code, shown)
	}
	must.Do(t, os.Remove(filepath.Join(d.dir, "c.db")))
	sent := len(server.Counts())
	if code, shown := d.asked("", with(importing, "--yes")...); code != 4 {
		t.Errorf("exit %d with --yes, want 4:\n%s", code, shown)
	}
	for _, no := range []string{"n\n", "\n"} { // asked again the second time, since nothing was begun
		code, shown := d.asked(no, importing...)
		if code != 4 || !strings.Contains(strings.Join(strings.Fields(shown), " "), "would be made a second time. Make leads with this checkpoint?") {
			t.Errorf("exit %d, want 4:\n%s", code, shown)
		}
	}
	if len(server.Counts()) != sent {
		t.Errorf("requests: %v", server.Counts())
	}
}

// A terminal gets no control characters from a checkpoint; a file gets its texts unchanged. faults 118, 134
func TestTextsOfACheckpointDoNotControlTheTerminal(t *testing.T) {
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
		t.Errorf("a file has other texts: %q, %v", b, err)
	}
}

// terminalPair is a terminal and the end where a person sits.
func terminalPair(t *testing.T) (person, tty *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { person.Close() })
	var unlock, number int32
	control(t, person, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	control(t, person, syscall.TIOCGPTN, unsafe.Pointer(&number))
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { tty.Close() })
	return person, tty
}

func control(t *testing.T, f *os.File, request uintptr, value unsafe.Pointer) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(value)); errno != 0 {
		t.Skipf("no terminals here: %v", errno)
	}
}

func echoes(t *testing.T, tty *os.File) bool {
	t.Helper()
	var state syscall.Termios
	control(t, tty, syscall.TCGETS, unsafe.Pointer(&state))
	return state.Lflag&syscall.ECHO != 0
}

// fault 111: a typed password is not shown, and afterwards the terminal echoes again.
func TestPasswordIsTypedWithoutEcho(t *testing.T) {
	for typed, want := range map[string]int{sandbox.Password + "\n": 0, "\n": 2, "interrupt": 130} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			server, address := startSandbox(t, "")
			d := newDesk(t, address)
			prompt := "Password of " + sandbox.Email + " at " + address + ": "
			code, shown, tty := d.prompted(prompt, typed, logIn...)
			if code != want || strings.Contains(shown, sandbox.Password) || !echoes(t, tty) {
				t.Errorf("exit %d, want %d; the echo is back: %v\n%s", code, want, echoes(t, tty), shown)
			}
			if want != 0 && len(server.Counts()) > 0 {
				t.Errorf("requests were sent: %v", server.Counts())
			}
		})
	}
}
