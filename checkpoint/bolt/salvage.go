package bolt

import (
	"bytes"
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
// key. It looks at every page that is not on the list of free ones (at all of them, where that
// list is lost), takes each record whose checksum is right, and of several under one key the
// latest. So a row that was given free since may be in doubt again, and must be looked up once
// more. An error of f ends it and is returned as it is; other errors are *[OpenError].
func Salvage(path string, f func(checkpoint.Entry) error) (r Salvaged, err error) {
	s, err := salvageFile(path)
	if err != nil {
		return r, err
	}
	r = s.sum()
	for _, key := range slices.Sorted(maps.Keys(s.records)) {
		var e checkpoint.Entry
		if err := s.blank.Decode(key, s.records[key].record, &e); err != nil {
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
		records: make(map[string]version), blocked: make(map[string][]byte), notes: make(map[string][]byte),
		texts: make([]string, records.MaxWords),
	}
	s.blank = records.WordsOf(s.texts)
	if err := s.read(d); err != nil {
		return nil, d.openError(err)
	}
	s.dropUnusable()
	return s, nil
}

// salvage is what was found in the pages so far.
type salvage struct {
	records map[string]version // by key, the latest
	texts   []string           // by number; those that are lost are empty
	blank   *records.Words     // the same texts
	blocked map[string][]byte
	notes   map[string][]byte    // by name
	header  header               // version 0: none was found
	digests *checkpoint.Digester // of the header, once all was read
	moving  string               // see movingKey
}

type version struct {
	record []byte // nil: none
	seq    uint64
	state  checkpoint.State
}

// precedes says whether another one of the same key came later. An intent hides an entry of
// the same commit.
func (v *version) precedes(other *version) bool {
	return v.record == nil || v.seq < other.seq || v.seq == other.seq && other.state == checkpoint.InDoubt
}

// counts says whether the row must not be sent again.
func (v *version) counts() bool { return v.state.HasLead() || v.state == checkpoint.InDoubt }

// dropUnusable removes what was forgotten and what cannot be read.
func (s *salvage) dropUnusable() {
	s.digests = checkpoint.NewDigester(s.header.secret)
	for key, v := range s.records {
		var e checkpoint.Entry
		if s.blank.Decode(key, v.record, &e) != nil || s.header.version != 0 && s.blocked[string(s.digests.Blocked(key))] != nil {
			delete(s.records, key)
		}
	}
}

func (s *salvage) nothing() bool { return len(s.records) == 0 && s.header.version == 0 }

func (s *salvage) sum() (r Salvaged) {
	for _, v := range s.records {
		r.Keys[v.state]++
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
	pages.Scan(d.file, info.Size(), false, s.record)
	if s.header.version == 0 { // an older page has it mostly
		pages.Scan(d.file, info.Size(), true, func(key, value []byte) { s.meta(key, value) })
	}
	return nil
}

// record keeps an entry, an intent or a word. What else has a checksum is told from
// them by its shape.
func (s *salvage) record(key, value []byte) {
	if _, err := records.Unseal(key, value); err != nil {
		return
	}
	if n, text, err := records.DecodeWord(key, value); err == nil {
		s.texts[n-1] = text
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
	v, last := version{bytes.Clone(value), k.Seq, k.State}, s.records[k.Key]
	if last.precedes(&v) {
		s.records[k.Key] = v
	}
}

// other keeps what is neither an entry nor an intent and reports whether it was that.
func (s *salvage) other(key, value []byte) bool {
	if s.meta(key, value) {
		return true
	}
	if n, err := decodeNote(key, value); err == nil {
		s.notes[n.Name] = n.Value
		return true
	}
	if _, err := records.DecodeBlock(key, value); err == nil {
		s.blocked[string(key)] = bytes.Clone(value)
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
		if is {
			s.header = h
		}
		return is
	case string(tallyKey):
		_, err := decodeTally(value)
		return err == nil
	case string(movingKey):
		text, is := soleText(key, value)
		if is {
			s.moving = text
		}
		return is
	case string(lackingKey):
		_, err := decodeLacking(value)
		return err == nil
	}
	return false
}

// soleText is the text of a record that holds nothing else; is says whether it is such a record.
func soleText(key, record []byte) (text string, is bool) {
	f, err := records.Unseal(key, record)
	text = f.Text()
	return text, err == nil && f.Done() == nil
}
