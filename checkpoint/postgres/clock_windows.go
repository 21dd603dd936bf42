package postgres

import (
	"time"

	"golang.org/x/sys/windows"
)

// sinceBoot is a clock that goes on while the machine sleeps, unlike Go's own, and that nobody can set.
func sinceBoot() time.Duration { return windows.DurationSinceBoot() }
