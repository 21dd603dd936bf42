package bolt

import (
	"context"
	"encoding/binary"
	"fmt"
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
		on := &resolving{writing: w}
		if r, err = checkpoint.Resolve(on, ds, w.now); err != nil {
			return err
		}
		return d.foundSome(w, on.found)
	})
	if err != nil {
		return r, fmt.Errorf("resolve: %w", err)
	}
	return r, nil
}

// resolving is what decisions are carried out on, see [checkpoint.Resolver].
type resolving struct {
	*writing
	last  map[string]*checkpoint.KeptDecision // about each key; nil: not read yet
	found int                                 // keys that became known which the file may have lacked
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
	if d.Send.Reason == checkpoint.ReasonIncomplete && !d.Free() {
		r.found++
	}
	return r.writeLine(auditLine{Decision: d.Decision, send: r.words.AppendKept(nil, d.Send)})
}
