package pgtest

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asServerUser makes a command run as postgres where the test is root, which initdb refuses,
// and end with the thread that starts it.
func asServerUser(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if uid, gid, ok := serverUser(); ok {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
}

// giveAway gives a folder to that user.
func giveAway(dir string) error {
	uid, gid, ok := serverUser()
	if !ok {
		return nil
	}
	return os.Chown(dir, int(uid), int(gid))
}

func serverUser() (uid, gid uint32, ok bool) {
	if os.Getuid() != 0 {
		return 0, 0, false
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			id, _ := strconv.Atoi(u.Uid)
			group, _ := strconv.Atoi(u.Gid)
			return uint32(id), uint32(group), true
		}
	}
	return 0, 0, false
}

// Kill ends the server and all that serves its connections as a power cut of its processes would; Start recovers what was
// durable.
func (s *Server) Kill() {
	first := s.Process()
	for syscall.Kill(first, syscall.SIGSTOP); stateOf(first) != "T"; { // it begins no other
		time.Sleep(time.Millisecond)
	}
	serving := children(first)
	s.signal(os.Kill)
	for _, process := range serving {
		syscall.Kill(process, syscall.SIGKILL)
	}
	for _, process := range serving {
		for alive(process) {
			time.Sleep(time.Millisecond)
		}
	}
}

// Freeze stops the server and all that serves its connections where they are; Thaw has them go on. What connects meanwhile
// is taken by the system and not answered.
func (s *Server) Freeze(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		if s.process != nil {
			s.Thaw(t)
		}
	})
	s.all(t, syscall.SIGSTOP)
}

// Thaw has a frozen server go on.
func (s *Server) Thaw(t testing.TB) { s.all(t, syscall.SIGCONT) }

func (s *Server) all(t testing.TB, sig syscall.Signal) {
	t.Helper()
	first := s.Process()
	for _, process := range append([]int{first}, children(first)...) {
		if err := syscall.Kill(process, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}

// alive says whether a process has not ended.
func alive(process int) bool { return syscall.Kill(process, 0) == nil && stateOf(process) != "Z" }

// children are the processes that a process has started.
func children(of int) (all []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		process, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if fields := stat(process); len(fields) > 1 && fields[1] == strconv.Itoa(of) {
			all = append(all, process)
		}
	}
	return all
}

// stat is what the system tells of a process, from its state on.
func stat(process int) []string {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process), "stat"))
	_, after, _ := strings.Cut(string(text), ") ")
	return strings.Fields(after)
}

func stateOf(process int) string {
	if fields := stat(process); len(fields) > 0 {
		return fields[0]
	}
	return ""
}
