package checkpoint

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Note is a small JSON value that a ledger keeps by name, beside its keys: a run, what people decided about a key, the
// columns of imported files, or the lineage.
type Note struct {
	Name  string
	Value []byte // nil: there is none
}

// The beginnings of the names of notes.
const (
	runNote     = "run "     // then the ID of the run
	shapeNote   = "shape "   // then a digest of the shape
	DecidedNote = "decided " // then the key
)

// Encode returns a value as JSON without zero fields, as notes and columns store it. Invalid UTF-8 becomes U+FFFD.
func Encode(v any) []byte {
	text, err := json.Marshal(v, json.OmitZeroStructFields(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err) // of a type of ours that JSON cannot hold
	}
	return text
}

// Decode reads what [Encode] wrote. Anything else is ErrDamaged.
func Decode(text []byte, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w: a record is not as this version writes it", ErrDamaged)
	}
	return nil
}

// unclean is the beginning of a text in hexadecimal digits, because a server would refuse the text as it is.
const unclean = "\x01"

// Clean returns a text in a form that servers store: UTF-8 without NUL. [Restore] is its reverse.
func Clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && !strings.HasPrefix(s, unclean) {
		return s
	}
	return unclean + hex.EncodeToString([]byte(s))
}

// Restore returns the text that was given to [Clean].
func Restore(s string) string {
	if !strings.HasPrefix(s, unclean) {
		return s
	}
	raw, _ := hex.DecodeString(s[len(unclean):])
	return string(raw)
}

// NoteOf returns a note of a ledger by its name, or nil.
func NoteOf(ctx context.Context, s Store, name string) ([]byte, error) {
	all, err := s.Notes(ctx, name)
	if i := slices.IndexFunc(all, func(n Note) bool { return n.Name == name }); i >= 0 {
		return all[i].Value, err
	}
	return nil, err
}

// PutNote stores a note durably, in place of an earlier note with this name.
func PutNote(ctx context.Context, s Store, name string, value []byte) error {
	return s.Alone(ctx, func(tx Tx) error { return tx.PutNote(Note{name, value}) })
}

func valuesOf[T any](ctx context.Context, s Store, prefix string) (all []T, err error) {
	notes, err := s.Notes(ctx, prefix)
	for i := 0; i < len(notes) && err == nil; i++ {
		var one T
		err = Decode(notes[i].Value, &one)
		all = append(all, one)
	}
	return all, err
}

// Runs returns all runs that the ledger knows, in the order in which they started.
func Runs(ctx context.Context, s Store) ([]RunInfo, error) {
	all, err := valuesOf[RunInfo](ctx, s, runNote)
	slices.SortStableFunc(all, func(a, b RunInfo) int { return a.Started.Compare(b.Started) })
	return all, err
}

// PutRun stores the history of a run: when it starts, and again, in the same place, when it ends.
func PutRun(ctx context.Context, s Store, r RunInfo) error {
	r.Started, r.Finished = r.Started.UTC(), r.Finished.UTC()
	return PutNote(ctx, s, RunNote(r.ID), Encode(r))
}

// RunNote returns the name of the note of a run.
func RunNote(run string) string { return runNote + Clean(run) }

// ShapeNote returns the note of a shape. A nil shape, or one without columns, has a note without a name.
func (d *Digester) ShapeNote(s *Shape) Note {
	if s == nil || len(s.Columns) == 0 {
		return Note{}
	}
	value := Encode(d.noted(s))
	sum := d.Sum(value)
	return Note{shapeNote + hex.EncodeToString(sum[:]), value}
}

// valueOf returns the value of a note that was read; zero if there is none.
func valueOf[T any](note []byte, err error) (value T, _ error) {
	if err == nil && note != nil {
		err = Decode(note, &value)
	}
	return value, err
}

func decisionsAbout(tx Tx, key string) ([]KeptDecision, error) {
	return valueOf[[]KeptDecision](tx.Note(NoteOfDecisions(key)))
}

func putDecisions(tx Tx, key string, all []KeptDecision) error {
	return tx.PutNote(Note{NoteOfDecisions(key), Encode(all)})
}

// NoteOfDecisions returns the name of the note of what people decided about a key.
func NoteOfDecisions(key string) string { return DecidedNote + Clean(key) }

