package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/pages"
	"leadferry/checkpoint/bolt/records"
	"leadferry/internal/disk"
)

// Salvaged says what could be read of a damaged file.
type Salvaged struct {
	Keys      [states]int // by State
	Forgotten int         // keys whose hash was found; an export cannot hold them
}

// Salvage reads of a damaged file what can be read and calls f with it, ordered by
// key. It looks at every page, also at unused ones, takes each record whose checksum
// is right, and of several under one key the latest. So nothing that was ever
// durable and is whole is missed; a row that was given free since may be in doubt
// again, and must be looked up once more. An error of f ends it and is
// returned as it is; other errors are *[OpenError].
func Salvage(path string, f func(checkpoint.Entry) error) (r Salvaged, err error) {
	s, err := salvageFile(path)
	if err != nil {
		return r, err
	}
	r = s.sum()
	for _, key := range slices.Sorted(maps.Keys(s.records)) {
		var e checkpoint.Entry
		if err := s.blank.Decode(key, s.records[key].last.record, &e); err != nil {
			return r, err
		}
		if err := f(e); err != nil {
			return r, err
		}
	}
	return r, nil
}

func salvageFile(path string) (*salvage, error) {
	d := &Store{path: resolved(path), readOnly: true} // as Open does
	s := &salvage{
		records: make(map[string]piece), blocked: make(map[string][]byte), shapes: make(map[string][]byte),
		runs: make(map[uint64]told[[]byte]), audit: make(map[uint64]told[[]byte]),
	}
	s.texts, s.sure = make([]string, records.MaxWords), make([]bool, records.MaxWords)
	s.blank = records.WordsOf(s.texts)
	if err := s.read(d); err != nil {
		return nil, d.openError(err)
	}
	s.sift()
	return s, nil
}

// salvage is what was found in the pages so far.
type salvage struct {
	records map[string]piece
	texts   []string       // by number; those that are lost are empty
	sure    []bool         // of texts: it stood in a page in use
	blank   *records.Words // the same texts
	blocked map[string][]byte
	shapes  map[string][]byte
	runs    map[uint64]told[[]byte] // by number
	audit   map[uint64]told[[]byte]
	header  header               // version 0: none was found
	digests *checkpoint.Digester // of the header, once all was read
	tally   tally                // the last one
	lineage told[[]byte]
	moving  told[string] // see movingKey

	headerInUse bool // it stands in a page in use
	inUse       bool // the record under way stands in a page in use: nothing in it was deleted
}

// told is what the file tells of itself as a whole, or under a number. What stands in a page in use comes first: elsewhere it may have been taken
// back.
type told[T any] struct {
	value       T
	some, inUse bool
}

func (t *told[T]) take(value T, inUse bool) {
	if inUse || !t.inUse {
		*t = told[T]{value, true, inUse}
	}
}

// stands says whether it was not taken back, as far as a file tells of which the header stands in a page in use.
func (t *told[T]) stands(headerInUse bool) bool { return t.inUse || t.some && !headerInUse }

// piece is the latest record under a key, and the latest one in a page in use.
type piece struct{ last, inUse version }

type version struct {
	record []byte // nil: none
	seq    uint64
	state  checkpoint.State
	act    checkpoint.Act
}

// precedes says whether another one of the same key came later. An intent hides an entry of
// the same commit.
func (v *version) precedes(other *version) bool {
	return v.record == nil || v.seq < other.seq || v.seq == other.seq && other.state == checkpoint.InDoubt
}

// counts says whether the row must not be sent again.
func (v *version) counts() bool { return v.state.HasLead() || v.state == checkpoint.InDoubt }

// sift throws away what was deleted, as far as that can be told: what was forgotten and,
// where nothing in use is lost, what stood in unused pages alone.
func (s *salvage) sift() {
	s.digests = checkpoint.NewDigester(s.header.secret)
	whole := s.tally.seq > 0 && s.inUseCount() >= s.tally.known()
	for key, p := range s.records {
		if whole {
			p.last = p.inUse
		}
		var e checkpoint.Entry
		err := s.blank.Decode(key, p.last.record, &e)
		if p.last.record == nil || err != nil || s.header.version != 0 && s.blocked[string(s.digests.Blocked(key))] != nil {
			delete(s.records, key)
			continue
		}
		s.records[key] = p
	}
}

