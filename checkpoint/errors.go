package checkpoint

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"leadferry/internal/shell"
)

// What can be wrong with a checkpoint file, in an [OpenError]. ErrDamaged also comes from later calls.
var (
	ErrLocked       = errors.New("in use")
	ErrMissing      = errors.New("missing")
	ErrDamaged      = errors.New("damaged")
	ErrRolledBack   = errors.New("rolled back")
	ErrGone         = fmt.Errorf("%w, though it was here", ErrMissing)
	ErrLacking      = errors.New("incomplete")
	ErrHalfAdopted  = errors.New("half adopted")
	ErrOtherMachine = errors.New("used on another machine")
	ErrTarget       = errors.New("another target")
	ErrVersion      = errors.New("another format version")
	ErrPlace        = errors.New("on a file system that cannot be relied on")
	ErrAddress      = errors.New("an address that cannot be used") // the server was not asked
)

// Why a call is refused. After the errors that [IsRefusal] names, the ledger goes on.
var (
	ErrClosed       = errors.New("checkpoint is closed")
	ErrRemoved      = errors.New("taken away or replaced while it was in use")
	ErrFenced       = errors.New("a newer worker has taken the place of this one")
	ErrReadOnly     = errors.New("checkpoint is open for reading only")
	ErrKey          = errors.New("key is empty or longer than 1,024 bytes")
	ErrKnown        = errors.New("key has a lead already, so it cannot be claimed")
	ErrDoubt        = errors.New("another run sent the key, and it is in doubt")
	ErrBlocked      = errors.New("key was forgotten, so nothing may be kept under it")
	ErrTaken        = errors.New("lead belongs to another key")
	ErrLinked       = fmt.Errorf("its ExternalID belongs to another row, or another row asked for it: %w", ErrTaken)
	ErrState        = errors.New("entry has no state that can be settled")
	ErrOtherMaySend = errors.New("another worker has claimed the key and may still send it")
)

// OpenError says why a checkpoint file cannot be used.
type OpenError struct {
	Path, Text, Hint string
	Err              error // the sentinel, or the system's error
}

// Refuse says why the checkpoint at path cannot be used; kind is the sentinel, or the system's error.
func Refuse(path string, kind error, text, hint string) error {
	return &OpenError{path, text, hint, kind}
}

// Error returns one sentence and, if the user can act, a line with a hint.
func (e *OpenError) Error() string {
	s := "checkpoint " + e.Path + ": " + e.Text
	if e.Hint != "" {
		s += "\nhint: " + e.Hint
	}
	return s
}

// Unwrap returns the sentinel, or the system's error.
func (e *OpenError) Unwrap() error { return e.Err }

// StoreError is an error of the disk or the server that keeps a checkpoint, not damage. After it nothing is written.
// What was reported is durable; what was not reported may be durable, too.
type StoreError struct {
	Text string
	Hint string // what to do about it, where that is known
	Err  error
}

// Error says what could not be done.
func (e *StoreError) Error() string { return e.Text }

// Unwrap returns the error of the system, of the connection or of the server.
func (e *StoreError) Unwrap() error { return e.Err }

// List yields the entries of a list that may be too long for the memory. It is read several times, and must yield the
// same entries each time. The first error ends it.
type List = iter.Seq2[Entry, error]

// ListError says why one entry of a list, and with it the whole list, is refused.
type ListError struct {
	Index      int // in the list, from 0
	Key        string
	Text, Hint string
}

// Error names the entry by its place in the list, from 1.
func (e *ListError) Error() string { return fmt.Sprintf("entry %d: %s", e.Index+1, e.Text) }

// refusal refuses a list for one of its entries.
func refusal(text, hint string) error { return &ListError{Text: text, Hint: hint} }

// inList adds the place and the key of an entry to an error that refuses this entry. Other errors stay as they are.
func inList(err error, index int, key string) error {
	if why, is := errors.AsType[*ListError](err); is {
		why.Index, why.Key = index, key
	}
	return err
}

// Refuses reports whether an error of [Store.Alone] refuses what was asked for: nothing changed, and the Store goes on.
func Refuses(err error) bool {
	return errors.As(err, new(*ListError)) || errors.As(err, new(*OpenError))
}

// IsRefusal reports whether err refuses one change: its row ends with it, and the ledger goes on.
func IsRefusal(err error) bool {
	return slices.ContainsFunc([]error{ErrKey, ErrKnown, ErrDoubt, ErrBlocked, ErrTaken, ErrState, ErrOtherMaySend},
		func(refusal error) bool { return errors.Is(err, refusal) })
}

// RefuseElsewhere refuses a ledger that was copied to another place, or into which another one is being copied.
func RefuseElsewhere(path, id, moved, filling string) error {
	switch {
	case moved != "":
		return Refuse(path, ErrGone, "was copied to "+moved+", where its leads are known from now on",
			"use --checkpoint "+shell.Path(moved)+"; if that one is lost for good, "+AcceptOlder(id, path))
	case filling != "":
		return Refuse(path, ErrLocked, "is being filled from "+filling+", which is not complete",
			"finish it: leadferry checkpoint copy "+shell.Path(filling)+" "+shell.Path(path))
	}
	return nil
}

// AcceptOlder returns the command that accepts a ledger although it lacks something, and what the command does.
func AcceptOlder(answer, path string) string {
	return "leadferry checkpoint check --accept-older=" + answer + " --checkpoint " + shell.Path(path) +
		" accepts this one as incomplete: rows that it does not know are held then, not sent"
}
