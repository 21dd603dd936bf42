// Package garbage says how much garbage may gather before it is collected: that takes processor time, and garbage takes
// memory. What a user sets (GOGC, GOMEMLIMIT) wins.
package garbage

import (
	"os"
	"runtime/debug"
)

// Allow lets more garbage gather the more requests may be in flight: about 1 MiB for each. 0: nothing is sent, so that
// rows alone need memory.
func Allow(inFlight int) {
	percent := 100 + 3*min(inFlight, 100)
	if inFlight == 0 {
		percent = 220
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// Reserve is for what a run has to keep of each row of its input, so many bytes: garbage would grow with them. From
// 8 MiB of them on, all the rest of the process has 64 MiB.
func Reserve(bytes int) {
	if bytes >= 8<<20 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(bytes) + 64<<20)
	}
}
