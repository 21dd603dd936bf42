package bolt

import (
	"cmp"
	"context"
	"encoding/gob"
	"io"
	"maps"
	"math"
	"slices"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
)

// Salvaged is what could be read of a damaged file.
type Salvaged struct {
	header  *header                       // nil: none was found
	keys    map[string]checkpoint.KeptKey // what is under each key
	notes   map[string][]byte             // by name
	blocked []checkpoint.KeptBlock
}

// Salvage reads of a damaged file what bbolt still finds and checksums vouch for. Errors are *[checkpoint.OpenError].
func Salvage(path string, o Options) (*Salvaged, error) {
	d := newStore(resolved(path), Options{ReadOnly: true, checker: o.checker})
	s := &Salvaged{keys: make(map[string]checkpoint.KeptKey), notes: make(map[string][]byte)}
	if err := s.read(d); err != nil {
		return nil, d.openError(err)
	}
	s.oneKeyPerLead()
	return s, nil
}

// All goes through what is shown of each key, in order.
func (s *Salvaged) All(yield func(*checkpoint.Entry) bool) {
	for _, k := range s.all {
		if !yield(&k.Shown().Entry) {
			return
		}
	}
}

// Counts are the keys by state. Of forgotten ones an export holds nothing.
func (s *Salvaged) Counts() map[checkpoint.State]int {
	n := map[checkpoint.State]int{checkpoint.Forgotten: len(s.blocked)}
	for _, k := range s.keys {
		n[k.Shown().State]++
	}
	return n
}

func (s *Salvaged) read(d *Store) error {
	if err := d.openLocked(checkpoint.Target{}); err != nil {
		return err
	}
	defer d.release() // what bbolt cannot open, it closes
	code, err := d.apart(readPieces, func(said io.Reader) {
		for from, p := gob.NewDecoder(said), (piece{}); from.Decode(&p) == nil; p = (piece{}) {
			s.keep(p)
		}
	})
	if code == isUnable && d.mapFile() == nil { // otherwise nothing can be read
		d.pieces(func(p piece) error { s.keep(p); return nil })
	}
	return err
}

func (s *Salvaged) keep(p piece) {
	key := string(p.Key)
	switch p.Bucket {
	case string(inMeta):
		if h, err := decodeHeader(p.Value); key == string(headerKey) && err == nil && h.Format == format {
			s.header = h
		}
	case string(newEntries):
		_, own := inLog(p.Key)
		if s.keys[string(own)].Entry == nil { // what is in its place counts
			s.keepEntry(string(own), p.Value, false)
		}
	case string(inEntries):
		s.keepEntry(key, p.Value, false)
	case string(inIntents):
		s.keepEntry(key, p.Value, true)
	case string(inNotes):
		if value, err := decodeNote(key, p.Value); err == nil {
			s.notes[key] = value
		}
	case string(inBlocked):
		if b, err := decodeBlock(p.Key, p.Value); err == nil {
			s.blocked = append(s.blocked, b)
		}
	}
}

func (s *Salvaged) keepEntry(key string, record []byte, intent bool) {
	one, err := decodeKept(key, record)
	if err != nil || intent != (one.State == checkpoint.InDoubt) {
		return
	}
	k := s.keys[key]
	if intent {
		k.Intent = one
	} else {
		k.Entry = one
	}
	s.keys[key] = k
}

// oneKeyPerLead puts the second of two keys with one lead in doubt.
func (s *Salvaged) oneKeyPerLead() {
	known := make(map[string]bool)
	for key, k := range s.all {
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
		s.keys[key] = checkpoint.KeptKey{Intent: e}
	}
}

func (s *Salvaged) all(yield func(string, checkpoint.KeptKey) bool) {
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		if !yield(key, s.keys[key]) {
			return
		}
	}
}

const missingAfterRepair = "an unknown number of leads that the damaged one knew"

// Repair makes a new checkpoint of what the checksums of a damaged one vouch for, with an ID of its own. It is always
// incomplete: nobody knows what a damaged file has lost. t is needed only where the file has lost all.
func Repair(from, to string, t checkpoint.Target, o Options) (*Salvaged, error) {
	s, err := Salvage(from, o)
	if err != nil {
		return nil, err
	}
	switch h := s.header; {
	case h == nil && len(s.keys) > 0: // its rows can be told, its digests, notes and forgotten keys not be understood
		return nil, refuse(from, checkpoint.ErrDamaged, "has lost its target and the key of its digests",
			"leadferry checkpoint export --checkpoint "+checkpoint.Word(from)+" -o kept.csv; then leadferry checkpoint "+
				"adopt kept.csv --checkpoint "+checkpoint.Word(to)+"; then "+checkpoint.AdoptRuns(to, nil)+
				". An export is adopted by itself")
	case h == nil && !o.Empty:
		return nil, refuse(from, checkpoint.ErrDamaged, "holds nothing of a checkpoint",
			"what runs made is in their results: --results leadferry-runs/*/results.csv")
	case h == nil && t == (checkpoint.Target{}):
		return nil, refuse(from, checkpoint.ErrDamaged, "has lost even the target that it belongs to",
			"name it: --base-url, --leads-url and --trunk-id")
	case h != nil && h.Moved != "" && (checkpoint.IsAddress(h.Moved) || disk.Exists(h.Moved)):
		return nil, checkpoint.RefuseElsewhere(from, h.ID, h.Moved, "")
	}
	p := repair{Salvaged: s, from: from, made: newHeader(t)}
	p.made.Lacks, p.made.Since = missingAfterRepair, math.MaxInt64
	if s.header != nil {
		p.made.Secret, p.made.Target = s.header.Secret, s.header.Target
	}
	p.findAncestors(o.Witnesses)
	return s, makeFrom(resolved(to), &p.made, Options{AnyPlace: o.AnyPlace, Now: o.Now}, p.fill)
}

type repair struct {
	*Salvaged
	from    string
	made    header             // of the new file
	lineage checkpoint.Lineage // of the new file
}

// findAncestors finds out which checkpoints the damaged file was, as far as it, or the book, knows still.
func (p *repair) findAncestors(book *checkpoint.Witnesses) {
	_ = checkpoint.Decode(p.notes[checkpoint.LineageNote], &p.lineage) // of one that is lost, nothing is known
	p.lineage.Adopting = nil
	if p.header != nil {
		p.lineage.Descend(p.header.ID, math.MaxUint64)
	}
	for _, w := range book.All() {
		if w.Err == nil && resolved(w.Place) == resolved(p.from) {
			p.lineage.Descend(w.Ledger, math.MaxUint64)
		}
	}
}

func (p *repair) fill(d *Store) error {
	c := &checkpoint.Contents{Forgotten: p.blocked, Missing: missingAfterRepair}
	c.Keys = func(_ context.Context, f func(checkpoint.KeptKey) error) error {
		for _, k := range p.all {
			if err := f(k); err != nil {
				return err
			}
		}
		return nil
	}
	p.notes[checkpoint.LineageNote] = checkpoint.Encode(&p.lineage)
	for name, value := range p.notes {
		c.Notes = append(c.Notes, checkpoint.Note{Name: name, Value: value})
	}
	return checkpoint.TakeOver(context.Background(), d, c)
}
