package signals

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// The first signal interrupts; others within a moment are the same one; the next one after it ends the context. fault 5
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

// A command that waits for what does not come is left at the first signal; one that has
// begun ends itself, and is left a second after the second signal. fault 135
func TestCommandsThatDoNotEnd(t *testing.T) {
	for _, test := range []struct {
		name    string
		held    bool
		signals int
		ends    time.Duration // after the last signal; 0: by itself
		code    int
	}{
		{"waiting", false, 1, unwinding, 0},
		{"begun", true, 1, 0, 7},
		{"begun, twice", true, 2, atOnce, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals, ended := make(chan os.Signal, 4), make(chan int, 1)
				ctx, interrupt := Watch(signals)
				var h Hold
				if test.held && !h.Take() {
					t.Fatal("nothing was interrupted yet")
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
						ended <- 7
					} else if test.signals == 1 {
						time.Sleep(time.Hour)
						signals <- os.Interrupt
					}
				}()
				code, left := h.Conclude(ctx, interrupt, ended, func() {})
				if took := time.Since(last); code != test.code || (left == "") != (code == 7) || test.ends > 0 && took != test.ends {
					t.Errorf("exit %d, %q after %v", code, left, took)
				}
				if h.Take() {
					t.Error("what has not begun may begin")
				}
				time.Sleep(2 * time.Hour) // the watch ends
				if test.signals == 1 && test.ends == 0 {
					signals <- os.Interrupt
				}
			})
		})
	}
}
