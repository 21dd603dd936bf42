package pgtest

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
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
