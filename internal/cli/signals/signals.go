// Package signals handles signals and the end of the process.
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
	// Moment is how long further signals count as part of the first: `timeout` of coreutils signals the process and its
	// group, service managers send SIGTERM and SIGHUP, and a wrapper passes on a Ctrl-C that the terminal already sent.
	Moment = 100 * time.Millisecond
	// unwinding is how long a command may take to end by itself if it has sent nothing.
	unwinding = 250 * time.Millisecond
	// atOnce is how long a command may take after the second signal.
	atOnce = time.Second
	// untilKilled is how long a command may take before it must end at once. Windows sends SIGTERM when its console
	// closes, the user logs off or the machine shuts down, and ends the process 5 s later.
	untilKilled = 3500 * time.Millisecond
)

// CrashApart makes a crash of Go's runtime, for example out of memory, end the process by SIGABRT, which is 134 for
// shells. Go's own exit code for it is 2, which here means that nothing was sent. That code stays on Windows, and for
// process 1 of a container, which does not get the signal.
func CrashApart() {
	debug.SetTraceback("crash")
	noCore()
	aborted := make(chan os.Signal, 1)
	signal.Notify(aborted, syscall.SIGABRT)
	// This waits until the process ends. It resets all signals: while SIGQUIT is handled, the runtime takes ten seconds
	// over a SIGABRT.
	go func() {
		<-aborted
		signal.Reset()
		if own, err := os.FindProcess(os.Getpid()); err == nil {
			_ = own.Signal(syscall.SIGABRT)
		}
	}()
}

// Watch closes interrupt at the first signal. A further signal, more than a Moment later, ends ctx.
func Watch(signals <-chan os.Signal) (ctx context.Context, interrupt <-chan struct{}) {
	ctx, stop := context.WithCancel(context.Background())
	first := make(chan struct{})
	go func() {
		var end <-chan time.Time // only on Windows a signal sets a time
		if <-signals == syscall.SIGTERM && runtime.GOOS == "windows" {
			end = time.After(untilKilled)
		}
		close(first)
		time.Sleep(Moment)
		for len(signals) > 0 { // they are part of the first
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

// Hold says who ends the process at the first signal: the command itself, in order, if it has taken the Hold before.
type Hold struct{ state atomic.Int32 }

const (
	free int32 = iota
	held
	signalled
)

// Take says that the command handles the first signal from now on. false: the signal came before, so begin nothing.
func (h *Hold) Take() bool {
	return h.state.CompareAndSwap(free, held) || h.state.Load() == held
}

// Conclude waits for a command's end, and returns its error. If the command handles signals, it may go on until the
// second signal, and then has a second to end. Any other command is left at the first signal, whatever it waits for:
// input, a lock, the check of a file. Conclude calls waits before it waits for a command that handles signals.
func (h *Hold) Conclude(ctx context.Context, interrupt <-chan struct{}, ended <-chan error, waits func()) error {
	select {
	case err := <-ended:
		return err
	case <-interrupt:
	}
	patience, left := unwinding, "interrupted: nothing was sent"
	if h.state.Swap(signalled) == held { // the command handles signals
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
