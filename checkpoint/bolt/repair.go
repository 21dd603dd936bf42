package bolt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"leadferry/checkpoint"
)

// Evidence is what the results of a run tell of leads, with the ID of the checkpoint that the
// run used, or "" where nobody knows.
type Evidence struct {
	Source  string
	ID      string
	Target  checkpoint.Target
	Entries []checkpoint.Entry // as for [Store.Adopt]
}

// Repaired says what came into a new checkpoint, and what is missing.
type Repaired struct {
	Salvaged
	Found  int      // leads that the file lacked and results know
	Unsure int      // of these, from results of which nobody knows whether they are of this checkpoint
	Left   int      // leads of results that have another key; left out
	Passed []string // results of another target; passed over
}

// Repair makes a new checkpoint of what the checksums of a damaged one vouch for and of what
// results know besides, with an ID of its own that records the old one. While leads are
// missing it is incomplete. A repair that is cut off leaves a file that is incomplete too. t
// is needed only where the file has lost its target. A dry run writes nothing.
func Repair(from, to string, t checkpoint.Target, results []Evidence, dryRun bool, o Options) (r Repaired, err error) {
	s, err := salvageFile(from)
	if err != nil {
		return r, err
	}
	if s.nothing() && len(results) == 0 {
		return r, &checkpoint.OpenError{
			Path: from, Text: "holds nothing of a checkpoint", Err: checkpoint.ErrDamaged,
			Hint: "what runs made stands in their results: --results leadferry-runs/*/results.csv",
		}
	}
	if to, moved := strings.CutPrefix(s.moving, movedTo); moved {
		return r, &checkpoint.OpenError{Path: from, Text: "was copied to " + to + ", where its leads are known from now on", Hint: "use --checkpoint " + checkpoint.Word(to), Err: checkpoint.ErrGone}
	}
	p := repair{salvage: s, from: from, secret: s.header.version != 0}
	if err := p.identify(t, o); err != nil {
		return r, err
	}
	p.owners = p.leadOwners()
	if err := p.addResults(results); err != nil {
		return r, err
	}
	if dryRun {
		return p.result, nil
	}
	return p.result, p.write(resolved(to), o)
}

// repair is one on its way.
type repair struct {
	*salvage
	from   string
	secret bool               // the key of the digests is known
	owners map[string]string  // lead ID → key
	extra  []checkpoint.Entry // of results: what the file lacks
	result Repaired
	made   header
}

// identify makes the header of the new file.
func (p *repair) identify(t checkpoint.Target, o Options) error {
	now := o.now()
	h := newHeader(p.header.target, now)
	if p.secret {
		h.secret = p.header.secret
		h.ancestors = append(slices.Clone(p.header.ancestors), p.header.id)
	} else if h.target = t; t == (checkpoint.Target{}) {
		return &checkpoint.OpenError{
			Path: p.from, Text: "has lost even the target that it belongs to", Err: checkpoint.ErrDamaged,
			Hint: "name it: --base-url, --leads-url and --trunk-id",
		}
	}
	if p.hasSeqLine && p.seqLine.id != p.header.id && !slices.Contains(h.ancestors, p.seqLine.id) {
		h.ancestors = append(h.ancestors, p.seqLine.id)
	}
	p.made = h
	p.result.Salvaged = p.sum()
	return nil
}

func (o *Options) now() (t time.Time) {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// leadOwners are the keys under which leads stand. Of two keys with one lead, which a page
// from before a correction may bring, the later one has it.
func (p *repair) leadOwners() map[string]string {
	owners := make(map[string]string, len(p.records))
	for key, one := range p.records {
		var e checkpoint.Entry
		if _, err := p.blank.Decode(key, one.last.record, &e); err != nil || !e.State.HasLead() || e.LeadID == "" {
			continue
		}
		if other, twice := owners[e.LeadID]; !twice || p.records[other].last.seq < e.Seq {
			owners[e.LeadID] = key
		}
	}
	return owners
}

// addResults takes over what results of runs know and the file lacks.
func (p *repair) addResults(results []Evidence) error {
	digests, taken := checkpoint.NewDigester(p.made.secret), make(map[string]bool)
	for _, one := range results {
		if !p.secret && !p.hasSeqLine {
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
			forgotten := p.secret && p.blocked[string(digests.Blocked(e.Key))] != nil
			if taken[e.Key] || forgotten || !p.wants(e) {
				continue
			}
			taken[e.Key] = true
			p.add(e, one.ID != "")
		}
	}
	p.countMissing()
	return nil
}

// belongs says whether results are of the target of this checkpoint. Those of its target and
// of another checkpoint are an error; of those without an ID nobody knows.
func (p *repair) belongs(one *Evidence) (bool, error) {
	switch {
	case one.ID == "":
		return true, nil
	case one.Target.Canonical() != p.made.target.Canonical():
		return false, nil
	case !p.descends(one.ID):
		return false, &checkpoint.OpenError{
			Path: p.from, Err: checkpoint.ErrTarget, Hint: "name the results of runs that used this one",
			Text: fmt.Sprintf("is another checkpoint than the one whose run wrote %s (ID %s)", one.Source, one.ID),
		}
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
		return !was.last.counts()
	case was.last.state.HasLead() && !p.lacksID(e):
		return false
	case e.LeadID != "" && owner != "" && owner != e.Key:
		p.result.Left++
		return false
	}
	return e.LeadID != "" || was.last.state != checkpoint.InDoubt // else a person knows no more than before
}

// add takes a result over, and counts its lead where the file is not sure of one; sure says
// that the run used this checkpoint.
func (p *repair) add(e *checkpoint.Entry, sure bool) {
	p.extra = append(p.extra, *e)
	if e.State == checkpoint.InDoubt {
		return
	}
	if e.LeadID != "" {
		p.owners[e.LeadID] = e.Key
	}
	if was := p.records[e.Key]; was.sure() {
		return
	}
	p.result.Found++
	if !sure {
		p.result.Unsure++
	}
}

// lacksID says whether a lead is known whose ID a result brings.
func (p *repair) lacksID(e *checkpoint.Entry) bool {
	var old checkpoint.Entry
	_, err := p.blank.Decode(e.Key, p.records[e.Key].last.record, &old)
	return err == nil && old.LeadID == "" && e.LeadID != ""
}

// countMissing takes off what is missing what results know for sure.
func (p *repair) countMissing() {
	sure := p.result.Found - p.result.Unsure
	if p.result.Missing == 0 || p.lacks.some {
		return // nobody can tell which of the missing ones they are
	}
	p.result.Missing = max(0, p.result.Missing-sure)
	p.result.Lost = p.result.Missing > 0
}

// descends says whether the file has this ID or had it once.
func (p *repair) descends(text string) bool {
	id, err := parseID(text)
	return err == nil && (p.secret && id == p.header.id || slices.Contains(p.made.ancestors, id))
}
