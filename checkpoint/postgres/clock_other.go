//go:build !linux && !windows

package postgres

import "time"

// sinceBoot is a clock that goes on while the machine sleeps, which Go's own need not: the time of day.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }
