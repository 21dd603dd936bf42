package bolt

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
)

// audit goes through all records and counts them, to compare them with the tally.
type audit struct {
	words     *words
	unflushed *unflushed
	digests   *checkpoint.Digester
	tally     tally

	intents, leads, links, wanted, folds *bbolt.Cursor

	leadsFound, leadsSeen int // index records that entries and intents ask for, and all that there are
	othersFound           int
	othersSeen            int
}

// verify checks every page and record, that the tally is right and that the
// indexes hold what the entries ask for. Leads that the index lacks become unflushed.
// The pages must have passed image.walk.
func (d *Store) verify() error {
	return guard(func() error {
		return d.bolt.View(func(tx *bbolt.Tx) error {
			if err := checkPages(tx); err != nil {
				return err
			}
			return d.checkRecords(tx)
		})
	})
}

// checkPages runs bbolt's own check to its end. Its texts hold keys, so they go
// no further.
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

func (d *Store) checkRecords(tx *bbolt.Tx) error {
	a := audit{
		words: d.words, unflushed: d.unflushed, digests: d.digests, intents: tx.Bucket(inIntents).Cursor(),
		leads: tx.Bucket(inLeads).Cursor(), links: tx.Bucket(inLinks).Cursor(),
		wanted: tx.Bucket(inWanted).Cursor(), folds: tx.Bucket(inFolds).Cursor(),
	}
	a.tally = tally{seq: d.tally.Load().seq, words: uint64(d.words.stored)}
	if err := newReading(tx, d.recent.at, nil).each(a.entry()); err != nil {
		return err
	}
	for _, check := range []struct {
		bucket []byte
		record func(k, v []byte) error
	}{
		{inIntents, a.intent},
		{inLeads, func(_, _ []byte) error { a.leadsSeen++; return nil }},
		{inLinks, a.other},
		{inWanted, a.other},
		{inFolds, a.other},
		{inRuns, a.tally.run},
		{inAudit, a.decision},
		{inBlocked, a.block},
		{inNotes, a.tally.note},
	} {
		if err := tx.Bucket(check.bucket).ForEach(check.record); err != nil {
			return err
		}
	}
	a.unflushed.added = 0
	switch {
	case a.tally != *d.tally.Load():
		return damage("it holds more or fewer records than it counted")
	case a.leadsFound != a.leadsSeen || a.othersFound != a.othersSeen:
		return damage("an index does not fit the records")
	}
	return nil
}

// entry returns a function that checks entries and uses one for all.
func (a *audit) entry() func(k, v []byte) error {
	var e checkpoint.Entry
	return func(k, v []byte) error {
		if _, err := a.words.decode(string(k), v, &e); err != nil {
			return err
		}
		if e.State == checkpoint.InDoubt || e.Seq > a.tally.seq {
			return errRecord
		}
		if e.State.HasLead() {
			a.tally.statuses[kindOfStatus(e.Status)]++
		}
		if find(a.intents, e.Key) == nil {
			a.tally.move(checkpoint.Unknown, e.State)
			if err := a.asks(a.folds, foldKey(a.digests, e.Key)); err != nil {
				return err
			}
		}
		return a.index(&e)
	}
}

// index looks for the index records of an entry.
func (a *audit) index(e *checkpoint.Entry) error {
	lead, links := indexKeys(e)
	if lead != nil {
		switch key := find(a.leads, string(lead)); {
		case key == nil && a.unflushed.size() < mostUnflushed:
			a.unflushed.add(lead, e.Key)
		case string(key) != e.Key:
			return damage("an index does not fit the records")
		default:
			a.leadsFound++
		}
	}
	return errors.Join(a.asks(a.links, links[0]), a.asks(a.links, links[1]))
}

// asks looks for a record of an index that there has to be; nil is none.
func (a *audit) asks(index *bbolt.Cursor, record []byte) error {
	switch {
	case record == nil:
		return nil
	case find(index, string(record)) == nil:
		return damage("an index lacks a record")
	}
	a.othersFound++
	return nil
}

func (a *audit) other(_, _ []byte) error { a.othersSeen++; return nil }

func (a *audit) block(k, v []byte) error {
	folded, err := decodeBlock(k, v)
	if err != nil {
		return err
	}
	a.tally.keys[checkpoint.Forgotten]++
	if folded == nil {
		return nil
	}
	return a.asks(a.folds, forgottenFold(folded, k))
}

func (a *audit) intent(k, v []byte) error {
	var e, old checkpoint.Entry
	t, err := a.words.decode(string(k), v, &e)
	if err != nil || e.State != checkpoint.InDoubt {
		return errRecord
	}
	if len(t.prior) > 0 {
		if _, err := a.words.decode(string(k), t.prior, &old); err != nil {
			return err
		}
	}
	a.tally.move(checkpoint.Unknown, checkpoint.InDoubt)
	return errors.Join(a.asks(a.wanted, linkKey(e.WantLink, e.Key)), a.asks(a.folds, foldKey(a.digests, e.Key)))
}

// decision checks a line of the audit and the send in it.
func (a *audit) decision(k, v []byte) error {
	if err := a.tally.decision(k, v); err != nil {
		return err
	}
	r, err := decodeAudit(k, v)
	if err == nil && len(r.send) > 0 {
		var e checkpoint.Entry
		_, err = a.words.decode(r.Key, r.send, &e)
	}
	return err
}

func (t *tally) run(k, v []byte) error {
	t.runs++
	_, err := decodeRun(k, v)
	return err
}

func (t *tally) decision(k, v []byte) error {
	r, err := decodeAudit(k, v)
	if r.kind > exists {
		t.contradictions++
	} else {
		t.decisions++
	}
	return err
}

func (t *tally) note(k, v []byte) error {
	t.notes++
	_, err := decodeNote(k, v)
	return err
}
