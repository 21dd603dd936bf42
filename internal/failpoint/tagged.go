//go:build failpoints

// Package failpoint names the points at which a test can make the program die. Built with the tag failpoints, the
// program dies at the point that the environment names.
package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

var arrivals atomic.Int64

// At kills the process if LEADFERRY_FAILPOINT names this point and, after a colon, which arrival at it (from 1). With
// LEADFERRY_FAILPOINT_PANIC it panics with that value instead; with LEADFERRY_FAILPOINT_STOP it stops until SIGCONT.
func At(point string) {
	name, nth, _ := strings.Cut(os.Getenv("LEADFERRY_FAILPOINT"), ":")
	if name != point {
		return
	}
	n, err := strconv.ParseInt(nth, 10, 64)
	if err != nil || arrivals.Add(1) != n {
		return
	}
	if value, panics := os.LookupEnv("LEADFERRY_FAILPOINT_PANIC"); panics {
		panic(value)
	}
	if os.Getenv("LEADFERRY_FAILPOINT_STOP") != "" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(500 * time.Millisecond) // the signal is on its way
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}
