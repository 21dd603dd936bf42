package bolt

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/pages"
	"leadferry/checkpoint/bolt/records"
)

// survey checks what stands in pages that bbolt finds in order: every checksum, the tally, and the indexes. An index fits
// when the sums of the hashes of its records, and of
// those that the entries ask for, are equal, whatever their order: no record has to be looked
// up.
type survey struct {
	words   *records.Words
	digests *checkpoint.Digester
	tally   tally
	seed    maphash.Seed

	last    checkpoint.Entry                            // that was read
	hidden  map[string]bool                             // keys with an intent
	entries map[string][]byte                           // what gathers and was not met in its place
	leads   map[string]string                           // the same of the index by lead ID
	sums    struct{ leads, links, wanted, folds int64 } // differences, 0 when they fit
	index   int64                                       // records of the indexes less those asked for
}

// survey compares what stands in tx with what the checkpoint counted.
func (d *Store) survey(tx *bbolt.Tx) error {
	s := &survey{
		words: d.words, digests: d.digests, seed: maphash.MakeSeed(),
		hidden: make(map[string]bool), entries: make(map[string][]byte), leads: make(map[string]string),
	}
	first := [][]byte{inIntents, newEntries, newLeads}
	rest := slices.DeleteFunc(buckets(), func(name []byte) bool {
		return slices.ContainsFunc(first, func(b []byte) bool { return bytes.Equal(b, name) })
	})
	for _, name := range append(first, rest...) {
		if err := tx.Bucket(name).ForEach(noBucket(s.checkerOf(string(name)))); err != nil {
			return err
		}
	}
	for key, record := range s.entries {
		if err := s.entry([]byte(key), record); err != nil {
			return err
		}
	}
	for lead, key := range s.leads {
		s.holds(&s.sums.leads, []byte(lead), []byte(key))
	}
	want := *d.tally.Load()
	s.tally.seq = want.seq
	switch {
	case s.tally != want:
		return pages.Damage("it holds more or fewer records than it counted")
	case s.index != 0 || s.sums != struct{ leads, links, wanted, folds int64 }{}:
		return pages.Damage("an index does not fit the records")
	}
	return nil
}

// noBucket refuses a bucket in the place of a record.
func noBucket(check func(k, v []byte) error) func(k, v []byte) error {
	return func(k, v []byte) error {
		if v == nil {
			return pages.Damage("a bucket is none")
		}
		return check(k, v)
	}
}

func (s *survey) checkerOf(bucket string) func(k, v []byte) error {
	switch bucket {
	case string(inEntries):
		return func(k, v []byte) error {
			delete(s.entries, string(k))
			return s.entry(k, v)
		}
	case string(inLeads):
		return func(k, v []byte) error {
			delete(s.leads, string(k))
			s.holds(&s.sums.leads, k, v)
			return nil
		}
	case string(newEntries):
		return inLines(func(key, record []byte) { s.entries[string(key)] = bytes.Clone(record) })
	case string(newLeads):
		return inLines(func(lead, key []byte) { s.leads[string(lead)] = string(key) })
	case string(inIntents):
		return s.intent
	case string(inLinks):
		return s.indexed(&s.sums.links)
	case string(inWanted):
		return s.indexed(&s.sums.wanted)
	case string(inFolds):
		return s.indexed(&s.sums.folds)
	case string(inNotes):
		return func(k, v []byte) error {
			n, err := decodeNote(k, v)
			s.tally.countNote(n.Name, 1)
			return err
		}
	case string(inBlocked):
		return s.block
	case string(inWords):
		return func(k, v []byte) error {
			s.tally.words++
			return sealed(k, v)
		}
	}
	return sealed
}

func sealed(k, v []byte) error {
	_, err := records.Unseal(k, v)
	return err
}

// inLines checks the lines of a log and hands out what they hold.
func inLines(f func(key, value []byte)) func(k, line []byte) error {
	return func(k, line []byte) error {
		_, items, err := records.OpenLine(k, line)
		if err != nil {
			return err
		}
		return items.Each(func(key, value []byte) error { f(key, value); return nil })
	}
}

// indexed counts the records of an index whose records have no value.
func (s *survey) indexed(index *int64) func(k, v []byte) error {
	return func(k, _ []byte) error {
		s.holds(index, k, nil)
		return nil
	}
}

// holds counts a record of an index; asks what an index has to hold; nil is nothing.
func (s *survey) holds(index *int64, record, value []byte) {
	s.index++
	*index += s.sum(record, value)
}

func (s *survey) asks(index *int64, record, value []byte) {
	if record != nil {
		s.index--
		*index -= s.sum(record, value)
	}
}

func (s *survey) block(k, v []byte) error {
	b, err := records.DecodeBlock(k, v)
	if err != nil {
		return err
	}
	s.tally.keys[checkpoint.Forgotten]++
	if b.Fold != nil {
		s.asks(&s.sums.folds, records.ForgottenFold(b.Fold, k), nil)
	}
	return nil
}

// sum is a hash of two parts that belong together: that of others that are exchanged is
// another one.
func (s *survey) sum(a, b []byte) int64 {
	high, low := bits.Mul64(bits.RotateLeft64(maphash.Bytes(s.seed, a), 1), maphash.Bytes(s.seed, b)|1)
	return int64(high ^ low)
}

func (s *survey) intent(k, v []byte) error {
	in, err := s.words.Kept(string(k), v)
	if err != nil || in.State != checkpoint.InDoubt {
		return records.ErrRecord
	}
	s.hidden[in.Key] = true
	s.tally.move(checkpoint.Unknown, checkpoint.InDoubt)
	s.asks(&s.sums.wanted, records.LinkKey(in.WantLink, in.Key), nil)
	s.asks(&s.sums.folds, records.FoldKey(s.digests, in.Key), nil)
	return nil
}

// entry counts an entry and asks for what the indexes have to hold of it.
func (s *survey) entry(k, v []byte) error {
	if err := s.words.Decode(string(k), v, &s.last); err != nil || s.last.State == checkpoint.InDoubt {
		return records.ErrRecord
	}
	if !s.hidden[string(k)] {
		s.tally.move(checkpoint.Unknown, s.last.State)
		s.asks(&s.sums.folds, records.FoldKey(s.digests, string(k)), nil)
	}
	if s.last.State.HasLead() {
		s.tally.statuses[records.KindOfStatus(s.last.Status)]++
	}
	lead, links := records.IndexKeys(&s.last)
	s.asks(&s.sums.leads, lead, k)
	s.asks(&s.sums.links, links[0], nil)
	s.asks(&s.sums.links, links[1], nil)
	return nil
}
