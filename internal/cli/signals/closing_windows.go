package signals

import (
	"os"
	"syscall"
	"time"
)

// untilKilled is how long a command may take before it is told to end at once, and then has atOnce. Windows ends a
// process 5 s after it has said that its console is closed.
const untilKilled = 3500 * time.Millisecond

// closing comes when a command has to end by itself after a signal: SIGTERM is the console's word that it is closed,
// or that the user logs off or the machine shuts down.
func closing(s os.Signal) <-chan time.Time {
	if s == syscall.SIGTERM {
		return time.After(untilKilled)
	}
	return nil
}
