package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// asServerUser makes a command end with its thread and, if the test is root, run as postgres: initdb refuses root.
func asServerUser(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if uid, gid, ok := serverUser(); ok {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
}

// giveAway gives a folder to the server's user.
func giveAway(dir string) error {
	if uid, gid, ok := serverUser(); ok {
		return os.Chown(dir, int(uid), int(gid))
	}
	return nil
}

func serverUser() (uid, gid uint32, ok bool) {
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil && os.Getuid() == 0 {
			id, _ := strconv.Atoi(u.Uid)
			group, _ := strconv.Atoi(u.Gid)
			return uint32(id), uint32(group), true
		}
	}
	return 0, 0, false
}

// Freeze stops the server and its connections until Thaw. The system still accepts connections; nobody answers.
func (s *Server) Freeze(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		if s.process != nil {
			s.Thaw(t)
		}
	})
	s.signalAll(t, syscall.SIGSTOP)
}

// Thaw lets a frozen server go on.
func (s *Server) Thaw(t testing.TB) { s.signalAll(t, syscall.SIGCONT) }

func (s *Server) signalAll(t testing.TB, sig syscall.Signal) {
	t.Helper()
	first := s.process.Process.Pid
	syscall.Kill(first, sig) // from now on it starts no other process
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", first, first))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range strings.Fields(string(text)) {
		process, _ := strconv.Atoi(one)
		if err := syscall.Kill(process, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}
