package checkpoint

import (
	"encoding/binary"
	"errors"
	"time"

	bolt "go.etcd.io/bbolt"
)

// The buckets of the file.
var (
	inMeta    = []byte("meta")    // header and tally
	inEntries = []byte("entries") // key → entry
	inIntents = []byte("intents") // key → intent; small, so that what was in flight is found at once
	inLeads   = []byte("leads")   // lead ID → key, unless they are equal
	inLinks   = []byte("links")   // external ID, key → nothing, unless they are equal
	inWords   = []byte("words")   // number → word
	inRuns    = []byte("runs")    // number → run
	inAudit   = []byte("audit")   // number → decision
)

var tallyKey = []byte("tally")

// tally counts commits, keys by the state that a look-up shows, words, runs
// and decisions. It shows when a damaged page has lost some.
type tally struct {
	seq       uint64
	keys      [states]uint64
	words     uint64
	runs      uint64
	decisions uint64
}

func (t tally) encode() []byte {
	b := binary.AppendUvarint(nil, t.seq)
	for _, n := range t.keys {
		b = binary.AppendUvarint(b, n)
	}
	for _, n := range []uint64{t.words, t.runs, t.decisions} {
		b = binary.AppendUvarint(b, n)
	}
	return seal(b, 0, tallyKey)
}

func decodeTally(record []byte) (t tally, err error) {
	f, err := unseal(tallyKey, record)
	if err != nil {
		return t, err
	}
	t.seq = f.uint()
	for i := range t.keys {
		t.keys[i] = f.uint()
	}
	t.words, t.runs, t.decisions = f.uint(), f.uint(), f.uint()
	return t, f.done()
}

// move counts a key from one state to another; Unknown is not counted.
func (t *tally) move(from, to State) {
	if from != Unknown {
		t.keys[from]--
	}
	if to != Unknown {
		t.keys[to]++
	}
}

// ledger is the file inside one write transaction.
type ledger struct {
	tally
	now   time.Time
	words *words
	young *young
	arena []byte // records live here until the commit: bbolt does not copy values

	meta, entries, intents, leads, links, runs, audit *bolt.Bucket
}

// begin binds the ledger to the buckets of tx as the next commit.
func (l *ledger) begin(tx *bolt.Tx, t tally, now time.Time) {
	l.tally, l.now, l.arena = t, now.UTC(), l.arena[:0]
	l.seq++
	l.meta, l.entries, l.intents = tx.Bucket(inMeta), tx.Bucket(inEntries), tx.Bucket(inIntents)
	l.leads, l.links = tx.Bucket(inLeads), tx.Bucket(inLinks)
	l.runs, l.audit = tx.Bucket(inRuns), tx.Bucket(inAudit)
	l.leads.FillPercent = 0.7 // index records come many at a time; measured
}

// end writes what belongs to every commit.
func (l *ledger) end(tx *bolt.Tx) error {
	if err := l.words.store(tx.Bucket(inWords)); err != nil {
		return err
	}
	if err := l.young.settle(l.leads); err != nil {
		return err
	}
	l.tally.words = uint64(l.words.stored)
	return l.meta.Put(tallyKey, l.tally.encode())
}

// state returns what a look-up of key would show.
func (l *ledger) state(key string) (State, error) {
	if l.intents.Get([]byte(key)) != nil {
		return InDoubt, nil
	}
	return stateOf(key, l.entries.Get([]byte(key)))
}

// put writes e under its key into b.
func (l *ledger) put(b *bolt.Bucket, e *Entry, prior []byte) error {
	e.Seq = l.seq
	if e.Updated.IsZero() {
		e.Updated = l.now
	}
	e.Updated = time.UnixMilli(e.Updated.UnixMilli()).UTC()
	from := len(l.arena)
	l.arena = l.words.appendEntry(l.arena, e, prior)
	return b.Put([]byte(e.Key), l.arena[from:len(l.arena):len(l.arena)])
}

// claim writes an intent. A row that is sent again although in doubt keeps the
// intent of its earlier send inside the new one: when this claim is withdrawn,
// the earlier doubt is as it was.
func (l *ledger) claim(in *Intent) error {
	if len(in.Key) == 0 || len(in.Key) > MaxKey {
		return ErrKey
	}
	from, err := l.state(in.Key)
	if err != nil {
		return err
	}
	if from == Created || from == Partial {
		return ErrKnown
	}
	var prior []byte
	if from == InDoubt {
		old, _, err := l.intent(in.Key)
		if err != nil {
			return err
		}
		prior = l.words.appendEntry(nil, &old, nil)
	}
	e := in.entry()
	l.move(from, InDoubt)
	return l.put(l.intents, &e, prior)
}