func (s *salvage) nothing() bool {
	return len(s.records) == 0 && s.header.version == 0 && s.tally.seq == 0
}

// inUseCount counts the leads and rows in doubt that stand in pages in use.
func (s *salvage) inUseCount() (n uint64) {
	for _, p := range s.records {
		if p.inUse.counts() {
			n++
		}
	}
	return n
}

func (s *salvage) sum() (r Salvaged) {
	for _, p := range s.records {
		r.Keys[p.last.state]++
	}
	r.Forgotten = len(s.blocked)
	return r
}

func (s *salvage) read(d *Store) (err error) {
	if d.file, err = openOwn(d.path, os.O_RDONLY); errors.Is(err, fs.ErrNotExist) {
		return d.refuse(checkpoint.ErrMissing, "does not exist", "check the path: each run prints that of its checkpoint")
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.Unlock(d.file), d.file.Close()) }()
	held, err := disk.TryLock(d.file, true)
	if err != nil {
		return err
	}
	if !held {
		return d.inUse()
	}
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	pages.Scan(d.file, info.Size(), func(inUse bool, key, value []byte) {
		s.inUse = inUse
		s.record(key, value)
	})
	return nil
}

// record keeps an entry, an intent or a word. What else has a checksum is told from
// them by its shape.
func (s *salvage) record(key, value []byte) {
	if _, err := records.Unseal(key, value); err != nil {
		return
	}
	if n, text, err := records.DecodeWord(key, value); err == nil {
		if s.inUse || !s.sure[n-1] { // one of a commit that was cut off may stand in an unused page
			s.texts[n-1], s.sure[n-1] = text, s.inUse
		}
		return
	}
	if _, items, err := records.OpenLine(key, value); err == nil {
		_ = items.Each(func(key, value []byte) error { // entries; in a line of the index are none
			s.record(key, value)
			return nil
		})
		return
	}
	if s.other(key, value) {
		return
	}
	k, err := s.blank.Kept(string(key), value)
	if err != nil {
		return
	}
	v := version{bytes.Clone(value), k.Seq, k.State, k.Act}
	p := s.records[k.Key]
	if p.last.precedes(&v) {
		p.last = v
	}
	if s.inUse && p.inUse.precedes(&v) {
		p.inUse = v
	}
	s.records[k.Key] = p
}

// other keeps what is neither an entry nor an intent and reports whether it was that.
func (s *salvage) other(key, value []byte) bool {
	if s.meta(key, value) {
		return true
	}
	keep := bytes.Clone(value)
	if _, err := decodeShape(key, value); err == nil {
		s.shapes[string(key)] = keep
		return true
	}
	if len(key) == len(checkpoint.Digest{}) {
		if _, err := records.DecodeBlock(key, value); err == nil {
			s.blocked[string(key)] = keep
			return true
		}
	}
	if len(key) == 8 && len(value) > 0 && value[0] > byte(checkpoint.NotMade) {
		lines := s.runs
		if _, err := decodeAudit(key, value); err == nil {
			lines = s.audit
		} else if _, err := decodeRun(key, value); err != nil {
			return false
		}
		one := lines[binary.BigEndian.Uint64(key)]
		one.take(keep, s.inUse)
		lines[binary.BigEndian.Uint64(key)] = one
		return true
	}
	return false
}

// meta takes what is told of the file as a whole, and tells it from an entry whose key is
// its name.
func (s *salvage) meta(key, value []byte) bool {
	switch string(key) {
	case string(headerKey):
		h, err := decodeHeader(value)
		is := err == nil && h.version == format // an entry begins with its state, which reads as a version
		if is && (s.inUse || s.header.version == 0) {
			s.header, s.headerInUse = h, s.inUse
		}
		return is
	case string(tallyKey):
		t, err := decodeTally(value)
		if err == nil && t.seq > s.tally.seq {
			s.tally = t
		}
		return err == nil
	case string(noteKey(checkpoint.LineageNote)):
		f, err := records.Unseal(key, value)
		text := f.Text()
		is := err == nil && f.Done() == nil
		if is {
			s.lineage.take([]byte(text), s.inUse)
		}
		return is
	case string(movingKey):
		f, err := records.Unseal(key, value)
		text := f.Text()
		is := err == nil && f.Done() == nil
		if is {
			s.moving.take(text, s.inUse)
		}
		return is
	case string(lackingKey):
		_, err := decodeLacking(value)
		return err == nil
	}
	return false
}
