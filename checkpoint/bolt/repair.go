package bolt

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
	"leadferry/internal/shell"
)

// Salvaged is what could be read of a damaged file.
type Salvaged struct {
	Keys     []checkpoint.KeptKey // in order
	header   *header              // nil: none was found
	contents checkpoint.Contents
	lineage  checkpoint.Lineage
}

// Salvage reads the whole records that bbolt still finds in a damaged file. Errors are *[checkpoint.OpenError].
func Salvage(path string, o Options) (*Salvaged, error) {
	d := newStore(resolved(path), Options{ReadOnly: true, checker: o.checker})
	s, found := &Salvaged{}, make(map[string]*checkpoint.KeptKey)
	if err := d.salvage(func(p piece) { s.keep(p, found) }); err != nil {
		return nil, d.openError(err)
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		s.Keys = append(s.Keys, *found[key])
	}
	s.oneKeyPerLead()
	return s, nil
}

// Counts returns the number of keys by state. An export leaves forgotten keys out.
func (s *Salvaged) Counts() map[checkpoint.State]int {
	n := map[checkpoint.State]int{checkpoint.Forgotten: len(s.contents.Forgotten)}
	for _, k := range s.Keys {
		n[k.Shown().State]++
	}
	return n
}

func (d *Store) salvage(keep func(piece)) error {
	if err := d.openLocked(checkpoint.Target{}); err != nil {
		return err
	}
	defer d.release() // fails if bbolt could not open the file, since it closes the file then
	code, err := d.inChild(readPieces, func(said io.Reader) {
		for from, p := json.NewDecoder(said), (piece{}); from.Decode(&p) == nil; p = (piece{}) {
			keep(p)
		}
	})
	if code == isUnable && d.mapFile() == nil { // otherwise nothing can be read
		d.pieces(func(p piece) error { keep(p); return nil })
	}
	return err
}

func (s *Salvaged) keep(p piece, found map[string]*checkpoint.KeptKey) {
	key := string(p.Key)
	switch p.Bucket {
	case string(inMeta):
		if h, err := decodeHeader(p.Value); key == string(headerKey) && err == nil && h.Format == checkpoint.Format {
			s.header = h
		}
	case string(inNotes):
		if value, err := decodeNote(key, p.Value); err == nil && key == checkpoint.LineageNote {
			_ = checkpoint.Decode(value, &s.lineage) // if it cannot be read, there is none
		} else if err == nil {
			s.contents.Notes = append(s.contents.Notes, checkpoint.Note{Name: key, Value: value})
		}
	case string(inBlocked):
		if b, err := decodeBlock(p.Key, p.Value); err == nil {
			s.contents.Forgotten = append(s.contents.Forgotten, b)
		}
	case string(inEntries), string(newEntries), string(inIntents):
		if p.Bucket == string(newEntries) {
			_, own := parseLogKey(p.Key)
			key = string(own)
		}
		one, err := decodeKept(key, p.Value, nil)
		isIntent := p.Bucket == string(inIntents)
		if err != nil || isIntent != (one.State == checkpoint.InDoubt) {
			return
		}
		if found[key] == nil {
			found[key] = new(checkpoint.KeptKey)
		}
		if isIntent {
			found[key].Intent = one
		} else if found[key].Entry == nil { // else this is the log, and the record in its place counts
			found[key].Entry = one
		}
	}
}

// oneKeyPerLead keeps the first of several keys with one lead, and puts the others in doubt.
func (s *Salvaged) oneKeyPerLead() {
	known := make(map[string]bool)
	for i, k := range s.Keys {
		e := k.Entry
		if e == nil || !e.State.HasLead() || e.LeadID == "" {
			continue
		}
		if !known[e.LeadID] {
			known[e.LeadID] = true
			continue
		}
		e.WantLink, e.ExternalID = cmp.Or(e.WantLink, e.ExternalID), ""
		e.State, e.Reason = checkpoint.InDoubt, checkpoint.ReasonLeadTaken
		s.Keys[i] = checkpoint.KeptKey{Intent: e}
	}
}

const missingAfterRepair = "an unknown number of leads that the damaged one knew"

// Repair makes a new checkpoint, with an ID of its own, from the whole records of a damaged one. It is always
// incomplete: nobody knows what a damaged file has lost. t is only needed if nothing can be read.
func Repair(from, to string, t checkpoint.Target, o Options) (*Salvaged, error) {
	s, err := Salvage(from, o)
	if err != nil {
		return nil, err
	}
	switch h := s.header; {
	case h == nil && len(s.Keys) > 0: // rows can be exported, but digests and hashes are useless without their key
		return nil, checkpoint.Refuse(from, checkpoint.ErrDamaged, "has lost its target and the key of its digests",
			"leadferry checkpoint export --checkpoint "+shell.Path(from)+" -o kept.csv; then leadferry "+
				"checkpoint adopt kept.csv --checkpoint "+shell.Path(to)+"; then "+checkpoint.AdoptRuns(to, nil)+
				". An export is adopted by itself")
	case h == nil && (!o.Empty || t == checkpoint.Target{}):
		return nil, checkpoint.Refuse(from, checkpoint.ErrDamaged, "holds nothing of a checkpoint",
			"what runs made is in their results: add --results leadferry-runs/*/results.csv*, and the target's flags")
	case h != nil && h.Moved != "" && (checkpoint.IsAddress(h.Moved) || disk.Exists(h.Moved)):
		return nil, checkpoint.RefuseElsewhere(from, h.ID, h.Moved, "")
	}
	made := newHeader(t)
	made.Lacks, made.Since = missingAfterRepair, math.MaxInt64
	if s.header != nil {
		made.Secret, made.Target = s.header.Secret, s.header.Target
	}
	s.descendFrom(from, o.Witnesses)
	c := &s.contents
	c.Secret, c.Missing = made.Secret, missingAfterRepair
	c.Keys = func(_ context.Context, f func(checkpoint.KeptKey) error) (err error) {
		for i := 0; i < len(s.Keys) && err == nil; i++ {
			err = f(s.Keys[i])
		}
		return err
	}
	contents := func() (*checkpoint.Contents, error) { return c, nil }
	return s, makeFrom(resolved(to), &made, Options{AnyPlace: o.AnyPlace, Now: o.Now}, contents)
}

// descendFrom makes the damaged ledger an ancestor, by all IDs that its file or the book knows of it.
func (s *Salvaged) descendFrom(from string, book *checkpoint.Witnesses) {
	l := &s.lineage
	l.Adopting = nil
	if s.header != nil {
		l.Descend(s.header.ID, math.MaxUint64)
	}
	for _, w := range book.All() {
		if w.Err == nil && resolved(w.Place) == resolved(from) {
			l.Descend(w.Ledger, math.MaxUint64)
		}
	}
	s.contents.Notes = append(s.contents.Notes, l.Note())
}
