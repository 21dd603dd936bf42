package bolt

import (
	"cmp"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
	"leadferry/internal/disk"
)

// Salvaged says what could be read of a damaged file.
type Salvaged struct {
	Keys      [states]int // by State
	Forgotten int         // keys whose hash was found; an export cannot hold them
}

// Salvage reads of a damaged file what bbolt still finds and checksums vouch for, and calls f with it, ordered by key.
// An error of f ends it and is returned as it is; other errors are *[checkpoint.OpenError].
func Salvage(path string, f func(checkpoint.Entry) error) (Salvaged, error) {
	s, err := salvageFile(path, nil)
	if err != nil {
		return Salvaged{}, err
	}
	for _, k := range s.all {
		if err := f(k.Shown().Entry); err != nil {
			return Salvaged{}, err
		}
	}
	return s.sum(), nil
}

// salvage is what was found in a damaged file.
type salvage struct {
	header  *header                       // nil: none was found
	keys    map[string]checkpoint.KeptKey // what is under each key
	owners  map[string]string             // lead ID → key
	notes   map[string][]byte             // by name
	blocked []checkpoint.KeptBlock
}

func salvageFile(path string, checker []string) (*salvage, error) {
	d := &Store{path: resolved(path), readOnly: true} // as Open does
	s := &salvage{
		keys: make(map[string]checkpoint.KeptKey), owners: make(map[string]string), notes: make(map[string][]byte),
	}
	if err := s.read(d, checker); err != nil {
		return nil, d.openError(err)
	}
	s.findOwners()
	return s, nil
}

func (s *salvage) read(d *Store, checker []string) error {
	if err := d.openLocked(checkpoint.Target{}, Options{ReadOnly: true}); err != nil {
		return err
	}
	defer d.release() // what bbolt cannot open, it closes
	child, alive, err := d.apart(checker, readPieces)
	if err != nil {
		return err
	}
	if child == nil { // this process has to do
		if d.mapFile() == nil { // otherwise nothing can be read
			d.pieces(func(p any) error { s.keep(p.(piece)); return nil })
		}
		return nil
	}
	defer alive.Close()
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		return fmt.Errorf("the process that reads it cannot be started: %w", err)
	}
	for from, p := gob.NewDecoder(out), (piece{}); from.Decode(&p) == nil; p = (piece{}) {
		s.keep(p)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = child.Wait() // whatever it ended with
	return nil
}

// keep takes a record whose checksum is right.
func (s *salvage) keep(p piece) {
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
		if n, err := decodeNote(p.Key, p.Value); err == nil {
			s.notes[n.Name] = n.Value
		}
	case string(inBlocked):
		if b, err := records.DecodeBlock(slices.Clone(p.Key), slices.Clone(p.Value)); err == nil {
			s.blocked = append(s.blocked, b)
		}
	}
}

func (s *salvage) keepEntry(key string, record []byte, intent bool) {
	one, err := records.Kept(key, record)
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

// findOwners finds the keys that have leads. Of two keys with one lead, the second falls in doubt.
func (s *salvage) findOwners() {
	for key, k := range s.all {
		e := k.Entry
		if e == nil || !e.State.HasLead() || e.LeadID == "" {
			continue
		}
		if _, twice := s.owners[e.LeadID]; !twice {
			s.owners[e.LeadID] = key
			continue
		}
		e.WantLink, e.ExternalID = cmp.Or(e.WantLink, e.ExternalID), ""
		e.State, e.Reason = checkpoint.InDoubt, checkpoint.ReasonLeadTaken
		s.keys[key] = checkpoint.KeptKey{Intent: e}
	}
}

// all goes through the keys in order.
func (s *salvage) all(yield func(string, checkpoint.KeptKey) bool) {
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		if !yield(key, s.keys[key]) {
			return
		}
	}
}

func (s *salvage) sum() (r Salvaged) {
	for _, k := range s.keys {
		r.Keys[k.Shown().State]++
	}
	r.Forgotten = len(s.blocked)
	return r
}

// Results are what those of a run tell of leads, with the ID of the checkpoint that the run used, or
// "" where nobody knows.
type Results struct {
	Source  string
	ID      string
	Target  checkpoint.Target
	Entries []checkpoint.Entry // as for [checkpoint.AdoptList]
}

// Repaired says what came into a new checkpoint.
type Repaired struct {
	Salvaged
	Found  int      // leads that the file lacked and results know
	Left   int      // leads of results that have another key; left out
	Passed []string // results of another target; passed over
}

// missingAfterRepair is what a repaired checkpoint lacks.
const missingAfterRepair = "an unknown number of leads that the damaged one knew"

// Repair makes a new checkpoint of what the checksums of a damaged one vouch for and of what results know besides,
// with an ID of its own. It is always incomplete: nobody knows what a damaged file has lost. t is needed only where
// the file has lost its target. A dry run writes nothing.
func Repair(from, to string, t checkpoint.Target, results []Results, dryRun bool, o Options) (Repaired, error) {
	s, err := salvageFile(from, o.checker)
	if err != nil {
		return Repaired{}, err
	}
	if len(s.keys) == 0 && s.header == nil && len(results) == 0 {
		return Repaired{}, refuse(from, checkpoint.ErrDamaged, "holds nothing of a checkpoint",
			"what runs made is in their results: --results leadferry-runs/*/results.csv")
	}
	if h := s.header; h != nil && h.Moved != "" && (checkpoint.IsAddress(h.Moved) || disk.Exists(h.Moved)) {
		return Repaired{}, wasMoved(from, h)
	}
	p := repair{salvage: s, from: from, made: newHeader(t, o.clock()), result: Repaired{Salvaged: s.sum()}}
	p.made.Lacks, p.made.Since = missingAfterRepair, math.MaxInt64
	if s.header != nil {
		p.made.Secret, p.made.Target = s.header.Secret, s.header.Target
	} else if t == (checkpoint.Target{}) {
		return p.result, refuse(from, checkpoint.ErrDamaged, "has lost even the target that it belongs to",
			"name it: --base-url, --leads-url and --trunk-id")
	}
	p.findAncestors(o.Witnesses)
	if err := p.addResults(results); err != nil || dryRun {
		return p.result, err
	}
	return p.result, makeFrom(resolved(to), &p.made, Options{AnyPlace: o.AnyPlace, Now: o.Now, Require: true}, p.fill)
}

