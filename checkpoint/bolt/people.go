package bolt

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// The kinds of lines in the audit. Those beyond are contradictions: exists and the kind of
// their evidence.
const (
	found  = iota // a decision
	exists        // a decision, without lead ID
)

// auditLine is a decision, or evidence against one, as the audit keeps it.
type auditLine struct {
	checkpoint.Decision // that was made, or that is contradicted
	kind                byte
	at                  time.Time
	send                []byte    // of a decision: the record of the intent that it is about, as it was
	other               string    // of evidence: see checkpoint.Contradiction
	decided             time.Time // the same
}

// auditKind is added to the kind with which a line begins: no entry has such a state, so
// that a damaged file's lines are not taken for entries.
const auditKind = 0x10

// writeLine writes a line at the end of the audit and counts it.
func (w *writing) writeLine(r auditLine) error {
	if r.kind == found && r.Exists {
		r.kind = exists
	}
	last, _ := w.in(inAudit).Cursor().Last()
	number := uint64(1)
	if last != nil {
		number += binary.BigEndian.Uint64(last)
	}
	key := binary.BigEndian.AppendUint64(nil, number)
	w.count(r.kind, 1)
	r.at = w.now
	return w.in(inAudit).Put(key, r.encode(key))
}

// count counts a line of the audit that comes, 1, or goes, -1.
func (t *tally) count(kind byte, n int) {
	if kind > exists {
		t.contradictions += uint64(n)
	} else {
		t.decisions += uint64(n)
	}
}

func (r *auditLine) encode(key []byte) []byte {
	b := records.AppendTime(records.AppendText(records.AppendText([]byte{auditKind + r.kind}, r.Key), r.LeadID), r.at)
	if r.kind > exists {
		b = records.AppendTime(records.AppendText(b, r.other), r.decided)
	} else {
		b = append(b, r.send...)
	}
	return records.Seal(b, 0, key)
}

func decodeAudit(key, line []byte) (r auditLine, err error) {
	f, err := records.Unseal(key, line)
	if err != nil || len(key) != 8 {
		return r, records.ErrRecord
	}
	r.kind = f.Byte() - auditKind
	r.Key, r.LeadID, r.at = f.Text(), f.Text(), f.Time()
	r.Exists = r.kind == exists
	switch {
	case r.kind > exists+byte(checkpoint.RefusedAfterAll):
		return r, records.ErrRecord
	case r.kind > exists:
		r.other, r.decided = f.Text(), f.Time()
	default:
		r.send = f.Rest()
	}
	return r, f.Done()
}

// Contradict notes evidence against a decision, see [checkpoint.Book].
func (w *writing) Contradict(kind checkpoint.Evidence, key, lead, other string) error {
	if w.decisions == 0 {
		return nil
	}
	against := auditLine{kind: exists + byte(kind), other: other}
	var known []auditLine // evidence that came since the last decision, or with it
	cursor := w.in(inAudit).Cursor()
	for k, v := cursor.Last(); k != nil; k, v = cursor.Prev() {
		r, err := decodeAudit(k, v)
		switch {
		case err != nil:
			return err
		case r.Key != key:
			continue
		case r.kind > exists:
			known = append(known, r)
			continue
		case r.LeadID != lead || r.Exists:
			return nil
		}
		if slices.ContainsFunc(known, func(k auditLine) bool { return k.kind == against.kind && k.other == other && k.decided.Equal(r.at) }) {
			return nil
		}
		against.Decision, against.decided = r.Decision, r.at
		return w.writeLine(against)
	}
	return nil
}

// readAudit adds what the audit holds to a; without words, the sends that decisions are about are left out.
func readAudit(a *checkpoint.Audit, words *records.Words, audit *bbolt.Bucket) error {
	return audit.ForEach(func(k, v []byte) error { return readLine(a, words, k, v) })
}

func readLine(a *checkpoint.Audit, words *records.Words, k, v []byte) error {
	r, err := decodeAudit(k, v)
	if err != nil {
		return err
	}
	if r.kind > exists {
		text := checkpoint.Evidence(r.kind - exists).String()
		a.Contradictions = append(a.Contradictions, checkpoint.Contradiction{Decision: r.Decision, Decided: r.decided, Found: r.at, Other: r.other, Text: text})
		return nil
	}
	d := checkpoint.KeptDecision{Decision: r.Decision, At: r.at}
	if words != nil {
		d.Send, err = words.Kept(r.Key, r.send)
	}
	a.Decisions = append(a.Decisions, d)
	return err
}

// Audit returns what people decided, see [checkpoint.Store].
func (d *Store) Audit(context.Context) (a checkpoint.Audit, err error) {
	err = d.view("read decisions", func(tx *bbolt.Tx) error { return readAudit(&a, d.words, tx.Bucket(inAudit)) })
	return a, err
}

