// Package garbage says how much garbage may gather in memory before Go collects it. If GOGC is set, it decides alone.
package garbage

import (
	"os"
	"runtime/debug"
)

// Allow lets about 1 MiB more garbage gather for each request that may be in flight, up to 100. 0: nothing is sent.
func Allow(inFlight int) {
	percent := 100 + 3*min(inFlight, 100)
	if inFlight == 0 {
		percent = 220
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// Reserve is for a run that keeps this many bytes of its rows. Garbage is a share of what is kept, and would grow with
// it. Reserve bounds garbage to about 25 MiB, or a tenth of what is kept.
func Reserve(bytes int) {
	if bytes < 8<<20 || os.Getenv("GOGC") != "" {
		return
	}
	percent := max(2500/(10+bytes>>20), 10)
	if was := debug.SetGCPercent(percent); was < percent {
		debug.SetGCPercent(was)
	}
}
