//go:build !windows

package signals

import (
	"os"
	"time"
)

// closing never comes: no signal sets a time.
func closing(os.Signal) <-chan time.Time { return nil }
