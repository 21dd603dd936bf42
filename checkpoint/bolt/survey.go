package bolt

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math/bits"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
)

// survey checks a file in one pass over its pages: their shape and order, every checksum, the
// tally, and the indexes. An index fits when the sums of the hashes of its records, and of
// those that the entries ask for, are equal, whatever their order: no record has to be looked
// up. A million entries take about a quarter of a second on one processor.
type survey struct {
	words   *words
	digests *checkpoint.Digester
	stage   stage
	tally   tally
	seed    maphash.Seed
	bucket  string // whose records check checks
	check   func(k, v []byte) error

	joined []byte            // room for a key of links
	hidden map[string]bool   // keys with an intent
	recent map[string]string // lead index keys of recent entries, and their keys: the index may have them already
	leads  int64             // difference of the sums, 0 when they fit
	links  int64
	wanted int64
	folds  int64
	index  int64 // records of the indexes less those asked for
}

// survey compares the image with what the checkpoint counted when it was opened.
func (d *Store) survey(img *image) error {
	return guard(func() error { return d.count(img) })
}

func (d *Store) count(img *image) error {
	var parts []*survey // of the goroutines that read
	hidden, recent, seed := make(map[string]bool), make(map[string]string), maphash.MakeSeed()
	part := func() recorder {
		s := &survey{words: d.words, digests: d.digests, stage: d.recent.stage, seed: seed, hidden: hidden, recent: recent}
		parts = append(parts, s)
		return s.record
	}
	if err := img.walk(part, string(inIntents), string(inRecent)); err != nil {
		return err
	}
	want := *d.tally.Load()
	sum := survey{tally: tally{seq: want.seq}}
	for _, s := range parts {
		sum.tally.add(&s.tally)
		sum.index, sum.leads, sum.links = sum.index+s.index, sum.leads+s.leads, sum.links+s.links
		sum.wanted, sum.folds = sum.wanted+s.wanted, sum.folds+s.folds
	}
	switch {
	case sum.tally != want:
		return damage("it holds more or fewer records than it counted")
	case sum.index != 0 || sum.leads != 0 || sum.links != 0 || sum.wanted != 0 || sum.folds != 0:
		return damage("an index does not fit the records")
	}
	return nil
}

// add adds what another one has counted, but commits.
func (t *tally) add(other *tally) {
	for i := range t.keys {
		t.keys[i] += other.keys[i]
	}
	t.words += other.words
	t.runs += other.runs
	t.decisions += other.decisions
	t.contradictions += other.contradictions
	for i := range t.statuses {
		t.statuses[i] += other.statuses[i]
	}
	t.notes += other.notes
}

func (s *survey) record(bucket string, k, v []byte) error {
	if bucket != s.bucket {
		s.bucket, s.check = bucket, s.checkerOf(bucket)
	}
	return s.check(k, v)
}

// checkerOf returns what checks the records of a bucket.
func (s *survey) checkerOf(bucket string) func(k, v []byte) error {
	switch bucket {
	case string(inEntries):
		return s.entry
	case string(inRecent):
		return s.gathered
	case string(inIntents):
		return s.intent
	case string(inLeads):
		return func(k, v []byte) error {
			if key, ok := s.recent[string(k)]; ok && key == string(v) {
				return nil
			}
			s.index++
			s.leads += s.sum(k, v)
			return nil
		}
	case string(inLinks):
		return s.holds(&s.links)
	case string(inWanted):
		return s.holds(&s.wanted)
	case string(inFolds):
		return s.holds(&s.folds)
	case string(inRuns):
		return s.tally.run
	case string(inAudit):
		return s.line
	case string(inNotes):
		return s.tally.note
	case string(inBlocked):
		return s.block
	case string(inWords):
		return func(k, v []byte) error {
			s.tally.words++
			_, err := unseal(k, v)
			return err
		}
	}
	return func(k, v []byte) error {
		_, err := unseal(k, v)
		return err
	}
}

// holds counts the records of an index whose records have no value.
func (s *survey) holds(index *int64) func(k, v []byte) error {
	return func(k, _ []byte) error {
		s.index++
		*index += s.sum(k, nil)
		return nil
	}
}

// asks counts what an index has to hold; nil is nothing.
func (s *survey) asks(index *int64, record []byte) {
	if record != nil {
		s.index--
		*index -= s.sum(record, nil)
	}
}

func (s *survey) block(k, v []byte) error {
	folded, err := decodeBlock(k, v)
	if err != nil {
		return err
	}
	s.tally.keys[checkpoint.Forgotten]++
	if folded != nil {
		s.asks(&s.folds, forgottenFold(folded, k))
	}
	return nil
}

