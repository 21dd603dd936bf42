package bolt

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
)

// seqLine is what PATH.seq holds: which file it belongs to, the number of that
// file's last commit, what it knew then, and whether a run ended in order. It is one line of
// fixed length, overwritten in place and well inside one disk sector.
type seqLine struct {
	id    fileID
	seq   uint64
	leads uint64 // keys with a lead or in doubt, as of that commit
	clean bool
	pid   int
	host  uint64 // keyed hash of the machine's ID; 0: it has none
	file  uint64 // keyed hash of the boot, of which file it is and, where a run ended in order, as what it was left; 0: nobody knows

	written time.Time // when the line itself was, by the system's clock; zero: it was not read
}

const seqForm = "leadferry-checkpoint %016x %020d %020d %-5s %010d %016x %016x"

func (m seqLine) line() []byte {
	state := "open"
	if m.clean {
		state = "clean"
	}
	s := fmt.Sprintf(seqForm, uint64(m.id), m.seq, m.leads, state, m.pid, m.host, m.file)
	return fmt.Appendf(nil, "%s %08x\n", s, crc32.Checksum([]byte(s), crc32.MakeTable(crc32.Castagnoli)))
}

// parseSeqLine accepts exactly what line writes.
func parseSeqLine(line []byte) (m seqLine, ok bool) {
	state := ""
	_, err := fmt.Sscanf(string(line), "leadferry-checkpoint %x %d %d %s %d %x %x ", &m.id, &m.seq, &m.leads, &state, &m.pid, &m.host, &m.file)
	m.clean = state == "clean"
	return m, err == nil && string(m.line()) == string(line)
}

// hostOf is what the line says of the machine whose ID stands in the file at path: that it is
// another one than before, and no more. Containers mostly have none.
func hostOf(path string, secret []byte) uint64 {
	id, err := os.ReadFile(path)
	if id = bytes.TrimSpace(id); err != nil || len(id) != 32 {
		return 0
	}
	return keyed(secret, id)
}

// fileOf is what the line says of the file itself: that it is this one since the machine was
// started and, once a run has ended in order, that nobody has written to it since.
func (d *Store) fileOf(ended bool) uint64 {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	info, failed := d.file.Stat()
	if err != nil || failed != nil || disk.FileNumber(info) == "" {
		return 0
	}
	text := fmt.Appendf(boot, " %s", disk.FileNumber(info))
	if ended {
		text = fmt.Appendf(text, " %d %d", info.Size(), info.ModTime().UnixNano())
	}
	return keyed(d.header.secret, text)
}

// latestCommit is how long after PATH.seq the file is written to at most by a commit that a kill cut off, unless the disk is slow
// beyond measure: then all of the file is checked, to no harm.
const latestCommit = 2 * time.Second

// writtenAfter says that somebody has written to the file long after a time.
func (d *Store) writtenAfter(mark time.Time) bool {
	info, err := d.file.Stat()
	return err != nil || info.ModTime().Sub(mark) > latestCommit
}

func keyed(secret, text []byte) uint64 {
	mac := hmac.New(sha256.New, secret)
	mac.Write(text)
	return binary.BigEndian.Uint64(mac.Sum(nil))
}

// readSeq returns found == false when PATH.seq is missing or unreadable.
func readSeq(path string) (m seqLine, found bool, err error) {
	f, err := openOwn(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, fmt.Errorf("read sequence file: %w", err)
	}
	defer f.Close()
	line, err := io.ReadAll(io.LimitReader(f, 1<<10)) // the line has a tenth of that
	if err != nil {
		return m, false, fmt.Errorf("read sequence file: %w", err)
	}
	m, found = parseSeqLine(line)
	if info, err := f.Stat(); err == nil {
		m.written = info.ModTime()
	}
	return m, found, nil
}

// openOwn opens a file beside the checkpoint, or the checkpoint itself: never through a
// symbolic link, which somebody may have planted, nor one that he may have written.
func openOwn(path string, flags int) (*os.File, error) {
	var f *os.File
	err := disk.OpenPatiently(0, func() (err error) {
		f, err = os.OpenFile(path, flags|disk.NoFollow|disk.NonBlock, 0o600)
		return err
	})
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link, which is not followed", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", path)
	case !disk.Trusted(info):
		err = fmt.Errorf("%s %w", path, errAnothers)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

var errAnothers = errors.New("belongs to another user, who may have written what he likes into it")

