package checkpoint

import (
	"fmt"
	"hash/maphash"

	bolt "go.etcd.io/bbolt"
)

// audit counts what is in the file, to compare it with what should be. The
// indexes are compared as sums over all pairs, which needs no look-ups.
type audit struct {
	runs       *runs
	seed       maphash.Seed
	tally      tally
	want, have uint64
}

// verify checks every page and record, that the tally is right and that the
// indexes hold what the entries ask for. image.walk must have passed before.
func (d *DB) verify() error {
	return guard(func() error {
		return d.bolt.View(func(tx *bolt.Tx) error {
			if err := checkPages(tx); err != nil {
				return err
			}
			return d.checkRecords(tx)
		})
	})
}

// checkPages runs bbolt's own check to its end. Its texts hold keys, so they go
// no further.
func checkPages(tx *bolt.Tx) error {
	faults := 0
	for range tx.Check() {
		faults++
	}
	if faults > 0 {
		return damage(fmt.Sprintf("%d faults in its pages", faults))
	}
	return nil
}

func (d *DB) checkRecords(tx *bolt.Tx) error {
	a := audit{runs: &d.runs, seed: maphash.MakeSeed()}
	a.tally.seq = d.tally.Load().seq
	intents := tx.Bucket(inIntents)
	checks := []func() error{
		func() error { return tx.Bucket(inEntries).ForEach(a.entry(intents)) },
		func() error { return intents.ForEach(a.intent) },
		func() error { return tx.Bucket(inLeads).ForEach(a.lead) },
		func() error { return tx.Bucket(inLinks).ForEach(a.link) },
		func() error {
			return eachRun(tx.Bucket(inRuns), func(uint64, RunInfo) error { a.tally.runs++; return nil })
		},
		func() error {
			return eachDecision(tx.Bucket(inAudit), func(decided) error { a.tally.decisions++; return nil })
		},
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	switch {
	case a.tally != *d.tally.Load():
		return damage("it holds more or fewer records than it counted")
	case a.want != a.have:
		return damage("an index does not fit the records")
	}
	return nil
}

func (a *audit) entry(intents *bolt.Bucket) func(k, v []byte) error {
	var e Entry
	return func(k, v []byte) error {
		if _, err := a.runs.decode(string(k), v, &e); err != nil {
			return err
		}
		if e.State == InDoubt || e.Seq > a.tally.seq {
			return errRecord
		}
		if intents.Get(k) == nil {
			a.tally.move(Unknown, e.State)
		}
		lead, link := indexKeys(&e)
		if lead != nil {
			a.want += a.pair('l', lead, k)
		}
		if link != nil {
			a.want += a.pair('x', link, nil)
		}
		return nil
	}
}

func (a *audit) intent(k, v []byte) error {
	var e, old Entry
	prior, err := a.runs.decode(string(k), v, &e)
	if err != nil || e.State != InDoubt {
		return errRecord
	}
	if len(prior) > 0 {
		if _, err := a.runs.decode(string(k), prior, &old); err != nil {
			return err
		}
	}
	a.tally.move(Unknown, InDoubt)
	return nil
}

func (a *audit) lead(k, v []byte) error {
	a.have += a.pair('l', k, v)
	return nil
}

func (a *audit) link(k, _ []byte) error {
	a.have += a.pair('x', k, nil)
	return nil
}

// pair is a hash of an index record, the same whether asked for or found.
func (a *audit) pair(kind byte, k, v []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(a.seed)
	h.WriteByte(kind)
	h.WriteByte(byte(len(k)))
	h.WriteByte(byte(len(k) >> 8))
	h.Write(k)
	h.Write(v)
	return h.Sum64()
}