// Resolve settles keys in doubt, see [checkpoint.Store].
func (d *Store) Resolve(_ context.Context, ds []checkpoint.Decision) (r checkpoint.ResolveResult, err error) {
	err = d.alone(func(w *writing) error {
		r, err = checkpoint.Resolve(&resolving{writing: w}, ds, w.now)
		return err
	})
	if err != nil {
		return r, fmt.Errorf("resolve: %w", err)
	}
	return r, nil
}

// resolving is what decisions are carried out on, see [checkpoint.Resolver].
type resolving struct {
	*writing
	last map[string]*checkpoint.KeptDecision // about each key; nil: not read yet
}

func (r *resolving) Under(key string) (checkpoint.KeptKey, error) { return r.under(key) }

func (r *resolving) Put(key string, k checkpoint.KeptKey) error {
	was, err := r.under(key)
	if err != nil {
		return err
	}
	return r.put(key, was, k)
}

func (r *resolving) Decided(key string) (*checkpoint.KeptDecision, error) {
	if r.last == nil {
		var a checkpoint.Audit
		if err := readAudit(&a, r.words, r.in(inAudit)); err != nil {
			return nil, err
		}
		r.last = make(map[string]*checkpoint.KeptDecision)
		for i := range a.Decisions {
			r.last[a.Decisions[i].Key] = &a.Decisions[i]
		}
	}
	return r.last[key], nil
}

func (r *resolving) Note(d checkpoint.KeptDecision) error {
	return r.writeLine(auditLine{Decision: d.Decision, send: r.words.AppendKept(nil, d.Send)})
}

// Adopt takes over leads that exist on the service, see [checkpoint.Store]. A long list takes several commits. It takes 40
// bytes of memory an entry, beside what one commit holds, and about 20 µs.
func (d *Store) Adopt(_ context.Context, list checkpoint.List) (r checkpoint.AdoptResult, err error) {
	read, err := checkpoint.ReadAdoption(list, d.digests)
	if err != nil {
		return r, fmt.Errorf("adopt: %w", err)
	}
	a := &adoption{Adoption: read, corrected: make(map[string]bool)}
	err = d.exclusively(func() error {
		err := d.transact("other", func(w *writing) error {
			if r, err = a.examine(w); err != nil {
				return err
			}
			return a.giveUp(w)
		})
		if err != nil {
			return err
		}
		return inParts(a.taken, func(part []checkpoint.Entry, _ bool) error {
			return d.transact("other", func(w *writing) error { return a.write(w, part) })
		})
	})
	if err != nil {
		return r, fmt.Errorf("adopt: %w", err)
	}
	return r, nil
}

type adoption struct {
	*checkpoint.Adoption
	take      []bool // by place in the list: to be written
	corrected map[string]bool
}

// taken are the entries that are to be written.
func (a *adoption) taken(yield func(checkpoint.Entry, error) bool) {
	enough := errors.New("enough")
	err := a.Each(func(i int, e *checkpoint.Entry) error {
		if a.take[i] && !yield(*e, nil) {
			return enough
		}
		return nil
	})
	if err != nil && err != enough {
		yield(checkpoint.Entry{}, err)
	}
}

// write takes entries over, in the order of their keys, which costs bbolt least.
func (a *adoption) write(w *writing, part []checkpoint.Entry) error {
	slices.SortFunc(part, func(x, y checkpoint.Entry) int { return cmp.Compare(x.Key, y.Key) })
	for _, e := range part {
		if err := w.adopt(e, a.corrected[e.Key]); err != nil {
			return err
		}
	}
	return nil
}

// examine refuses a list before anything is changed, counts its entries and finds those that
// have to be written.
func (a *adoption) examine(w *writing) (r checkpoint.AdoptResult, err error) {
	a.take = make([]bool, a.Len())
	err = a.Each(func(i int, e *checkpoint.Entry) error {
		k, err := w.under(e.Key)
		if err != nil {
			return err
		}
		owner, err := w.Owner(e.LeadID, e.Key)
		if err != nil {
			return err
		}
		if a.take[i], err = a.Judge(i, e, w.shown(e.Key, &k), owner, &r); a.take[i] && k.Corrects(e) {
			a.corrected[e.Key] = true
		}
		return err
	})
	return r, err
}

// giveUp takes the lead IDs, and what was known of these leads, from entries that the list
// corrects. Only then may others have these leads.
func (a *adoption) giveUp(w *writing) error {
	for _, key := range slices.Sorted(maps.Keys(a.corrected)) {
		was, err := w.under(key)
		if err != nil {
			return err
		}
		is := was
		is.GiveUp(w)
		if err := w.put(key, was, is); err != nil {
			return err
		}
	}
	return nil
}

// adopt writes an entry that was judged good; corrects says that the key gave up a lead.
func (w *writing) adopt(e checkpoint.Entry, corrects bool) error {
	was, err := w.under(e.Key)
	if err != nil {
		return err
	}
	is, old := was, w.shown(e.Key, &was)
	is.Adopt(w, e, old, corrects, w.now)
	return w.put(e.Key, was, is)
}
