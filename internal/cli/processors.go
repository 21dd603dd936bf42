package cli

import (
	"os"
	"runtime"
	"sync"
)

// moreProcessors is how many processors Go's scheduler gets beyond those of the machine
// while rows are sent.
const moreProcessors = 2

// processors returns what adds them, the first time it is called, and what takes them
// back. A goroutine that comes back from the disk has to wait for a processor as long as
// others have something to do, and all rows wait for the one that commits: with some to
// spare, the system finds it time at once. That makes an import an eighth faster on two
// cores; rows that are only compared would lose as much, so it begins with the first
// request. Who sets GOMAXPROCS has chosen.
func processors() (add, restore func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func() {}, func() {}
	}
	added := false
	add = sync.OnceFunc(func() {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + moreProcessors)
		added = true
	})
	return add, func() {
		if added {
			runtime.SetDefaultGOMAXPROCS()
		}
	}
}
