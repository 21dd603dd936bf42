package bolt

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
	"leadferry/internal/disk"
)

// aboutNew is what to do where the new file cannot be made.
func aboutNew(err error) string {
	if errors.Is(err, fs.ErrExist) {
		return "name a file that is not there yet; nothing was written"
	}
	return disk.WayOut(err)
}

// write makes the new file.
func (p *repair) write(to string, o Options) error {
	cutOff := lacking{some: true, leads: uint64(p.result.Missing), since: 1<<63 - 1}
	made, err := create(to, p.made, cutOff, "")
	if err == nil && !made {
		err = fs.ErrExist
	}
	if err != nil {
		return &checkpoint.OpenError{Path: to, Text: "cannot be made: " + err.Error(), Hint: aboutNew(err), Err: err}
	}
	d, err := Open(to, p.made.target, Options{AnyPlace: o.AnyPlace, Now: o.Now, Require: true})
	if err != nil {
		return err
	}
	for _, part := range []func(*Store) error{p.writeRecords, p.writeLines, p.writeExtra, p.conclude} {
		if err = part(d); err != nil {
			break
		}
	}
	return errors.Join(err, d.Close())
}

// carried is how many records a commit of a repair takes.
const carried = 4096

// inCommits writes each of a list, so many to a commit.
func inCommits[T any](d *Store, list []T, write func(*writing, T) error) error {
	for part := range slices.Chunk(list, carried) {
		err := d.alone(func(w *writing) error {
			for _, one := range part {
				if err := write(w, one); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *repair) writeRecords(d *Store) error {
	return inCommits(d, slices.Sorted(maps.Keys(p.records)), func(w *writing, key string) error {
		return p.carry(w, key)
	})
}

// carry writes what stands under a key. Digests that nobody can make again go.
func (p *repair) carry(w *writing, key string) error {
	var e checkpoint.Entry
	t, err := p.blank.Decode(key, p.records[key].last.record, &e)
	if err != nil {
		return err
	}
	if !p.secret {
		e.Digest, e.Content, e.Refused = checkpoint.Digest{}, nil, checkpoint.Digest{}
	}
	if t, err = p.translate(w, key, t); err != nil {
		return err
	}
	if e.State.HasLead() && e.LeadID != "" && p.owners[e.LeadID] != key {
		e.WantLink, e.ExternalID = cmp.Or(e.WantLink, e.ExternalID), ""
		e.State, e.Reason = checkpoint.InDoubt, checkpoint.ReasonLeadTaken
	}
	if err := w.move(key, checkpoint.Unknown, e.State); err != nil {
		return err
	}
	if e.State == checkpoint.InDoubt {
		return w.putIntent(new(checkpoint.Entry), &e, t)
	}
	return w.replace(new(checkpoint.Entry), &e, t)
}

// translate writes what stands beside an entry in the words of the new file.
func (p *repair) translate(w *writing, key string, t records.Tail) (records.Tail, error) {
	past, err := p.blank.Events(t.Past)
	if err != nil {
		return t, err
	}
	t.Past = nil
	for _, ev := range past {
		t.Past = w.words.AppendEvent(t.Past, ev)
	}
	t.Prior, err = p.again(w, key, t.Prior)
	return t, err
}

// again is a record inside another one, in the words of the new file.
func (p *repair) again(w *writing, key string, record []byte) ([]byte, error) {
	if len(record) == 0 {
		return nil, nil
	}
	var e checkpoint.Entry
	t, err := p.blank.Decode(key, record, &e)
	if err == nil {
		t, err = p.translate(w, key, t)
	}
	return w.words.AppendEntry(nil, &e, t), err
}

// writeLines writes runs, decisions, notes, and hashes of what was forgotten.
func (p *repair) writeLines(d *Store) error {
	return d.alone(func(w *writing) error {
		known := map[string]bool{}
		for _, number := range slices.Sorted(maps.Keys(p.runs)) {
			info, err := decodeRun(numberKey(number), p.runs[number].record)
			if err != nil || known[info.ID] {
				continue
			}
			known[info.ID] = true
			w.tally.runs++
			key := numberKey(w.tally.runs)
			if err := w.runs.Put(key, encodeRun(key, info)); err != nil {
				return err
			}
		}
		if !p.secret {
			return nil
		}
		for key, record := range p.notes {
			w.tally.notes++
			if err := w.notes.Put([]byte(key), record); err != nil {
				return err
			}
		}
		return errors.Join(p.writeBlocked(w), p.writeAudit(w))
	})
}

func (p *repair) writeBlocked(w *writing) error {
	for hash, record := range p.blocked {
		folded, err := records.DecodeBlock([]byte(hash), record)
		if err != nil {
			return err
		}
		w.tally.move(checkpoint.Unknown, checkpoint.Forgotten)
		if folded != nil {
			err = w.folds.Put(records.ForgottenFold(folded, []byte(hash)), nil)
		}
		if err := errors.Join(err, w.blocked.Put([]byte(hash), record)); err != nil {
			return err
		}
	}
	return nil
}

// writeAudit writes the decisions but those about people who were forgotten.
func (p *repair) writeAudit(w *writing) error {
	for _, number := range slices.Sorted(maps.Keys(p.audit)) {
		key := numberKey(number)
		r, err := decodeAudit(key, p.audit[number].record)
		if err != nil {
			return err
		}
		if w.blocked.Get(w.digests.Blocked(r.Key)) != nil || r.other != "" && w.blocked.Get(w.digests.Blocked(r.other)) != nil {
			continue
		}
		if r.send, err = p.again(w, r.Key, r.send); err != nil {
			return err
		}
		w.count(r.kind)
		if err := w.audit.Put(key, r.encode(key)); err != nil {
			return err
		}
	}
	return nil
}

func (p *repair) writeExtra(d *Store) error {
	slices.SortFunc(p.extra, func(a, b checkpoint.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return inCommits(d, p.extra, func(w *writing, e checkpoint.Entry) error {
		_, err := w.adopt(e, false)
		return err
	})
}

// conclude says what is missing of all that was written.
func (p *repair) conclude(d *Store) error {
	return d.alone(func(w *writing) error {
		if p.result.CutOff {
			if err := w.meta.Put(adoptingKey, adoptingMark()); err != nil {
				return err
			}
		}
		if !p.result.Lost {
			return w.meta.Delete(lackingKey)
		}
		return w.meta.Put(lackingKey, lacking{leads: uint64(p.result.Missing), since: w.seq}.encode())
	})
}
