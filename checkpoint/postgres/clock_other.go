//go:build !linux && !darwin && !windows

package postgres

import (
	"errors"
	"time"
)

// sinceBoot is a clock that goes on while the machine sleeps, and that nobody sets: there is none.
func sinceBoot() (time.Duration, error) { return 0, errors.ErrUnsupported }
