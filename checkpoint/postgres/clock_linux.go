package postgres

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is a clock that goes on while the machine sleeps, which Go's own does not.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}
