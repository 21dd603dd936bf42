package bolt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
	"leadferry/internal/disk"
)

// Results are what those of a run tell of leads, with the ID of the checkpoint that the run used, or
// "" where nobody knows.
type Results struct {
	Source  string
	ID      string
	Target  checkpoint.Target
	Entries []checkpoint.Entry // as for [Store.Adopt]
}

// Repaired says what came into a new checkpoint, and what is missing.
type Repaired struct {
	Salvaged
	Found  int      // leads that the file lacked and results know
	Left   int      // leads of results that have another key; left out
	Passed []string // results of another target; passed over
}

// Repair makes a new checkpoint of what the checksums of a damaged one vouch for and of what
// results know besides, with an ID of its own that records the old one. It is always incomplete: nobody knows what a
// damaged file has lost. t is needed only where the file has lost its target. A dry run writes nothing.
func Repair(from, to string, t checkpoint.Target, results []Results, dryRun bool, o Options) (r Repaired, err error) {
	s, err := salvageFile(from)
	if err != nil {
		return r, err
	}
	if s.nothing() && len(results) == 0 {
		return r, refuse(from, checkpoint.ErrDamaged, "holds nothing of a checkpoint",
			"what runs made stands in their results: --results leadferry-runs/*/results.csv")
	}
	if to, moved := strings.CutPrefix(s.moving, movedTo); moved && (checkpoint.IsAddress(to) || disk.Exists(to)) {
		return r, wasMoved(from, to, s.header.id)
	}
	p := repair{salvage: s, from: from, secret: s.header.version != 0, owners: make(map[string]string, len(s.records))}
	if err := p.identify(t, o); err != nil {
		return r, err
	}
	p.findOwners()
	if err := p.addResults(results); err != nil {
		return r, err
	}
	if dryRun {
		return p.result, nil
	}
	return p.result, p.write(resolved(to), o)
}

type repair struct {
	*salvage
	from     string
	secret   bool               // the key of the digests is known
	made     header             // of the new file
	ancestry checkpoint.Lineage // of the new file
	owners   map[string]string  // lead ID → key
	extra    []checkpoint.Entry // of results: what the file lacks
	result   Repaired
}

func (p *repair) identify(t checkpoint.Target, o Options) error {
	h := newHeader(p.header.target, o.now())
	if p.secret {
		h.secret = p.header.secret
	} else if h.target = t; t == (checkpoint.Target{}) {
		return refuse(p.from, checkpoint.ErrDamaged, "has lost even the target that it belongs to", "name it: --base-url, --leads-url and --trunk-id")
	}
	p.made = h
	_ = json.Unmarshal(p.notes[checkpoint.LineageNote], &p.ancestry) // of one that is lost, nothing is known
	if p.secret {                                                    // whatever witnesses tell of it: what they know besides is held
		p.ancestry.Descend(p.header.id.String(), math.MaxUint64)
	}
	for _, w := range o.Witnesses.All() {
		if w.Err == nil && resolved(w.Place) == resolved(p.from) {
			p.ancestry.Descend(w.Ledger, math.MaxUint64)
		}
	}
	p.ancestry.Adopting = nil
	p.result.Salvaged = p.sum()
	return nil
}