// intent returns the intent of key; its State is Unknown when there is none.
func (l *ledger) intent(key string) (e Entry, prior []byte, err error) {
	record := l.intents.Get([]byte(key))
	if record == nil {
		return e, nil, nil
	}
	prior, err = l.words.decode(key, record, &e)
	return e, prior, err
}

// withdraw removes the intent of key, or puts its prior intent back.
func (l *ledger) withdraw(key string) error {
	in, prior, err := l.intent(key)
	if err != nil || in.State == Unknown {
		return err
	}
	if len(prior) > 0 {
		from := len(l.arena)
		l.arena = append(l.arena, prior...)
		return l.intents.Put([]byte(key), l.arena[from:len(l.arena):len(l.arena)])
	}
	if err := l.intents.Delete([]byte(key)); err != nil {
		return err
	}
	below, err := l.state(key)
	l.move(InDoubt, below)
	return err
}

// settle writes the outcome of a send and returns what now stands.
func (l *ledger) settle(e *Entry) (Entry, error) {
	switch {
	case len(e.Key) == 0 || len(e.Key) > MaxKey:
		return *e, ErrKey
	case e.State == InDoubt:
		return l.doubt(e)
	case e.State == Unknown || int(e.State) >= states:
		return *e, ErrState
	}
	owner, err := l.owner(e.LeadID)
	if err != nil {
		return *e, err
	}
	if owner != "" && owner != e.Key {
		e.Reason = ReasonLeadTaken
		return l.doubt(e)
	}
	from, err := l.state(e.Key)
	if err != nil {
		return *e, err
	}
	l.move(from, e.State)
	if err := l.intents.Delete([]byte(e.Key)); err != nil {
		return *e, err
	}
	return *e, l.replace(e)
}

// doubt keeps the intent of e.Key and adds what is known of the answer.
func (l *ledger) doubt(e *Entry) (Entry, error) {
	from, err := l.state(e.Key)
	if err != nil {
		return *e, err
	}
	in, prior, err := l.intent(e.Key)
	if err != nil {
		return *e, err
	}
	l.move(from, InDoubt)
	if in.State == Unknown {
		in = *e
	}
	in.State, in.Code, in.Reason, in.LeadID = InDoubt, e.Code, e.Reason, e.LeadID
	return in, l.put(l.intents, &in, prior)
}

// owner returns the key under which a lead ID stands, or nothing.
func (l *ledger) owner(id string) (string, error) {
	if !indexed(id) {
		return "", nil
	}
	lead := appendText(nil, id)
	if key, ok := l.young.owner(lead); ok {
		return key, nil
	}
	if key := l.leads.Get(lead); key != nil {
		return string(key), nil
	}
	record := l.entries.Get([]byte(id))
	if record == nil {
		return "", nil
	}
	var e Entry
	if _, err := l.words.decode(id, record, &e); err != nil || e.LeadID != id {
		return "", err
	}
	return id, nil
}

// replace writes an entry and brings the indexes in step with it.
func (l *ledger) replace(e *Entry) error {
	if err := l.unindex(e.Key); err != nil {
		return err
	}
	lead, link := indexKeys(e)
	if lead != nil {
		l.young.add(lead, e.Key)
	}
	if link != nil {
		if err := l.links.Put(link, nil); err != nil {
			return err
		}
	}
	return l.put(l.entries, e, nil)
}

// unindex takes the entry of key, if there is one, out of the indexes.
func (l *ledger) unindex(key string) error {
	record := l.entries.Get([]byte(key))
	if record == nil {
		return nil
	}
	var old Entry
	if _, err := l.words.decode(key, record, &old); err != nil {
		return err
	}
	lead, link := indexKeys(&old)
	var errs []error
	if lead != nil {
		l.young.remove(lead)
		errs = append(errs, l.leads.Delete(lead))
	}
	if link != nil {
		errs = append(errs, l.links.Delete(link))
	}
	return errors.Join(errs...)
}

// indexed says whether an ID is kept in an index: bbolt's keys are bounded.
func indexed(id string) bool { return id != "" && len(id) <= MaxKey }

// indexKeys returns the index keys of an entry, nil where none is kept.
func indexKeys(e *Entry) (lead, link []byte) {
	if indexed(e.LeadID) && e.LeadID != e.Key {
		lead = appendText(nil, e.LeadID)
	}
	if indexed(e.ExternalID) && e.ExternalID != e.Key {
		link = append(appendText(nil, e.ExternalID), e.Key...)
	}
	return lead, link
}
