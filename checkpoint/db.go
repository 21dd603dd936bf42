package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// DB is an open checkpoint. All its methods are safe for concurrent use.
type DB struct {
	path      string
	fresh     bool // made by this opening, or by one that was killed before it was used
	held      bool // the lock
	readOnly  bool
	warnings  []string
	tookOlder bool // see TookOlder
	now       func() time.Time
	slots     int // see Options

	file      *os.File // bbolt's own handle, which it closes
	bolt      *bolt.DB
	mark      *os.File // PATH.seq; nil when read only
	replaced  *mark    // what PATH.seq said before this file was made
	header    header
	digests   *digester
	words     *words
	unflushed *unflushed
	recent    *recent
	lacks     lacking
	host      uint64                // of this machine, see mark
	taking    func() error          // takes an older copy for good, once the writer runs
	anew      string                // what is known of one that was here before a new one was made, or ""
	tally     atomic.Pointer[tally] // as of the last commit
	broken    atomic.Pointer[error] // the first error; every later call returns it
	checked   chan struct{}         // closed when the whole file has been checked
	leaving   atomic.Bool           // nothing will be changed any more: the check may stop
	stopped   atomic.Bool           // and it did: nobody may look at what it did not see
	erase     atomic.Bool           // unused parts hold what was forgotten: compact at the end
	claimed   atomic.Bool           // rows were claimed or settled
	dropped   atomic.Bool           // to be removed at the end
	teller    *teller               // of PATH.status; nil when read only

	mu     sync.Mutex
	queue  []op // what the writer has not taken yet
	hurry  bool
	closed bool
	wake   chan struct{} // holds one token while there is something to look at
	idle   chan struct{} // closed when the writer has ended
}

// Path returns the file's absolute path, with symbolic links resolved.
func (d *DB) Path() string { return d.path }

// Target returns what the leads of the checkpoint belong to.
func (d *DB) Target() Target { return d.header.target }

// ID returns the number of the checkpoint as text. Every copy of the file has it.
func (d *DB) ID() string { return d.header.id.String() }

// Sequence returns the number of the last commit, also when the checkpoint is closed.
func (d *DB) Sequence() uint64 { return d.tally.Load().seq }

// New reports whether opening made the file, or found one that knows nothing because the
// run that made it was killed before it sent anything.
func (d *DB) New() bool { return d.fresh }

// Anew says, of a checkpoint that opening made, what is known of the one that should have
// been there, as a sentence whose subject is the file; or nothing.
func (d *DB) Anew() string { return d.anew }

// empty says that nothing is known of any key, and that none was claimed since opening.
func (d *DB) empty() bool {
	t := d.tally.Load()
	return t.total() == 0 && t.decisions == 0 && t.notes == 0 && !d.claimed.Load()
}

// unused says that the file is empty and that no run came to its end with it.
func (d *DB) unused() (bool, error) {
	if !d.empty() {
		return false, nil
	}
	runs, err := d.Runs()
	return err == nil && !slices.ContainsFunc(runs, func(r RunInfo) bool { return !r.Finished.IsZero() }), err
}

// Drop is Close for whoever was refused: a file that is New and that has known nothing is
// removed, so that it cannot pass for the memory of leads; gone says so.
func (d *DB) Drop() (gone bool, err error) {
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed || d.readOnly || !d.fresh || !d.empty() {
		return false, d.Close()
	}
	d.dropped.Store(true)
	return true, d.Close()
}

// Warnings returns sentences about what opening found that a person should
// know, such as a missing PATH.seq.
func (d *DB) Warnings() []string { return d.warnings }

// Leads returns how many keys have a lead.
func (d *DB) Leads() int {
	t := d.tally.Load()
	return int(t.keys[Created] + t.keys[Partial])
}

// InDoubt returns how many keys have an intent without an outcome: those of
// earlier runs, and those in flight.
func (d *DB) InDoubt() int { return int(d.tally.Load().keys[InDoubt]) }

