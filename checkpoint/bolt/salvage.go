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
	Lost      bool        // leads, or rows in doubt, are missing that the file has known
	Missing   int         // how many of them; 0: nobody can count them
	CutOff    bool        // the rest of a list is missing, whose adoption was cut off
}

// Incomplete says whether anything is missing.
func (r *Salvaged) Incomplete() bool { return r.Lost || r.CutOff }

// Text says in words what is missing, as the subject of a sentence.
func (r *Salvaged) Text() string {
	lost, rest := lacking{leads: uint64(r.Missing)}.text(), lacking{adopting: true}.text()
	switch {
	case r.Lost && r.CutOff:
		return lost + ", and " + rest
	case r.CutOff:
		return rest
	}
	return lost
}

// Salvage reads of a damaged file what can be read and calls f with it, ordered by
// key. It looks at every page, also at unused ones, takes each record whose checksum
// is right, and of several under one key the latest. So nothing that was ever
// durable and is whole is missed; a row that was given free since may be in doubt
// again, and must be looked up once more. Witnesses tell what it may have known besides. An error of f ends it and is
// returned as it is; other errors are *[OpenError].
func Salvage(path string, witnesses []checkpoint.Witness, f func(checkpoint.Entry) error) (r Salvaged, err error) {
	s, err := salvageFile(path, witnesses)
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

func salvageFile(path string, witnesses []checkpoint.Witness) (*salvage, error) {
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
	s.seqLine, s.hasSeqLine, _ = readSeq(d.seqPath())
	s.ask(witnesses)
	s.sift()
	return s, nil
}

// salvage is what was found in the pages so far.
type salvage struct {
	records  map[string]piece
	texts    []string       // by number; those that are lost are empty
	sure     []bool         // of texts: it stood in a page in use
	blank    *records.Words // the same texts
	blocked  map[string][]byte
	shapes   map[string][]byte
	runs     map[uint64]told[[]byte] // by number
	audit    map[uint64]told[[]byte]
	header   header               // version 0: none was found
	digests  *checkpoint.Digester // of the header, once all was read
	tally    tally                // the last one
	commit   uint64               // the last one of which the file tells
	lacks    told[lacking]
	adopting told[bool]   // see adoptingKey
	moving   told[string] // see movingKey

	headerInUse bool // it stands in a page in use
	seqLine     seqLine
	hasSeqLine  bool
	witness     checkpoint.Witness // of the latest run that used this checkpoint, as far as that is known
	inUse       bool               // the record under way stands in a page in use: nothing in it was deleted
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

// sure says whether the row was one of those that are known: what stands in an unused page
// alone may have been deleted before. A lead never is, but a doubt or a decision may be.
func (p *piece) sure() bool {
	return p.inUse.counts() || p.last.state.HasLead() && p.last.act&checkpoint.Decided == 0
}

// counts says whether the row must not be sent again.
func (v *version) counts() bool { return v.state.HasLead() || v.state == checkpoint.InDoubt }

// sift throws away what was deleted, as far as that can be told: what was forgotten and,
// where nothing in use is lost, what stood in unused pages alone.
func (s *salvage) sift() {
	s.digests = checkpoint.NewDigester(s.header.secret)
	whole := s.counted() && s.have(func(p *piece) bool { return p.inUse.counts() }) >= s.known()
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

// untold is how many transactions come before the first commit.
const untold = 2

// ask finds the witness that knows the latest commit.
func (s *salvage) ask(witnesses []checkpoint.Witness) {
	s.commit = max(s.commit, s.tally.seq)
	id := s.header.id
	if s.header.version == 0 && s.hasSeqLine {
		id = s.seqLine.id
	}
	for _, w := range witnesses {
		if w.ID == id.String() && w.Sequence > s.witness.Sequence {
			s.witness = w
		}
	}
}

// older says whether commits were made that the file does not tell of: it may be an older copy, and have known others than those
// that are found.
func (s *salvage) older() bool {
	return s.ours() && s.seqLine.seq > s.commit || s.witness.Sequence > s.commit || s.foreign()
}

// foreign says whether PATH.seq is that of another checkpoint, which this one does not descend from.
func (s *salvage) foreign() bool {
	return s.hasSeqLine && !s.ours() && !slices.Contains(s.header.ancestors, s.seqLine.id)
}

// counted says whether it is known how many leads there have to be.
func (s *salvage) counted() bool { return s.tally.seq > 0 || s.ours() }

// ours says whether PATH.seq belongs to the file, as far as that is known.
func (s *salvage) ours() bool {
	return s.hasSeqLine && (s.header.version == 0 || s.seqLine.id == s.header.id)
}

func (s *salvage) nothing() bool {
	return len(s.records) == 0 && s.header.version == 0 && s.tally.seq == 0 && !s.hasSeqLine
}

// known is how many leads and rows in doubt there have to be.
func (s *salvage) known() uint64 {
	if seen := s.witness.Sequence; seen > s.tally.seq && !(s.ours() && s.seqLine.seq >= seen) {
		return uint64(s.witness.Leads + s.witness.Made)
	}
	if s.ours() && s.seqLine.seq > s.tally.seq {
		return s.seqLine.leads
	}
	return s.tally.known()
}

// have counts the leads and rows in doubt that were found.
func (s *salvage) have(fits func(*piece) bool) (n uint64) {
	for _, p := range s.records {
		if fits(&p) {
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
	found := s.have((*piece).sure)
	switch {
	case !s.counted():
		r.Lost = true
	case found < s.known():
		r.Lost, r.Missing = true, int(s.known()-found)
	case s.older():
		r.Lost = true
	}
	if s.lacks.stands(s.headerInUse) {
		r.Lost, r.Missing = true, r.Missing+int(s.lacks.value.left())
	}
	r.CutOff = s.adopting.stands(s.headerInUse)
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
	if img, err := pages.Inspect(d.file); err == nil && img.TxID > untold { // one a commit, and fewer once it was compacted
		s.commit = img.TxID - untold
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
	case string(adoptingKey):
		is := bytes.Equal(value, adoptingMark())
		if is {
			s.adopting.take(true, s.inUse)
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
		l, err := decodeLacking(value)
		if err == nil {
			s.lacks.take(l, s.inUse)
		}
		return err == nil
	}
	return false
}