func (o *Options) now() (t time.Time) {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// findOwners finds the keys under which leads stand. Of two keys with one lead, which a page
// from before a correction may bring, the later one has it.
func (p *repair) findOwners() {
	for key, one := range p.records {
		var e checkpoint.Entry
		if err := p.blank.Decode(key, one.record, &e); err != nil || !e.State.HasLead() || e.LeadID == "" {
			continue
		}
		if other, twice := p.owners[e.LeadID]; !twice || p.records[other].seq < e.Seq {
			p.owners[e.LeadID] = key
		}
	}
}

// addResults takes over what results of runs know and the file lacks.
func (p *repair) addResults(results []Results) error {
	taken := make(map[string]bool)
	for _, one := range results {
		if !p.secret {
			one.ID = "" // nobody knows what the file's own ID was
		}
		if ours, err := p.belongs(&one); err != nil {
			return err
		} else if !ours {
			p.result.Passed = append(p.result.Passed, one.Source)
			continue
		}
		for i := range one.Entries {
			e := &one.Entries[i]
			if text, hint := e.Unfit(); text != "" {
				return fmt.Errorf("%s: %w", one.Source, &checkpoint.ListError{Index: i, Key: e.Key, Text: text, Hint: hint})
			}
			if taken[e.Key] || p.forgot(e.Key) || !p.wants(e) {
				continue
			}
			taken[e.Key] = true
			p.add(e)
		}
	}
	return nil
}

// belongs says whether results are of the target of this checkpoint. Those of its target and
// of another checkpoint are an error; of those without an ID nobody knows.
func (p *repair) belongs(one *Results) (bool, error) {
	switch {
	case one.ID == "":
		return true, nil
	case one.Target.Canonical() != p.made.target.Canonical():
		return false, nil
	case !p.descends(one.ID):
		return false, refuse(p.from, checkpoint.ErrTarget, fmt.Sprintf("is another checkpoint than the one whose run wrote %s (ID %s)", one.Source, one.ID),
			"name the results of runs that used this one")
	}
	return true, nil
}

// wants says whether a result knows more of its key than the file. It counts those that are
// left out because the file has their lead under another key.
func (p *repair) wants(e *checkpoint.Entry) bool {
	was, owner := p.records[e.Key], p.owners[e.LeadID]
	switch {
	case e.State == checkpoint.Rejected:
		return false
	case e.State == checkpoint.InDoubt:
		return !was.counts()
	case was.state.HasLead() && !p.lacksID(e):
		return false
	case e.LeadID != "" && owner != "" && owner != e.Key:
		p.result.Left++
		return false
	}
	return e.LeadID != "" || was.state != checkpoint.InDoubt // else a person knows no more than before
}

// add takes a result over, and counts its lead where the file knows of none.
func (p *repair) add(e *checkpoint.Entry) {
	p.extra = append(p.extra, *e)
	if e.State == checkpoint.InDoubt {
		return
	}
	if e.LeadID != "" {
		p.owners[e.LeadID] = e.Key
	}
	if was := p.records[e.Key]; !was.counts() {
		p.result.Found++
	}
}

// lacksID says whether a lead is known whose ID a result brings.
func (p *repair) lacksID(e *checkpoint.Entry) bool {
	var old checkpoint.Entry
	err := p.blank.Decode(e.Key, p.records[e.Key].record, &old)
	return err == nil && old.LeadID == "" && e.LeadID != ""
}

// descends says whether the file has this ID or had it once.
func (p *repair) descends(text string) bool {
	return slices.ContainsFunc(p.ancestry.Ancestors, func(a checkpoint.Ancestor) bool { return a.ID == text })
}

func (p *repair) write(to string, o Options) error {
	cutOff := lacking{text: missingAfterRepair, since: 1<<63 - 1}
	o = Options{AnyPlace: o.AnyPlace, Now: o.Now, Require: true}
	return makeFrom(to, p.made, record{lackingKey, cutOff.encode()}, o, func(d *Store) error {
		c, err := p.contents()
		if err != nil {
			return err
		}
		if err := checkpoint.TakeOver(context.Background(), d, c); err != nil {
			return err
		}
		if err := p.writeExtra(d); err != nil {
			return err
		}
		return d.alone(p.conclude)
	})
}

// contents is what was found, as the new checkpoint takes it. Of one whose key of digests is lost, entries and runs are all.
func (p *repair) contents() (*checkpoint.Contents, error) {
	c := &checkpoint.Contents{Keys: p.keys}
	var decisions []checkpoint.Note
	for name, value := range p.notes {
		if strings.HasPrefix(name, checkpoint.DecidedNote) {
			decisions = append(decisions, checkpoint.Note{Name: name, Value: value})
		}
	}
	err := checkpoint.ForgetDecisions(decisions, p.forgot, nil, func(n checkpoint.Note) error { p.notes[n.Name] = n.Value; return nil })
	for name, value := range p.notes {
		if value != nil && (p.secret || strings.HasPrefix(name, checkpoint.RunNote(""))) {
			c.Notes = append(c.Notes, checkpoint.Note{Name: name, Value: value})
		}
	}
	if !p.secret {
		return c, err
	}
	for hash, record := range p.blocked {
		b, err := records.DecodeBlock([]byte(hash), record)
		if err != nil {
			return nil, err
		}
		c.Forgotten = append(c.Forgotten, b)
	}
	return c, err
}

// forgot says whether a key was forgotten, as far as that is known still.
func (p *repair) forgot(key string) bool {
	return p.secret && p.blocked[string(p.digests.Blocked(key))] != nil
}

func (p *repair) keys(_ context.Context, f func(checkpoint.KeptKey) error) error {
	for _, key := range slices.Sorted(maps.Keys(p.records)) {
		k, err := p.under(key)
		if err == nil {
			err = f(k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// under is what is to stand under a key: of two keys with one lead, one falls in doubt. Digests that nobody can make again go.
func (p *repair) under(key string) (checkpoint.KeptKey, error) {
	k, err := p.blank.Kept(key, p.records[key].record)
	if err != nil {
		return checkpoint.KeptKey{}, err
	}
	if !p.secret {
		k.Digest, k.Content, k.Refused = checkpoint.Digest{}, nil, checkpoint.Digest{}
	}
	if k.State.HasLead() && k.LeadID != "" && p.owners[k.LeadID] != key {
		k.WantLink, k.ExternalID = cmp.Or(k.WantLink, k.ExternalID), ""
		k.State, k.Reason = checkpoint.InDoubt, checkpoint.ReasonLeadTaken
	}
	if k.State == checkpoint.InDoubt {
		return checkpoint.KeptKey{Intent: k}, nil
	}
	return checkpoint.KeptKey{Entry: k}, nil
}

// writeExtra takes over what results know besides.
func (p *repair) writeExtra(d *Store) error {
	slices.SortFunc(p.extra, func(a, b checkpoint.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return d.Alone(context.Background(), func(tx checkpoint.Tx) error {
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
}

// missingAfterRepair is what a repaired checkpoint lacks.
const missingAfterRepair = "an unknown number of leads that the damaged one knew"

// conclude says what is missing of all that was written, and where it comes from.
func (p *repair) conclude(w *writing) error {
	lineage, err := p.ancestry.Encode()
	if err != nil {
		return err
	}
	return errors.Join(w.PutNote(checkpoint.Note{Name: checkpoint.LineageNote, Value: lineage}), w.meta.Put(lackingKey, lacking{text: missingAfterRepair, since: w.seq}.encode()))
}
