// Package signals is how signals and the end of the process follow one another.
package signals

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"leadferry/internal/cli/exit"
)

const (
	// Moment is how long signals count as the first one: `timeout` of coreutils sends
	// one to the process and the same to its group, service managers send SIGTERM and
	// SIGHUP, and a wrapper passes a Ctrl-C on that the terminal sent already.
	Moment = 100 * time.Millisecond
	// unwinding is how long a command may take to end by itself that has sent nothing.
	unwinding = 250 * time.Millisecond
	// atOnce is how long a command may take after the second signal.
	atOnce = time.Second
	// untilKilled is how long a command may take before it has to end at once. Windows ends a process 5 s after it
	// has said, by a SIGTERM, that its console is closed, the user logs off or the machine shuts down.
	untilKilled = 3500 * time.Millisecond
)

// CrashApart has a crash of Go's runtime, such as for want of memory, end the process by SIGABRT, which is 134 for
// shells. Go's own exit code for it is 2, which here says that nothing was sent; it stays on Windows, and for process 1
// of a container, which the signal does not reach.
func CrashApart() {
	debug.SetTraceback("crash")
	noCore()
	aborted := make(chan os.Signal, 1)
	signal.Notify(aborted, syscall.SIGABRT)
	// until the process ends: the runtime takes ten seconds over a SIGABRT as long as somebody hears SIGQUIT
	go func() {
		<-aborted
		signal.Reset()
		if own, err := os.FindProcess(os.Getpid()); err == nil {
			_ = own.Signal(syscall.SIGABRT)
		}
	}()
}

// Watch makes an interruption of the first signal, and an end of the context of the next one that comes a moment later.
func Watch(signals <-chan os.Signal) (ctx context.Context, interrupt <-chan struct{}) {
	ctx, stop := context.WithCancel(context.Background())
	first := make(chan struct{})
	go func() {
		var end <-chan time.Time // elsewhere, no signal sets a time
		if <-signals == syscall.SIGTERM && runtime.GOOS == "windows" {
			end = time.After(untilKilled)
		}
		close(first)
		time.Sleep(Moment)
		for len(signals) > 0 { // they came at once
			<-signals
		}
		select {
		case <-signals:
		case <-end:
		}
		stop()
	}()
	return ctx, first
}

// Hold is about who ends the process at the first signal: the command itself, in order, once it holds it.
type Hold struct{ state atomic.Int32 }

const (
	free int32 = iota
	held
	signalled
)

// Take says that the command sees to the first signal from here on; false: it has come already, and nothing may begin.
func (h *Hold) Take() bool {
	return h.state.CompareAndSwap(free, held) || h.state.Load() == held
}

// interrupt notes the first signal and reports whether the command sees to it.
func (h *Hold) interrupt() bool { return h.state.Swap(signalled) == held }

// Conclude waits for a command's end, and returns its error. One that sees to signals itself is given time after the
// second; any other is left at the first one, whatever it waits for: input, a lock, the check of a file. waits is
// called where the command is waited for.
func (h *Hold) Conclude(ctx context.Context, interrupt <-chan struct{}, ended <-chan error, waits func()) error {
	select {
	case err := <-ended:
		return err
	case <-interrupt:
	}
	patience, left := unwinding, "interrupted: nothing was sent"
	if h.interrupt() {
		waits()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
		}
		patience, left = atOnce, "interrupted a second time, and left at once"
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		return exit.Interrupted(left)
	}
}
