// Package garbage says how much garbage may gather before it is collected: that takes processor time, and garbage takes
// memory. What a user sets (GOGC, GOMEMLIMIT) wins.
package garbage

import (
	"os"
	"runtime/debug"
)

// Allow lets more garbage gather the more requests may be in flight: about 1 MiB for each.
func Allow(inFlight int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(100 + 3*min(inFlight, 100))
	}
}

// Reserve is for what a run has to keep of each row of its input, so many bytes: garbage would grow with them. From
// 16 MiB of them on, all the rest of the process has 56 MiB.
func Reserve(bytes int) {
	if bytes >= 16<<20 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(bytes) + 56<<20)
	}
}