type repair struct {
	*salvage
	from    string
	made    header             // of the new file
	lineage checkpoint.Lineage // of the new file
	extra   []checkpoint.Entry // of results: what the file lacks
	result  Repaired
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

// addResults takes over what results of runs know and the file lacks.
func (p *repair) addResults(results []Results) error {
	digests, forgotten := checkpoint.NewDigester(p.made.Secret), make(map[string]bool)
	for _, b := range p.blocked {
		forgotten[string(b.Hash)] = true
	}
	taken := make(map[string]bool)
	for _, one := range results {
		if ours, err := p.belongs(&one); err != nil {
			return err
		} else if !ours {
			p.result.Passed = append(p.result.Passed, one.Source)
			continue
		}
		for i := range one.Entries {
			e := &one.Entries[i]
			if text, hint := e.Unfit(); text != "" {
				return fmt.Errorf("%s: %w", one.Source,
					&checkpoint.ListError{Index: i, Key: e.Key, Text: text, Hint: hint})
			}
			if !taken[e.Key] && !forgotten[string(digests.Blocked(e.Key))] && p.takes(e) {
				taken[e.Key] = true
			}
		}
	}
	return nil
}

// belongs says whether results are of the target of this checkpoint. Those of its target and of another checkpoint are
// an error; of those without an ID, and of any where the file has lost its own, nobody knows.
func (p *repair) belongs(one *Results) (bool, error) {
	switch {
	case one.ID == "" || p.header == nil:
		return true, nil
	case one.Target.Canonical() != p.made.Target.Canonical():
		return false, nil
	case !slices.ContainsFunc(p.lineage.Ancestors, func(a checkpoint.Ancestor) bool { return a.ID == one.ID }):
		text := fmt.Sprintf("is not the checkpoint whose run wrote %s (ID %s)", one.Source, one.ID)
		return false, refuse(p.from, checkpoint.ErrTarget, text,
			"name the results of runs that used this one")
	}
	return true, nil
}

// takes takes a result over if it knows more of its key than the file, and counts its lead where the file knows of
// none.
func (p *repair) takes(e *checkpoint.Entry) bool {
	k, owner := p.keys[e.Key], p.owners[e.LeadID]
	was := entryOf(k.Shown())
	known, doubt := was.State.HasLead(), was.State == checkpoint.InDoubt
	switch {
	case e.State == checkpoint.Rejected || known && (was.LeadID != "" || e.LeadID == ""):
		return false
	case e.State == checkpoint.InDoubt && (known || doubt):
		return false
	case e.State == checkpoint.InDoubt:
		p.extra = append(p.extra, *e)
		return true
	case e.LeadID != "" && owner != "" && owner != e.Key:
		p.result.Left++ // the file has the lead under another key
		return false
	case e.LeadID == "" && doubt:
		return false // a person knows no more than before
	}
	p.extra = append(p.extra, *e)
	if e.LeadID != "" {
		p.owners[e.LeadID] = e.Key
	}
	if !known && !doubt {
		p.result.Found++
	}
	return true
}

// fill writes what is known into the new file.
func (p *repair) fill(d *Store) error {
	c := &checkpoint.Contents{Keys: p.keyed}
	p.notes[checkpoint.LineageNote] = checkpoint.Encode(&p.lineage)
	for name, value := range p.notes { // where the key of the digests is lost, only these can be understood
		if p.header != nil || name == checkpoint.LineageNote || strings.HasPrefix(name, checkpoint.RunNote("")) {
			c.Notes = append(c.Notes, checkpoint.Note{Name: name, Value: value})
		}
	}
	if p.header != nil {
		c.Forgotten = p.blocked
	}
	if err := checkpoint.TakeOver(context.Background(), d, c); err != nil {
		return err
	}
	slices.SortFunc(p.extra, func(a, b checkpoint.Entry) int { return cmp.Compare(a.Key, b.Key) })
	err := d.Alone(context.Background(), func(tx checkpoint.Tx) error {
		for _, e := range p.extra {
			k, shown, err := tx.Under(e.Key)
			if err == nil {
				k.Adopt(tx, e, shown, false)
				err = tx.Put(e.Key, k)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.alone(func(w *writing) error { return w.setHeader(func(h *header) { h.Since = w.seq }) })
}

// keyed is what the new file is to know of each key: without digests, where nobody can make them again.
func (p *repair) keyed(_ context.Context, f func(checkpoint.KeptKey) error) error {
	for _, k := range p.all {
		for _, one := range []*checkpoint.Kept{k.Entry, k.Intent} {
			if one != nil && p.header == nil {
				one.Digest, one.Content, one.Refused = checkpoint.Digest{}, nil, checkpoint.Digest{}
			}
		}
		if err := f(k); err != nil {
			return err
		}
	}
	return nil
}