// Counts returns the number of keys by state, as look-ups show them.
func (d *DB) Counts() (map[State]int, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	t := d.tally.Load()
	counts := make(map[State]int)
	for s := Created; s <= Forgotten; s++ {
		counts[s] = int(t.keys[s])
	}
	return counts, nil
}

// Close waits for queued writes, marks PATH.seq as ended in order, compacts the
// file if keys were forgotten, and gives the lock back. After an error of the file
// the mark stays as it is, so that the next opening checks everything. Only the
// first call does something.
func (d *DB) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.mu.Unlock()
	if d.readOnly {
		return d.release()
	}
	d.signal()
	<-d.idle
	<-d.checked
	d.teller.end()
	err := d.failed()
	if err == nil {
		err = d.stamp(true)
	}
	switch {
	case err == nil && d.dropped.Load():
		err = d.remove()
	case err == nil && d.erase.Load():
		err = d.compact()
	}
	return errors.Join(err, d.mark.Close(), d.release())
}

// remove takes the file away while the lock is held; who waits for it makes a new one. The
// mark of one that stood here before comes back.
func (d *DB) remove() error {
	back := func() error { return os.Remove(d.markPath()) }
	if d.replaced != nil {
		back = func() error {
			_, err := d.mark.WriteAt(d.replaced.line(), 0)
			return errors.Join(err, d.mark.Sync())
		}
	}
	return errors.Join(back(), os.Remove(d.path), syncDir(filepath.Dir(d.path)))
}

// release closes the file. When bbolt met damage it may still hold a lock of its
// own and would never return; then only the file, with the lock on it, is closed.
func (d *DB) release() error {
	if d.bolt == nil || errors.Is(d.failed(), ErrDamaged) {
		return errors.Join(unlock(d.file), d.file.Close())
	}
	return d.bolt.Close()
}

// stamp writes the number of the last commit to PATH.seq. It is synced only when
// the mark changes, for a mark that is behind is right, only less sharp.
func (d *DB) stamp(clean bool) error {
	if err := d.inPlace(); err != nil {
		return fmt.Errorf("checkpoint %s: %w", d.path, err)
	}
	m := mark{id: d.header.id, seq: d.tally.Load().seq, clean: clean, leads: d.known(), pid: os.Getpid(), host: d.host}
	if _, err := d.mark.WriteAt(m.line(), 0); err != nil {
		return fmt.Errorf("write sequence file: %w", err)
	}
	if !clean {
		return nil
	}
	if err := d.mark.Sync(); err != nil {
		return fmt.Errorf("sync sequence file: %w", err)
	}
	return nil
}

// inPlace fails once the file is no longer the one at its path: what is written into it is lost to all later runs.
func (d *DB) inPlace() error {
	there, err := os.Stat(d.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRemoved, err)
	}
	own, err := d.file.Stat()
	if err == nil && !os.SameFile(there, own) {
		err = ErrRemoved
	}
	return err
}

func (d *DB) failed() error {
	if err := d.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// fail makes err the answer to every later call, unless there is one already:
// damage as an *OpenError, what else befalls the file as a *FileError.
func (d *DB) fail(err error) error {
	if errors.Is(err, ErrDamaged) {
		err = d.openError(err)
	} else {
		err = &FileError{d.path, err}
	}
	d.broken.CompareAndSwap(nil, &err)
	return d.failed()
}

// view reads inside one transaction, once the file is checked. Values must not leave f.
func (d *DB) view(what string, f func(*bolt.Tx) error) error {
	<-d.checked
	if err := d.failed(); err != nil {
		return err
	}
	if d.stopped.Load() {
		return ErrClosed
	}
	err := guard(func() error { return d.bolt.View(f) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return ErrClosed
	}
	return d.fail(fmt.Errorf("%s in checkpoint %s: %w", what, d.path, err))
}

// guard runs f, which works on bbolt's mapped file. Pages that make no sense and
// parts of the map that the file does not reach become ErrDamaged.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	return f()
}
