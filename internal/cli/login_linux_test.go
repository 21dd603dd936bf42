package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/term"

	"leadferry/leadapi/sandbox"
)

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

// prompted waits until the password is asked for and returns what was printed so far.
func prompted(t *testing.T, out *os.File, tty *os.File) string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "Password of") && !echoes(t, tty) {
			return string(b)
		}
		if time.Now().After(deadline) {
			t.Fatalf("no prompt without echo:\n%s", b)
		}
	}
}

// fault 111: a password that is typed is not shown, and the terminal is left as it was.
func TestPasswordIsTypedWithoutEcho(t *testing.T) {
	for _, typed := range []string{sandbox.Password + "\n", "\n", "interrupt"} {
		t.Run(fmt.Sprintf("%q", typed), func(t *testing.T) {
			server, address := startSandbox(t, "")
			d := newDesk(t, address)
			person, tty := terminalPair(t)
			if !term.IsTerminal(int(tty.Fd())) || !echoes(t, tty) {
				t.Skip("no terminals here")
			}
			out := d.file("out")
			code := make(chan int)
			go func() {
				code <- Run(context.Background(), d.interrupt, append([]string{"leadferry"}, logIn...), Streams{In: tty, Out: out, Err: out})
			}()
			text := prompted(t, out, tty)
			if !strings.HasSuffix(text, "Password of "+sandbox.Email+" at "+strings.TrimPrefix(address, "http://")+": ") {
				t.Errorf("asked so: %s", text)
			}
			want := 2
			switch typed {
			case "interrupt":
				want = 130
				close(d.interrupt)
			default:
				io.WriteString(person, typed)
				if typed != "\n" {
					want = 0
				}
			}
			got := <-code
			b, err := os.ReadFile(out.Name())
			if got != want || err != nil {
				t.Errorf("exit %d, want %d\n%s", got, want, b)
			}
			if !echoes(t, tty) {
				t.Error("the echo is not put back")
			}
			if want != 0 && len(server.Counts()) > 0 {
				t.Errorf("requests were sent: %v", server.Counts())
			}
			if typed == "interrupt" { // the reader of the terminal ends with the process: let it end here
				io.WriteString(person, "\n")
			}
		})
	}
}