// LastDecision returns the last decision about a key, or nil.
func LastDecision(tx Tx, key string) (*KeptDecision, error) {
	all, err := decisionsAbout(tx, key)
	if len(all) == 0 {
		return nil, err
	}
	return &all[len(all)-1], err
}

// NoteEvidence stores once what contradicts the last decision about a key. If there is no decision, it stores d, too.
func NoteEvidence(tx Tx, d KeptDecision, text, other string, now time.Time) error {
	all, err := decisionsAbout(tx, d.Key)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		all = append(all, d)
	}
	last := &all[len(all)-1]
	if slices.ContainsFunc(last.Against, func(e Evidence) bool { return e.Text == text && e.Other == other }) {
		return nil
	}
	last.Against = append(last.Against, Evidence{text, other, now.UTC()})
	return putDecisions(tx, d.Key, all)
}

// AuditOf returns all decisions of people, in the order of time.
func AuditOf(ctx context.Context, s Store) ([]KeptDecision, error) {
	notes, err := valuesOf[[]KeptDecision](ctx, s, DecidedNote)
	all := slices.Concat(notes...)
	slices.SortStableFunc(all, func(x, y KeptDecision) int { return x.At.Compare(y.At) })
	return all, err
}

func forgetDecisions(tx Tx, gone, leads map[string]bool) error {
	notes, err := tx.Notes(DecidedNote)
	for i := 0; i < len(notes) && err == nil; i++ {
		var was, left []KeptDecision
		if err := Decode(notes[i].Value, &was); err != nil {
			return err
		}
		for _, d := range was {
			if gone[d.Key] || leads[d.LeadID] {
				continue
			}
			d.Against = slices.DeleteFunc(d.Against, func(e Evidence) bool { return leads[e.Other] })
			d.Send = d.Send.Scrubbed(leads)
			left = append(left, d)
		}
		is := Note{Name: notes[i].Name}
		if len(left) > 0 {
			is.Value = Encode(left)
		}
		if !bytes.Equal(is.Value, notes[i].Value) {
			err = tx.PutNote(is)
		}
	}
	return err
}

// History returns what was done with a key, in the order of time: its first event, its last events, those that brought
// a lead, and each send in doubt that was decided about. A send without an answer has the time when it was sent.
func History(ctx context.Context, s Store, key string) (all []Event, err error) {
	var k KeptKey
	enough := errors.New("the key was found, or is not known")
	err = s.Scan(ctx, Filter{From: key}, func(first KeptKey) error {
		if first.Shown().Key == key {
			k = first
		}
		return enough
	})
	if err != nil && err != enough {
		return nil, err
	}
	about, err := valuesOf[[]KeptDecision](ctx, s, NoteOfDecisions(key))
	events := slices.Concat(k.Entry.Events(), k.Intent.Events())
	for _, d := range slices.Concat(about...) {
		if d.Key == key { // and not of a longer key
			events = append(events, d.Send.Events()...)
		}
	}
	for _, ev := range events {
		at := slices.IndexFunc(all, func(other Event) bool { return other.Past() == ev.Past() })
		switch {
		case at < 0:
			all = append(all, ev)
		case all[at].Send == Send{}:
			all[at] = ev
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return a.At.Compare(b.At) })
	return all, err
}

// StatusOf returns what is known now.
func StatusOf(ctx context.Context, s Store) (Status, error) {
	runs, err := Runs(ctx, s)
	notes, unread := valuesOf[[]KeptDecision](ctx, s, DecidedNote)
	st := Status{Info: s.Info(), Runs: runs[max(0, len(runs)-10):]}
	for _, about := range notes {
		if last := about[len(about)-1]; len(last.Against) > 0 {
			st.Contradicted = append(st.Contradicted, last)
		}
	}
	return st, errors.Join(err, unread)
}

// Untouched reports whether a ledger has no key, loss or decision, no run that came to its end, and no list to adopt.
func Untouched(ctx context.Context, s Store) (bool, error) {
	i := s.Info()
	for _, keys := range i.Keys {
		if keys > 0 || i.Incomplete {
			return false, nil
		}
	}
	l, err := LineageOf(ctx, s)
	decided, unread := s.Notes(ctx, DecidedNote)
	all, unknown := Runs(ctx, s)
	ran := slices.ContainsFunc(all, func(r RunInfo) bool { return r.Outcome == "complete" || r.Outcome == "attention" })
	err = errors.Join(err, unread, unknown)
	return l.Adopting == nil && len(decided) == 0 && !ran && err == nil, err
}
