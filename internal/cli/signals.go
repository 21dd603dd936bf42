package cli

import (
	"context"
	"os"
	"sync"
	"time"
)

// How signals and the end of the process follow one another.
const (
	// moment is how long signals count as the first one: `timeout` of coreutils sends
	// one to the process and the same to its group, service managers send SIGTERM and
	// SIGHUP, and a wrapper passes a Ctrl-C on that the terminal sent already.
	moment = 100 * time.Millisecond
	// unwinding is how long a command may take to end by itself that has sent nothing.
	unwinding = 250 * time.Millisecond
	// atOnce is how long a command may take after the second signal.
	atOnce = time.Second
)

// Watch makes an interruption of the first signal, and an end of the context of the
// next one that comes a moment later.
func Watch(signals <-chan os.Signal) (ctx context.Context, interrupt <-chan struct{}) {
	ctx, stop := context.WithCancel(context.Background())
	first := make(chan struct{})
	go func() {
		<-signals
		close(first)
		for same := time.After(moment); ; {
			select {
			case <-signals:
				continue
			case <-same:
			}
			break
		}
		<-signals
		stop()
	}()
	return ctx, first
}

// hold is about who ends the process at the first signal.
type hold struct {
	mu          sync.Mutex
	held        bool // the command itself does, in order
	interrupted bool
}

// take says that the command sees to the first signal from here on; false: it has come
// already, and nothing may begin.
func (h *hold) take() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = !h.interrupted
	return h.held
}

func (h *hold) interrupt() (held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.interrupted = true
	return h.held
}

// conclusion waits for a command's end. One that sees to signals itself is given time
// after the second; any other leaves at the first one, whatever it waits for: input, a
// lock, the check of a file.
func (p *program) conclusion(ctx context.Context, ended <-chan int) int {
	select {
	case code := <-ended:
		return code
	case <-p.interrupt:
	}
	if p.hold.interrupt() {
		select {
		case code := <-ended:
			return code
		case <-ctx.Done():
		}
		return p.leave(ended, atOnce, "interrupted a second time, and left at once")
	}
	return p.leave(ended, unwinding, "interrupted: nothing was sent")
}

func (p *program) leave(ended <-chan int, within time.Duration, text string) int {
	select {
	case code := <-ended:
		return code
	case <-time.After(within):
		return p.fail(interrupted(text))
	}
}
