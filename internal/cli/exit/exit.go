// Package exit says how a failed command ends: a sentence, a hint and an exit code. [Of] is the only table of these.
package exit

import (
	"cmp"
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"syscall"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/internal/crash"
	"leadferry/internal/disk"
)

// A run that has begun ends with one of importer's exit codes. CodeUsage ends a command before anything is sent.
// CodeCrashed is for a crash of Go's runtime, see [signals.CrashApart].
const (
	CodeUsage   = 2
	CodeCrashed = 134
)

// Error ends a command with a sentence, what to do about it, and an exit code.
type Error struct {
	Code int    `json:"exit_code"`
	Text string `json:"reason"`
	Hint string `json:"hint"`
}

func (e *Error) Error() string { return e.Text }

// Usage is an error in the command line, or in a file that it names.
func Usage(text, hint string) error { return &Error{CodeUsage, text, hint} }

// Stopped ends a command early: the same command continues from there.
func Stopped(text, hint string) error { return &Error{report.CodeStopped, text, hint} }

// Interrupted ends a command after a signal.
func Interrupted(text string) error { return &Error{report.CodeInterrupted, text, ""} }

// ErrInterrupted ends a command before it sends anything.
var ErrInterrupted = Interrupted("interrupted: nothing was sent")

// Of turns errors into codes, sentences and hints. Errors that it does not list have their hints on lines of their own.
func Of(err error) Error {
	var (
		fault  *crash.Error
		own    *Error
		ledger *checkpoint.OpenError
		broken *checkpoint.StoreError
	)
	switch {
	case errors.As(err, &fault):
		return Error{
			report.CodeStopped, fault.Error(),
			"report this fault of leadferry with this line; the same command goes on from there",
		}
	case errors.As(err, &own):
		return Error{own.Code, err.Error(), own.Hint}
	case errors.As(err, &ledger) && !errors.Is(err, checkpoint.ErrAddress):
		return Error{report.CodeCheckpoint, ledger.Path + ": " + ledger.Text, hintOf(ledger)}
	case errors.As(err, &broken):
		const hint = "check its address, network and server, or use --wait"
		return Error{report.CodeStopped, broken.Error(), cmp.Or(broken.Hint, hint)}
	}
	return Error{CodeUsage, err.Error(), ""}
}

// hintOf returns the hint of a checkpoint that cannot be used. Where leads may be made twice, it names an explain page.
func hintOf(e *checkpoint.OpenError) string {
	for name, kind := range map[string]error{
		"damaged": checkpoint.ErrDamaged, "rolled_back": checkpoint.ErrRolledBack,
		"gone": checkpoint.ErrGone,
	} {
		if errors.Is(e, kind) && e.Hint != "" {
			return e.Hint + " (leadferry explain " + name + ")"
		}
	}
	return e.Hint
}

// OutputLost ends a command whose standard output could not be written, without a text if its reader (head) has gone.
func OutputLost(err error) *Error {
	if readerGone(err) {
		return &Error{Code: report.CodeStopped}
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	hint, _, _ := strings.Cut(disk.WayOut(err), "; what the file holds is safe") // the hint's end is about checkpoints
	return &Error{report.CodeStopped, "standard output could not be written: " + err.Error(), hint}
}

// readerGone reports whether the reader of a pipe has closed it.
func readerGone(err error) bool {
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232) // of Windows
	return errors.Is(err, syscall.EPIPE) || runtime.GOOS == "windows" &&
		(errors.Is(err, brokenPipe) || errors.Is(err, noData))
}

// Joined joins the lines of the error to one sentence and one hint.
func (e *Error) Joined() *Error {
	var texts, hints []string
	for line := range strings.SplitSeq(e.Text+"\nhint: "+e.Hint, "\n") {
		if hint, is := strings.CutPrefix(line, "hint: "); is && hint != "" {
			hints = append(hints, hint)
		} else if !is && line != "" {
			texts = append(texts, line)
		}
	}
	return &Error{e.Code, strings.Join(texts, "; "), strings.Join(hints, "; ")}
}