func openSeq(path string) (*os.File, error) {
	f, err := openOwn(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	narrow(f)
	if err := f.Truncate(int64(len(seqLine{}.line()))); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// witnesses are those that speak of this file or of its target.
func (o *Options) witnesses(keep func(*checkpoint.Witness) bool) (kept []*checkpoint.Witness) {
	for i := range o.Witnesses {
		if w := &o.Witnesses[i]; keep(w) {
			kept = append(kept, w)
		}
	}
	slices.SortStableFunc(kept, func(a, b *checkpoint.Witness) int { return b.Ended.Compare(a.Ended) })
	return kept
}

func knewAny(w *checkpoint.Witness) bool { return w.Leads+w.Made > 0 }

func whatKnew(w *checkpoint.Witness) string {
	return "knew or made " + english.Plural(w.Leads+w.Made, "lead", "")
}

// at says whether the run used the checkpoint at path.
func at(w *checkpoint.Witness, path string) bool {
	return w.Path == path || resolved(w.Path) == path
}

// resolved is the one name of a file, whatever folder the program was started in: absolute,
// with symbolic links followed, also where the file is not there yet.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return path
}

// gone says what a checkpoint that is missing has known, or nothing, and what to do.
func (d *Store) gone(t checkpoint.Target, o *Options) (text, hint string) {
	const anew = "; --new-checkpoint begins anew: rows that it knew are made again when they come"
	w := o.witnesses(func(w *checkpoint.Witness) bool {
		return knewAny(w) && (at(w, d.path) || !o.Named && w.Target.Canonical() == t.Canonical())
	})
	// What was here comes first, then what knew most: a file that was made by mistake since
	// would be named to the same end as none.
	here := map[bool]int{true: 1}
	slices.SortStableFunc(w, func(a, b *checkpoint.Witness) int {
		return cmp.Or(here[at(b, d.path)]-here[at(a, d.path)], cmp.Compare(b.Leads+b.Made, a.Leads+a.Made))
	})
	if len(w) == 0 {
		m, found, err := readSeq(d.seqPath())
		if err != nil || !found || m.leads == 0 {
			return "", ""
		}
		return fmt.Sprintf("does not exist, though %s beside it counts %s that one here knew", d.seqPath(), english.Plural(int(m.leads), "lead", "")),
			"put it back" + anew
	}
	text = fmt.Sprintf("does not exist, though a run of %s %s for this target (%s)", day(w[0].Ended), whatKnew(w[0]), w[0].Source)
	if at(w[0], d.path) {
		return text, "put it back" + anew
	}
	if _, err := os.Stat(w[0].Path); err == nil {
		return text, "name the one of that run: --checkpoint " + checkpoint.Word(w[0].Path) + anew
	}
	return text, "that run used " + w[0].Path + ": put it back" + anew
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }

// stranger is another checkpoint that was at this path.
type stranger struct {
	id   fileID
	text string // why this one is not it, as a sentence whose subject is the file
}

// strangers are the checkpoints that PATH.seq and witnesses name at this path and that this
// one does not descend from.
func (d *Store) strangers(m seqLine, found bool, o *Options) (all []stranger) {
	add := func(id fileID, text string) {
		if id != d.header.id && !slices.Contains(d.header.ancestors, id) {
			all = append(all, stranger{id, text})
		}
	}
	if found {
		add(m.id, fmt.Sprintf("is another one than %s beside it belongs to (its ID is %s, not %s): one of the two was put here from elsewhere, and what the other one knew would be made again",
			d.seqPath(), d.header.id, m.id))
	}
	for _, w := range o.witnesses(func(w *checkpoint.Witness) bool { return knewAny(w) && at(w, d.path) }) {
		if id, err := parseID(w.ID); err == nil {
			add(id, fmt.Sprintf("is another one than a run of %s used at this path (its ID is %s, not %s), and that one %s (%s), which would be made again",
				day(w.Ended), d.header.id, id, whatKnew(w), w.Source))
		}
	}
	return all
}

// descendFrom makes these its ancestors, in whose place it comes.
func (h *header) descendFrom(all []stranger) {
	for _, one := range all {
		if !slices.Contains(h.ancestors, one.id) {
			h.ancestors = append(h.ancestors, one.id)
		}
	}
}

func parseID(text string) (fileID, error) {
	id, err := strconv.ParseUint(text, 16, 64)
	return fileID(id), err
}

// older says why the file is not the newest of all that are known to have been here, or
// nothing.
func (d *Store) older(m seqLine, found bool, o *Options) (string, error) {
	const consequence = ": it would make leads twice"
	seq := d.tally.Load().seq
	ours := o.witnesses(func(w *checkpoint.Witness) bool { return w.ID == d.header.id.String() })
	slices.SortStableFunc(ours, func(a, b *checkpoint.Witness) int { return cmp.Compare(b.Sequence, a.Sequence) })
	if len(ours) > 0 && ours[0].Sequence > seq {
		return d.outrun(ours[0], fmt.Sprintf("is at commit %d, but a run of %s left it at commit %d", seq, day(ours[0].Ended), ours[0].Sequence)) + consequence, nil
	}
	if found && m.id == d.header.id && m.seq > seq {
		return fmt.Sprintf("is at commit %d, but commit %d was made already: it was restored from an older copy, or damaged%s", seq, m.seq, consequence), nil
	}
	if len(ours) > 0 { // else damage to a run shall not keep anybody from exporting the rest
		runs, err := d.Runs(context.Background())
		if err != nil {
			return "", err
		}
		known := make(map[string]bool)
		for _, r := range runs {
			known[r.ID] = true
		}
		for _, w := range ours {
			if w.Run != "" && !known[w.Run] {
				return d.outrun(w, fmt.Sprintf("does not know the run %s of %s, which sent something", w.Run, day(w.Ended))) + consequence, nil
			}
		}
	}
	if others := d.strangers(m, found, o); len(others) > 0 {
		return others[0].text, nil
	}
	if to := d.Moved(); to != "" && o.Accept {
		return "was copied to " + to, nil
	}
	return "", nil
}

// otherCheckpoint says of a new file which other one knows leads of its trunk, at another path that
// a person chose or under another address of the service, or nothing.
func (d *Store) otherCheckpoint(t checkpoint.Target, o *Options) string {
	var most *checkpoint.Witness
	for _, w := range o.witnesses(func(w *checkpoint.Witness) bool {
		return knewAny(w) && !at(w, d.path) && w.Target.Canonical().TrunkID == t.Canonical().TrunkID
	}) {
		if most == nil || w.Leads+w.Made > most.Leads+most.Made {
			most = w
		}
	}
	if most == nil {
		return ""
	}
	return fmt.Sprintf("%s: is new, though a run of %s %s for this trunk at %s, with another checkpoint, %s (%s): unless `leadferry checkpoint adopt` takes them over, they are made again when they come",
		d.path, day(most.Ended), whatKnew(most), most.Target.LeadsURL, most.Path, most.Source)
}

// keepOlder writes into PATH.seq what run folders know better: the file is refused from now
// on, wherever the program is started and whatever folder it is told to write to.
func (d *Store) keepOlder(m seqLine, found bool, o *Options) error {
	if d.readOnly || found && m.id != d.header.id {
		return nil
	}
	was := m.seq
	m.id = d.header.id
	for _, w := range o.witnesses(func(w *checkpoint.Witness) bool {
		return w.ID == d.header.id.String() && w.Sequence > d.tally.Load().seq
	}) {
		m.seq, m.leads = max(m.seq, w.Sequence), max(m.leads, uint64(w.Leads+w.Made))
	}
	if m.seq == was {
		return nil
	}
	f, err := openSeq(d.seqPath())
	if err != nil {
		return err
	}
	_, err = f.WriteAt(m.line(), 0)
	return errors.Join(err, f.Sync(), f.Close())
}

// outrun says of which file the run was, where that is not this path.
func (d *Store) outrun(w *checkpoint.Witness, text string) string {
	if at(w, d.path) {
		return fmt.Sprintf("%s (%s): it was restored from an older copy", text, w.Source)
	}
	return fmt.Sprintf("%s (%s, with the copy %s): one of the two is older", text, w.Source, w.Path)
}

// takeOlder makes an older copy, or one from elsewhere, this path's checkpoint for good: under
// a new ID, so that nobody takes it for what it was, and incomplete.
func (d *Store) takeOlder(m seqLine, found bool, o *Options) error {
	h := d.header
	h.ancestors = append(slices.Clone(h.ancestors), h.id)
	h.descendFrom(d.strangers(m, found, o))
	h.id = newHeader(checkpoint.Target{}, h.made).id
	lost := lacking{some: true}
	known := d.tally.Load().known()
	if found && m.leads > known {
		lost.leads = m.leads - known
	}
	for _, w := range o.witnesses(func(w *checkpoint.Witness) bool { return w.ID == d.header.id.String() }) {
		if n := uint64(w.Leads + w.Made); n > known {
			lost.leads = max(lost.leads, n-known)
		}
	}
	lost.leads += d.lacks().left()
	return d.alone(func(w *writing) error {
		lost.since = w.seq
		d.header = h
		d.missing.Store(&lost) // PATH.seq names it after the commit
		d.moving = ""
		return errors.Join(w.meta.Put(headerKey, h.encode()), w.meta.Put(lackingKey, lost.encode()), w.meta.Delete(movingKey))
	})
}
