package postgres

import (
	"time"

	"golang.org/x/sys/windows"
)

// sinceBoot is a clock that goes on while the machine sleeps, which Go's own does not, and that nobody sets.
func sinceBoot() time.Duration { return windows.DurationSinceBoot() }
