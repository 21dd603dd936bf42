// Package garbage says how much garbage may gather, in memory, before processor time is spent on it. GOGC wins.
package garbage

import (
	"os"
	"runtime/debug"
)

// Allow lets about 1 MiB more garbage gather for each request that may be in flight. 0: only rows need memory.
func Allow(inFlight int) {
	percent := 100 + 3*min(inFlight, 100)
	if inFlight == 0 {
		percent = 220
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// Reserve is for what a run keeps of each row of its input, so many bytes: garbage is a share of all that is kept, and
// would grow with them. This leaves about 25 MiB of garbage, or a tenth of all.
func Reserve(bytes int) {
	if bytes < 8<<20 || os.Getenv("GOGC") != "" {
		return
	}
	percent := max(2500/(10+bytes>>20), 10)
	if was := debug.SetGCPercent(percent); was < percent {
		debug.SetGCPercent(was)
	}
}
