//go:build failpoints

// Package failpoint holds the named points at which a test makes the program die. Built with
// the tag failpoints, the program dies at the one that the environment names.
package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Variable names the point to die at and, after a colon, at which arrival there,
// counted from 1.
const Variable = "LEADFERRY_FAILPOINT"

// PanicVariable makes the program panic there instead, with its value.
const PanicVariable = "LEADFERRY_FAILPOINT_PANIC"

// StopVariable makes the program stop there instead until it is told to go on, as a machine does that is suspended.
const StopVariable = "LEADFERRY_FAILPOINT_STOP"

var arrivals atomic.Int64

// At kills the process without any farewell when it is the point and the arrival
// that Variable names.
func At(point string) {
	name, nth, _ := strings.Cut(os.Getenv(Variable), ":")
	if name != point {
		return
	}
	n, err := strconv.ParseInt(nth, 10, 64)
	if err != nil || arrivals.Add(1) != n {
		return
	}
	if value, panics := os.LookupEnv(PanicVariable); panics {
		panic(value)
	}
	if os.Getenv(StopVariable) != "" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(500 * time.Millisecond) // the signal is on its way
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}
