//go:build !windows

package postgres

import (
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is a clock that goes on while the machine sleeps and that nobody sets. Not every system has one.
func sinceBoot() (time.Duration, error) {
	clock := map[string]int32{"linux": 7 /* CLOCK_BOOTTIME */, "darwin": 4 /* CLOCK_MONOTONIC_RAW */}[runtime.GOOS]
	if clock == 0 {
		return 0, errors.ErrUnsupported
	}
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err
}
