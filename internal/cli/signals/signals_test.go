package signals

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// The first signal interrupts. Others within a moment count as the same one. One after it ends the context. fault 5
func TestSignalsWithinAMomentAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 4)
		ctx, interrupt := Watch(signals)
		state := func() (n int) {
			synctest.Wait()
			select {
			case <-interrupt:
				n++
			default:
			}
			if ctx.Err() != nil {
				n++
			}
			return n
		}
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 1}, {0, 1}, {Moment / 2, 1}, {Moment, 2}} {
			time.Sleep(step.after)
			signals <- os.Interrupt
			if got := state(); got != step.want {
				t.Errorf("after %v more: %d, want %d", step.after, got, step.want)
			}
		}
	})
}

// A command that only waits is left at the first signal. One that has begun may end by
// itself, and is left a second after the second signal. fault 135
func TestWhenASignalLeavesACommand(t *testing.T) {
	errEnded := errors.New("it ended by itself")
	for _, test := range []struct {
		name    string
		held    bool
		signals int
		ends    time.Duration // after the last signal; 0: by itself
	}{
		{"waiting", false, 1, unwinding},
		{"begun", true, 1, 0},
		{"begun, twice", true, 2, atOnce},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals, ended := make(chan os.Signal, 4), make(chan error, 1)
				ctx, interrupt := Watch(signals)
				var h Hold
				if test.held && !h.Take() {
					t.Fatal("Take failed before any signal")
				}
				var last time.Time
				go func() {
					for range test.signals {
						time.Sleep(time.Minute)
						last = time.Now()
						signals <- os.Interrupt
					}
					if test.ends == 0 {
						time.Sleep(time.Hour)
						ended <- errEnded
					} else if test.signals == 1 {
						time.Sleep(time.Hour)
						signals <- os.Interrupt
					}
				}()
				err := h.Conclude(ctx, interrupt, ended, func() {})
				if took := time.Since(last); (err == errEnded) != (test.ends == 0) || test.ends > 0 && took != test.ends {
					t.Errorf("%v after %v", err, took)
				}
				if h.Take() {
					t.Error("Take succeeds after a signal")
				}
				time.Sleep(2 * time.Hour) // the watch ends
				if test.signals == 1 && test.ends == 0 {
					signals <- os.Interrupt
				}
			})
		})
	}
}
