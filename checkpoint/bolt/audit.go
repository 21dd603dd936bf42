package bolt

import (
	"context"
	"encoding/binary"
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
	checkpoint.Decision
	at   time.Time
	send []byte // of a decision: the record of the intent that it is about, as it was
	contradiction
}

// auditKind is added to the kind with which a line begins: no entry has such a state, so
// that a damaged file's lines are not taken for entries.
const auditKind = 0x10

// contradiction is what a line of the audit holds beside the decision that it is
// about.
type contradiction struct {
	kind    byte
	other   string
	decided time.Time
}

// note writes a line at the end of the audit and counts it.
func (w *writing) note(r auditLine) error {
	if r.kind == found && r.Exists {
		r.kind = exists
	}
	last, _ := w.audit.Cursor().Last()
	number := uint64(1)
	if last != nil {
		number += binary.BigEndian.Uint64(last)
	}
	key := binary.BigEndian.AppendUint64(nil, number)
	w.tally.count(r.kind)
	r.at = w.now
	return w.audit.Put(key, r.encode(key))
}

// count counts a line of the audit.
func (t *tally) count(kind byte) {
	if kind > exists {
		t.contradictions++
	} else {
		t.decisions++
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

// lastDecisions are the last ones about each key.
func (w *writing) lastDecisions() (last map[string]auditLine, err error) {
	last = make(map[string]auditLine)
	err = w.audit.ForEach(func(k, v []byte) error {
		r, err := decodeAudit(k, v)
		if r.kind <= exists {
			last[r.Key] = r
		}
		return err
	})
	return last, err
}

// checkDecision looks whether an outcome contradicts what a person decided.
func (w *writing) checkDecision(e *checkpoint.Entry) error {
	evidence, lead := e.Against()
	if evidence == checkpoint.NoEvidence {
		return nil
	}
	return w.contradict(contradiction{kind: exists + byte(evidence)}, e.Key, lead)
}

// contradict notes evidence against the last decision about key, if there is one
// that gave it this lead ID, and once only.
func (w *writing) contradict(c contradiction, key, lead string) error {
	if w.decisions == 0 {
		return nil
	}
	cursor := w.audit.Cursor()
	for k, v := cursor.Last(); k != nil; k, v = cursor.Prev() {
		r, err := decodeAudit(k, v)
		switch {
		case err != nil:
			return err
		case r.Key != key:
			continue
		case r.kind == c.kind && r.LeadID == lead && r.other == c.other:
			return nil
		case r.kind > exists:
			continue
		case r.LeadID != lead || r.Exists:
			return nil
		}
		c.decided = r.at
		return w.note(auditLine{Decision: r.Decision, contradiction: c})
	}
	return nil
}

// eachAuditLine calls f with every line, in order.
func (d *Store) eachAuditLine(f func(auditLine) error) error {
	var all []auditLine
	err := d.view("read decisions", func(tx *bbolt.Tx) error {
		return tx.Bucket(inAudit).ForEach(func(k, v []byte) error {
			r, err := decodeAudit(k, v)
			all = append(all, r)
			return err
		})
	})
	for i := 0; i < len(all) && err == nil; i++ {
		err = f(all[i])
	}
	return err
}

// Decisions calls f with every decision that was ever made, in order, and the
// time when it was made. An error of f ends it and is returned.
func (d *Store) Decisions(_ context.Context, f func(checkpoint.Decision, time.Time) error) error {
	return d.eachAuditLine(func(r auditLine) error {
		if r.kind > exists {
			return nil
		}
		return f(r.Decision, r.at)
	})
}

// Contradictions calls f with everything that contradicts a decision, in the order
// in which it was found. An error of f ends it and is returned.
func (d *Store) Contradictions(_ context.Context, f func(checkpoint.Contradiction) error) error {
	return d.eachAuditLine(func(r auditLine) error {
		if r.kind <= exists {
			return nil
		}
		return f(checkpoint.Contradiction{Decision: r.Decision, Decided: r.decided, Found: r.at, Other: r.other, Text: checkpoint.Evidence(r.kind - exists).String()})
	})
}
