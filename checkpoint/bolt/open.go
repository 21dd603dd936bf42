package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
	"leadferry/internal/shell"
)

const (
	leastWait     = 50 * time.Millisecond // for bbolt's lock: with 0, bbolt would wait for ever
	leastPatience = time.Second           // with the holder of the lock
	pollEvery     = 50 * time.Millisecond
	growBy        = 1 << 20 // bytes; bbolt's own 16 MiB would be most of a small file
)

// Options say how a checkpoint is opened.
type Options struct {
	Wait     time.Duration // how long to wait for the lock; a second at least
	ReadOnly bool          // take a shared lock and write nothing
	Require  bool          // ErrMissing instead of a new file; ReadOnly implies it
	Used     bool          // ErrMissing also for a file that knows nothing because its run was refused or killed
	Check    bool          // check every page and record, even if the file is as the last run left it
	Moved    bool          // open the file for writing even if it was copied to another place, or is being filled
	Here     bool          // check the file in this process, although a damaged file may crash it
	AnyPlace bool          // accept any file system
	Empty    bool          // Repair: make a checkpoint even if nothing can be read in the file
	Unsynced bool          // for tests: nothing waits for the disk
	Now      func() time.Time

	Witnesses *checkpoint.Witnesses // the book says how the file was left; nil: nobody knows

	magic   func(string) (int64, error) // instead of statfs(2), for tests
	gather  generationSize              // instead of the constants, for tests
	checker []string                    // starts a process that calls CheckFile, for tests
}

// Open opens the checkpoint at path, or makes a new one for t. The zero Target opens a checkpoint of any target; set
// ReadOnly or Require with it. The directory must exist. The whole file is checked first, unless it is as the last run
// in this boot of the machine left it. Errors are *[checkpoint.OpenError] around a sentinel or the system's error.
func Open(path string, t checkpoint.Target, o Options) (*Store, error) {
	d := newStore(resolved(path), o)
	err := d.open(t)
	if err == nil {
		return d, nil
	}
	_ = d.fail(err)
	if d.fresh && d.locked {
		os.Remove(d.path) // it holds nothing yet
	}
	if d.file != nil {
		d.release()
	}
	return nil, d.openError(err)
}

func newStore(path string, o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{
		path: path, o: o, claimed: make(map[string]checkpoint.KeptKey),
		entries: newBuffered(inEntries, newEntries, o.gather), leads: newBuffered(inLeads, newLeads, o.gather),
	}
}

func (d *Store) open(t checkpoint.Target) (err error) {
	if err := d.checkPlace(); err != nil {
		return err
	}
	if err := d.openLocked(t); err != nil {
		return err
	}
	if err := looksWhole(d.file); err != nil {
		return err
	}
	// If the file is as the last run left it, it needs no check: that run checked it, or wrote all of it.
	checked := !d.o.Check && (d.fresh || d.o.Witnesses.Left(d.leftAs()))
	if !checked {
		if checked, err = d.checkApart(); err != nil {
			return err
		}
	}
	if err := d.mapFile(); err != nil {
		return err
	}
	if err := d.inspect(t, checked); err != nil {
		return err
	}
	h := d.head.Load()
	if err := checkpoint.RefuseElsewhere(d.path, h.ID, h.Moved, h.Filling); err != nil && !d.o.Moved &&
		(h.Moved == "" || !d.o.ReadOnly) {
		return err
	}
	if err := d.protectFile(); err != nil {
		return err
	}
	return d.startUse()
}

func (d *Store) mapFile() error {
	err := guard(func() (err error) {
		d.bolt, err = bbolt.Open(d.path, 0o600, &bbolt.Options{
			Timeout: leastWait, ReadOnly: d.o.ReadOnly, NoStatistics: true,
			OpenFile: func(string, int, os.FileMode) (*os.File, error) { return d.file, nil },
		})
		return err
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return d.inUse()
	}
	if err == nil {
		d.bolt.AllocSize, d.bolt.NoSync = growBy, d.o.Unsynced
	}
	return err
}

// load reads the header, and refuses a file that is not this target's checkpoint.
func (d *Store) load(tx *bbolt.Tx, t checkpoint.Target) error {
	meta := tx.Bucket(inMeta)
	if meta == nil || meta.Get(headerKey) == nil {
		return d.refuse(checkpoint.ErrDamaged, "is a database, but not a checkpoint",
			"check the path: each run prints that of its checkpoint")
	}
	h, err := decodeHeader(meta.Get(headerKey))
	if err != nil {
		return err
	}
	if h.Format != checkpoint.Format {
		return d.refuse(checkpoint.ErrVersion,
			fmt.Sprintf("has format version %d; this program reads version %d", h.Format, checkpoint.Format),
			"use the program that wrote it, or export it with that one and adopt the export into a new checkpoint")
	}
	if t != (checkpoint.Target{}) && t.Canonical() != h.Target.Canonical() {
		text := fmt.Sprintf("belongs to another target: trunk %q, leads URL %q and base URL %q", h.Target.TrunkID,
			h.Target.LeadsURL, h.Target.BaseURL)
		return d.refuse(checkpoint.ErrTarget, text,
			"name the target that this checkpoint belongs to (--base-url, --leads-url, --trunk-id or --profile)")
	}
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return damage("a part of it is missing")
		}
	}
	d.head.Store(h)
	d.digests = checkpoint.NewDigester(h.Secret)
	return errors.Join(d.entries.load(tx), d.leads.load(tx))
}

// startUse finds out whether the file is still unused.
func (d *Store) startUse() error {
	h := d.head.Load()
	if d.o.ReadOnly || d.fresh {
		return nil
	}
	if d.leftover = h.Erase; h.Erase { // the last writer had no room to compact it, or was killed before
		d.warn(fmt.Sprintf(stillThere, d.path) + "; it is compacted when this command ends, if there is room beside it")
	}
	var err error
	if d.unused, err = checkpoint.Untouched(context.Background(), d); d.unused && d.o.Used {
		return d.refuse(checkpoint.ErrMissing, "knows nothing: the run that made it ended before it sent anything", "")
	}
	return err
}

// SetMoved makes every later opening for writing refuse the file.
func (d *Store) SetMoved(to string) error { return d.setHeader(func(h *header) { h.Moved = to }) }

// Companions returns the paths of the other files that may be beside the checkpoint at path and belong to it.
func Companions(path string) []string { return []string{path + ".compact", path + ".replacing"} }

func (d *Store) replacingPath() string { return d.path + ".replacing" }
func (d *Store) compactPath() string   { return d.path + ".compact" }

func (d *Store) warn(text string) { d.warnings = append(d.warnings, text) }

func (d *Store) refuse(kind error, text, hint string) error {
	return checkpoint.Refuse(d.path, kind, text, hint)
}

func (d *Store) openError(err error) error {
	if refused := (*checkpoint.OpenError)(nil); errors.As(err, &refused) {
		return err
	}
	if errors.Is(err, checkpoint.ErrDamaged) {
		_, damage, within := strings.Cut(err.Error(), d.path+": ")
		if !within {
			damage = err.Error()
		}
		repair := "leadferry checkpoint repair " + shell.Path(d.path) + " " + shell.Path(d.path+".repaired")
		return d.refuse(err, "is "+damage, "put a copy of it back; if there is none, "+repair+
			" makes a new one from what can be read, and holds rows whose leads may be lost")
	}
	return d.refuse(err, "cannot be opened: "+err.Error(), disk.WayOut(err))
}
