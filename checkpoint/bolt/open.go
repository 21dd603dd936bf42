package bolt

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/pages"
	"leadferry/checkpoint/bolt/records"
	"leadferry/internal/disk"
)

const (
	leastWait = 50 * time.Millisecond // bbolt waits for ever when told 0
	pollEvery = 50 * time.Millisecond
	growBy    = 1 << 20 // bytes; bbolt's own 16 MiB would be most of a small file
)

// Options say how a checkpoint is opened.
type Options struct {
	Wait     time.Duration // how long to wait for the lock; 0 tries once
	ReadOnly bool          // take a shared lock and write nothing, not even PATH.seq
	Require  bool          // ErrMissing instead of a new file; ReadOnly implies it
	Used     bool          // ErrMissing for a file, too, that has known nothing because its run was refused or killed
	Check    bool          // check every page and record, whatever PATH.seq says
	Accept   bool          // check, and take an older copy as incomplete, under a new ID
	Anew     bool          // make a new file although one is known to have been here
	Moved    bool          // open it for writing though it was copied to another place, or is being filled
	Named    bool          // a person chose the path: a missing file matters for what was here alone
	AnyPlace bool          // take any file system for good
	Now      func() time.Time

	Witnesses []checkpoint.Witness // what runs left elsewhere

	magic  func(string) (int64, error) // instead of statfs(2), for tests
	host   string                      // instead of /etc/machine-id, for tests
	before *Store                      // the same file, as it was opened before it was compacted, or could not be
	gather gathering                   // instead of the constants, for tests
}

