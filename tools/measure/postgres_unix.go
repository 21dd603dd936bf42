//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// asServerUser makes a command run as postgres where this one is root, which PostgreSQL refuses.
func asServerUser(cmd *exec.Cmd) {
	if uid, gid, ok := serverUser(); ok {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
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
	u, err := user.Lookup("postgres")
	if err != nil {
		return 0, 0, false
	}
	id, _ := strconv.ParseUint(u.Uid, 10, 32)
	group, _ := strconv.ParseUint(u.Gid, 10, 32)
	return uint32(id), uint32(group), true
}
