package signals

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Closing the window sends one signal. Windows then waits 5 s before it ends the process.
func TestAClosedWindowEndsARunInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		ctx, interrupt := Watch(signals)
		began := time.Now()
		signals <- syscall.SIGTERM
		<-interrupt
		if ctx.Err() != nil {
			t.Error("ended at the first signal")
		}
		<-ctx.Done()
		if left := 5*time.Second - time.Since(began) - atOnce; left < 0 {
			t.Error("too late by", -left)
		}
	})
}