// Open opens the checkpoint at path, or makes a new one for t; the zero Target
// opens one of whatever target and makes none. Its directory must exist. The whole file is
// checked first, unless it is as the last run in this boot of the machine left it, or was
// killed with it. Errors are *[checkpoint.OpenError] around a sentinel or the system's error.
func Open(path string, t checkpoint.Target, o Options) (*Store, error) {
	d, err := openIdle(path, t, o)
	if err != nil || o.ReadOnly {
		return d, err
	}
	d.w = d.newWriting()
	if d.acceptOlder != nil {
		if err := d.acceptOlder(); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	d.statusWriter = newStatusWriter(d)
	if d.erase.Load() && o.before == nil {
		return d.finishErasing(t, o)
	}
	d.erase.Store(false)
	return d, nil
}

func openIdle(path string, t checkpoint.Target, o Options) (*Store, error) {
	d := &Store{path: resolved(path), readOnly: o.ReadOnly, now: o.now}
	d.entries, d.leads = newBuffered(inEntries, newEntries, false, o.gather), newBuffered(inLeads, newLeads, true, o.gather)
	if o.before != nil {
		d.warnings, d.tookOlder = o.before.warnings, o.before.tookOlder
	}
	if err := d.open(t, o); err != nil {
		d.abandon(err)
		return nil, d.openError(err)
	}
	return d, nil
}

func (d *Store) open(t checkpoint.Target, o Options) error {
	if err := d.checkPlace(o); err != nil {
		return err
	}
	if err := d.openLocked(t, o); err != nil {
		return err
	}
	m, found, err := readSeq(d.seqPath())
	if err != nil {
		return err
	}
	img, err := pages.Inspect(d.file)
	if err != nil {
		return err
	}
	// More is not read before the check.
	if err := guard(func() error { return img.Peek(inMeta, inWords, inRuns, inIntents, inBlocked, newEntries, newLeads) }); err != nil {
		return err
	}
	if err := d.openBolt(t); err != nil {
		return err
	}
	if err := d.stillHere(o); err != nil {
		return err
	}
	if err := d.takeCare(); err != nil {
		return err
	}
	return d.startUse(m, found, img, o)
}

// untouched says whether the file is as the last run left it, or was killed with it, in this
// boot of the machine: then what it holds was checked before, or written since.
func (d *Store) untouched(m seqLine, found bool) bool {
	seq, same := d.tally.Load().seq, m.file != 0 && m.file == d.fileOf(m.clean) && (m.clean || !d.writtenAfter(m.written))
	return found && same && m.id == d.header.id && (m.seq == seq || !m.clean && m.seq+1 == seq)
}

// lookOver checks what a look-up would miss in silence, and what is little: the rows in doubt and the forgotten keys. Look-ups
// notice other damage that they meet.
func (d *Store) lookOver() error {
	return guard(func() error {
		return d.bolt.View(func(tx *bbolt.Tx) error {
			for name, state := range map[string]checkpoint.State{string(inIntents): checkpoint.InDoubt, string(inBlocked): checkpoint.Forgotten} {
				left := d.tally.Load().keys[state]
				err := tx.Bucket([]byte(name)).ForEach(func(k, v []byte) error { left--; return sealed(k, v) })
				if err == nil && left != 0 {
					err = pages.Damage("it holds more or fewer records than it counted")
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (d *Store) openBolt(t checkpoint.Target) error {
	err := guard(func() (err error) {
		d.bolt, err = bbolt.Open(d.path, 0o600, &bbolt.Options{
			Timeout: leastWait, ReadOnly: d.readOnly, NoStatistics: true,
			OpenFile: func(string, int, os.FileMode) (*os.File, error) { return d.file, nil },
		})
		return err
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return d.inUse()
	}
	if err != nil {
		return err
	}
	d.bolt.AllocSize = growBy
	return guard(func() error { return d.bolt.View(func(tx *bbolt.Tx) error { return d.load(tx, t) }) })
}

func (d *Store) load(tx *bbolt.Tx, t checkpoint.Target) (err error) {
	meta := tx.Bucket(inMeta)
	if meta == nil || meta.Get(headerKey) == nil {
		return d.refuse(checkpoint.ErrDamaged, "is a database, but not a checkpoint", "check the path: each run prints that of its checkpoint")
	}
	if d.header, err = decodeHeader(meta.Get(headerKey)); err != nil {
		return err
	}
	if v := d.header.version; v != format {
		return d.refuse(checkpoint.ErrVersion, fmt.Sprintf("has format version %d; this program reads version %d", v, format),
			"use the program that wrote it, or export it with that one and adopt the export into a new checkpoint")
	}
	if differ := d.header.differences(t); differ != "" && t != (checkpoint.Target{}) {
		return d.refuse(checkpoint.ErrTarget, "belongs to another target: its "+differ, otherTarget)
	}
	d.moving = moving(meta)
	for _, name := range buckets() {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("%w: a part of it is missing", checkpoint.ErrDamaged)
		}
	}
	d.erase.Store(meta.Get(eraseKey) != nil)
	c, err := decodeTally(meta.Get(tallyKey))
	d.tally.Store(&c)
	d.digests = checkpoint.NewDigester(d.header.secret)
	d.words = records.NewWords()
	l := new(lacking)
	err = errors.Join(err, l.load(meta, c.seq))
	d.missing.Store(l)
	return errors.Join(err, d.words.Load(tx.Bucket(inWords)), d.entries.load(tx), d.leads.load(tx))
}

// startUse compares the file with PATH.seq, checks its records and notes in PATH.seq that it
// is open.
func (d *Store) startUse(m seqLine, found bool, img *pages.Image, o Options) error {
	d.host = hostOf(cmp.Or(o.host, "/etc/machine-id"), d.header.secret)
	d.asOpen.Store(d.fileOf(false))
	if !found && !d.fresh {
		d.warn(d.seqPath() + " is missing or unreadable: whether the checkpoint was restored from an older copy cannot be seen")
	}
	if err := d.judgeAge(m, found, &o); err != nil {
		return err
	}
	check := d.lookOver
	if o.Check || o.Accept || !d.untouched(m, found) {
		check = func() error { return d.survey(img) }
	}
	if err := check(); err != nil {
		return err
	}
	if d.lacks().some {
		d.warn(d.lacks().warning())
	}
	if d.readOnly {
		return nil
	}
	if err := d.checkUnused(!found || !m.clean, o); err != nil {
		return err
	}
	if d.fresh && found && m.id != d.header.id {
		d.replaced = &m
	}
	var err error
	if d.seqFile, err = openSeq(d.seqPath()); err != nil {
		return err
	}
	if d.acceptOlder != nil {
		return nil // PATH.seq speaks of the newer one until this one says that it is older
	}
	if err := d.stamp(false); err != nil {
		return err
	}
	return errors.Join(d.seqFile.Sync(), disk.SyncFolder(filepath.Dir(d.path)))
}

// judgeAge refuses a file that is older than what is known to have been here, or notes that it is to be taken for good.
func (d *Store) judgeAge(m seqLine, found bool, o *Options) error {
	older, err := d.older(m, found, o)
	switch {
	case err != nil:
		return err
	case d.fresh:
	case older == "" && found && m.host != d.host && m.host != 0 && d.host != 0:
		d.warn("the checkpoint was used on another machine before: if a copy of it goes on there, each makes leads again that the other has made")
	case older == "":
	case !o.Accept:
		if err := d.keepOlder(m, found, o); err != nil {
			return err
		}
		return d.refuse(checkpoint.ErrRolledBack, older, "put the one back that was used last; if there is none, `leadferry checkpoint check --accept-older` "+
			"takes this one: rows that it does not know are held then, not sent")
	default:
		d.tookOlder = true
		d.acceptOlder = func() error { return d.takeOlder(m, found, o) }
	}
	return nil
}

// checkUnused looks whether an earlier run made the file and was killed before it used it, or
// while it removed it.
func (d *Store) checkUnused(killed bool, o Options) error {
	if d.fresh || !killed || d.tally.Load().total() > 0 || d.lacks().some || len(d.header.ancestors) > 0 {
		return nil
	}
	unused, err := d.unused()
	if unused && o.Used {
		return d.refuse(checkpoint.ErrMissing, "knows nothing: the run that made it ended before it sent anything", "")
	}
	if d.fresh = unused; !unused || err != nil {
		return err
	}
	gone, hint := d.gone(d.header.target, &o) // what that run was asked about, this one is too
	if gone != "" && !o.Anew {
		return d.refuse(checkpoint.ErrGone, gone, hint)
	}
	d.predecessor = gone
	return nil
}

// Companions are the paths of the files that belong to the checkpoint at path and stand
// beside it, or come to.
func Companions(path string) []string {
	return []string{path + ".seq", path + ".compact", path + ".status"}
}

func (d *Store) seqPath() string { return d.path + ".seq" }

func (d *Store) compactPath() string { return d.path + ".compact" }

func (d *Store) warn(text string) { d.warnings = append(d.warnings, text) }

func (d *Store) refuse(kind error, text, hint string) error { return refuse(d.path, kind, text, hint) }

func refuse(path string, kind error, text, hint string) error {
	return &checkpoint.OpenError{Path: path, Text: text, Hint: hint, Err: kind}
}

// otherTarget is what to do about a file of another target.
const otherTarget = "name the target that this one belongs to; where --checkpoint is given, leave it out, and the target meets its own"

// wayOut is what to do about a damaged file.
const wayOut = "put a copy of it back; if there is none, `leadferry checkpoint repair` makes a new one of what can be read, " +
	"which holds back the rows whose leads may be lost"

// openError gives every error of opening its path and a sentence.
func (d *Store) openError(err error) error {
	if refused := (*checkpoint.OpenError)(nil); errors.As(err, &refused) {
		return err
	}
	if errors.Is(err, checkpoint.ErrDamaged) {
		_, damage, within := strings.Cut(err.Error(), d.path+": ")
		if !within {
			damage = err.Error()
		}
		return d.refuse(err, "is "+damage, wayOut)
	}
	if errors.Is(err, errAnothers) {
		return d.refuse(err, "cannot be opened: "+err.Error(), "run this as that user, or make the file yours (chown) if you know what is in it")
	}
	return d.refuse(err, "cannot be opened: "+err.Error(), disk.WayOut(err))
}

func (d *Store) abandon(err error) {
	_ = d.fail(err)
	if d.seqFile != nil {
		d.seqFile.Close()
	}
	if d.fresh && d.held && d.seqFile == nil {
		os.Remove(d.path) // it holds nothing yet
	}
	if d.file != nil {
		d.release()
	}
}
