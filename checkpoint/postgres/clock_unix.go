//go:build linux || darwin

package postgres

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is a clock that goes on while the machine sleeps, which Go's own does not, and that nobody sets.
func sinceBoot() (time.Duration, error) {
	clock := int32(7) // CLOCK_BOOTTIME
	if runtime.GOOS == "darwin" {
		clock = unix.CLOCK_MONOTONIC_RAW
	}
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err
}