// sum is a hash of two parts that belong together: that of others that are exchanged is
// another one.
func (s *survey) sum(a, b []byte) int64 {
	high, low := bits.Mul64(bits.RotateLeft64(maphash.Bytes(s.seed, a), 1), maphash.Bytes(s.seed, b)|1)
	return int64(high ^ low)
}

// gathered checks a recent entry, one that was deleted, or one that is void.
func (s *survey) gathered(k, v []byte) error {
	number, key, record, err := openRecent(k, v)
	if err != nil || s.stage.void(number, key) || len(record) == 0 {
		return err
	}
	if lead := leadOf(key, record); lead != "" {
		s.recent[lead] = key
	}
	return s.entry([]byte(key), record)
}

func (s *survey) intent(k, v []byte) error {
	s.hidden[string(k)] = true
	var e checkpoint.Entry
	t, err := s.words.decode(string(k), v, &e)
	if err != nil || e.State != checkpoint.InDoubt {
		return errRecord
	}
	if len(t.prior) > 0 {
		if _, err := s.words.decode(string(k), t.prior, new(checkpoint.Entry)); err != nil {
			return err
		}
	}
	s.tally.move(checkpoint.Unknown, checkpoint.InDoubt)
	s.asks(&s.wanted, linkKey(e.WantLink, e.Key))
	s.asks(&s.folds, foldKey(s.digests, e.Key))
	return nil
}

// entry reads of an entry what is counted and indexed. The checksum vouches for
// the rest.
func (s *survey) entry(k, v []byte) error {
	f, err := unseal(k, v)
	if err != nil {
		return err
	}
	state, flags := checkpoint.State(f.byte()), f.byte()
	f.byte()
	status := f.statusKind()
	lead := f.rawText()
	if state == checkpoint.Unknown || state == checkpoint.InDoubt || state > checkpoint.NotMade || f.bad {
		return errRecord
	}
	if !s.hidden[string(k)] {
		s.tally.move(checkpoint.Unknown, state)
		s.asks(&s.folds, foldKey(s.digests, string(k)))
	}
	if n := len(lead); n > 1 && n <= maxIndexKey && !isText(lead, k) && s.bucket != string(inRecent) {
		s.index--
		s.leads -= s.sum(lead, k)
	}
	if !state.HasLead() {
		return nil
	}
	s.tally.statuses[status]++
	if flags&hasWish != 0 { // few: all others are linked
		return s.wishes(k, v)
	}
	if flags&hasLink == 0 {
		return nil
	}
	f.skipWord()
	f.skipWord()
	if link := f.rawText(); len(link) > 1 && len(link) <= maxIndexKey {
		s.joined = append(append(s.joined[:0], link...), k...)
		s.asks(&s.links, s.joined)
	}
	if f.bad {
		return errRecord
	}
	return nil
}

// wishes counts the links of an entry that asks for one.
func (s *survey) wishes(k, v []byte) error {
	var e checkpoint.Entry
	if _, err := s.words.decode(string(k), v, &e); err != nil {
		return err
	}
	_, links := indexKeys(&e)
	s.asks(&s.links, links[0])
	s.asks(&s.links, links[1])
	return nil
}

// maxIndexKey is the length of the longest ID that is kept in an index, as
// appendText writes it.
const maxIndexKey = checkpoint.MaxKey + 2

// isText says whether raw is text as appendText writes it. It nearly never is, which
// is cheap to see by the lengths or by the last byte of a UUID.
func isText(raw, text []byte) bool {
	const digits = "0123456789abcdef"
	if len(text) == 36 && raw[0] == 1 {
		if last := raw[16]; digits[last>>4] != text[34] || digits[last&15] != text[35] {
			return false
		}
	} else if n := len(raw) - len(text); n != 1 && n != 2 {
		return false
	}
	return bytes.Equal(raw, appendText(nil, string(text)))
}

func (r *reader) skipWord() {
	if r.uint() == 1 {
		r.rawText()
	}
}

// checkPages runs bbolt's own check to its end. Its texts hold keys, so they go no further.
func checkPages(tx *bbolt.Tx) error {
	faults := 0
	for range tx.Check() {
		faults++
	}
	if faults > 0 {
		return damage(fmt.Sprintf("%d faults in its pages", faults))
	}
	return nil
}

func (t *tally) run(k, v []byte) error {
	t.runs++
	_, err := decodeRun(k, v)
	return err
}

func (t *tally) note(k, v []byte) error {
	t.notes++
	_, err := decodeNote(k, v)
	return err
}

// line checks a line of the audit and the send in it.
func (s *survey) line(k, v []byte) error {
	r, err := decodeAudit(k, v)
	if err != nil {
		return err
	}
	s.tally.count(r.kind)
	if len(r.send) > 0 {
		_, err = s.words.decode(r.Key, r.send, new(checkpoint.Entry))
	}
	return err
}
