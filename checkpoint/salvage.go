package checkpoint

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
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
// again, and must be looked up once more. An error of f ends it and is returned as it
// is; other errors are *[OpenError].
func Salvage(path string, f func(Entry) error) (r Salvaged, err error) {
	d := &DB{path: path, readOnly: true}
	s := salvage{records: make(map[string]piece), blocked: make(map[string]bool), blank: newWords()}
	s.texts = make([]string, maxWords)
	s.blank.texts.Store(&s.texts)
	if err := s.read(d); err != nil {
		return r, d.openError(err)
	}
	r.Forgotten = len(s.blocked)
	for _, key := range slices.Sorted(maps.Keys(s.records)) {
		var e Entry
		if _, err := s.blank.decode(key, s.records[key].record, &e); err != nil {
			continue // it names a word beyond all that there can be
		}
		r.Keys[e.State]++
		if err := f(e); err != nil {
			return r, err
		}
	}
	return r, nil
}

// salvage is what was found in the pages so far.
type salvage struct {
	records map[string]piece
	texts   []string // by number; those that are lost are empty
	blank   *words   // the same
	blocked map[string]bool
}

// piece is the latest record under a key.
type piece struct {
	record []byte
	seq    uint64
	doubt  bool
}

func (s *salvage) read(d *DB) (err error) {
	if d.file, err = openOwn(d.path, os.O_RDONLY); errors.Is(err, fs.ErrNotExist) {
		return d.refuse(ErrMissing, "does not exist", "")
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock(d.file), d.file.Close()) }()
	held, err := tryLock(d.file, true)
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
	img := &image{f: d.file, page: pageSize(d.file), pages: 1 << 40}
	for at := int64(0); at < info.Size(); at += img.page {
		s.page(img, at, info.Size())
	}
	return nil
}

// pageSize is what a meta page says, or else what this machine would use.
func pageSize(f *os.File) int64 {
	for at := int64(0); at <= 1<<16; at = max(1<<10, 2*at) {
		if m, ok := readMeta(f, at); ok {
			return m.page
		}
	}
	return int64(os.Getpagesize())
}

// page looks through one page, with those that continue it as far as there are any.
func (s *salvage) page(img *image, at, size int64) {
	b := make([]byte, img.page)
	n, _ := img.f.ReadAt(b, at)
	if n < pageHeader || native.Uint16(b[8:]) != leafPage {
		return
	}
	if more := int64(native.Uint32(b[12:])); more > 0 && more < size/img.page {
		b = make([]byte, (more+1)*img.page)
		n, _ = img.f.ReadAt(b, at)
	}
	s.leaf(b[:n])
}

func (s *salvage) leaf(b []byte) {
	for i := range int(native.Uint16(b[10:])) {
		if pageHeader+(i+1)*element > len(b) {
			return
		}
		kind, key, value, ok := leafElement(b, i)
		if !ok {
			continue
		}
		if kind == bucketValue && len(value) >= 2*pageHeader {
			s.leaf(value[pageHeader:]) // a small bucket stands in its value
		} else if f, err := unseal(key, value); err == nil {
			s.record(key, value, f)
		}
	}
}

// record keeps an entry, an intent or a word. What else has a checksum is told from
// them by its shape.
func (s *salvage) record(key, value []byte, f reader) {
	if word := f; len(key) == 4 {
		text := word.text()
		if n := int(wordNumber(key)); word.done() == nil && n > 0 && n <= maxWords {
			s.texts[n-1] = text
			return
		}
	}
	if _, inner, record, err := openRecent(key, value); err == nil {
		if f, err := unseal([]byte(inner), record); err == nil {
			s.record([]byte(inner), record, f)
			return
		}
	}
	if _, err := decodeNote(key, value); err == nil {
		return
	}
	if len(key) == len(Digest{}) {
		if _, err := decodeBlock(key, value); err == nil {
			s.blocked[string(key)] = true
			return
		}
	}
	var e Entry
	if _, err := s.blank.decode(string(key), value, &e); err != nil || isMeta(key, value) {
		return
	}
	p := piece{seq: e.Seq, doubt: e.State == InDoubt}
	if old, ok := s.records[e.Key]; ok && (old.seq > p.seq || old.seq == p.seq && !p.doubt) {
		return
	}
	p.record = append([]byte(nil), value...)
	s.records[e.Key] = p
}

// isMeta tells header and tally from an entry whose key is their name.
func isMeta(key, value []byte) bool {
	var err error
	switch string(key) {
	case string(headerKey):
		_, err = decodeHeader(value)
	case string(tallyKey):
		_, err = decodeTally(value)
	case string(stageKey):
		_, err = decodeStage(value)
	default:
		return false
	}
	return err == nil
}
