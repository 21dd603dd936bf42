package storetest

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// reference is a Store with as many methods as the comparison needs. It looks through all keys where others have
// indexes.
type reference struct {
	checkpoint.Store // nil: nobody asks for the rest
	now              func() time.Time
	known            knowledge
}

// knowledge is what the reference knows, in maps, and its transaction. What a record points to is never changed, so a
// copy of the maps is a copy of everything.
type knowledge struct {
	checkpoint.Tx // nil: nobody asks for the rest
	at            time.Time
	seq           uint64
	keys          map[string]checkpoint.KeptKey // none is empty
	blocked       map[string]string             // hash of a forgotten key → hash of its fold, if that is another one
	digests       *checkpoint.Digester
	notes         map[string][]byte
}

func newReference(now func() time.Time) *reference {
	return &reference{now: now, known: knowledge{
		keys: map[string]checkpoint.KeptKey{}, blocked: map[string]string{}, notes: map[string][]byte{},
		digests: checkpoint.NewDigester([]byte(rand.Text())),
	}}
}

func (r *reference) Digests() *checkpoint.Digester { return r.known.digests }

func (r *reference) Info() checkpoint.Info {
	i := checkpoint.Info{Keys: map[checkpoint.State]int{}}
	for s := checkpoint.Created; s < checkpoint.Forgotten; s++ {
		i.Keys[s] = 0
	}
	for key := range r.known.keys {
		i.Keys[r.known.visible(key).State]++
	}
	i.Keys[checkpoint.Forgotten] = len(r.known.blocked)
	i.Leads, i.InDoubt = i.Keys[checkpoint.Created]+i.Keys[checkpoint.Partial], i.Keys[checkpoint.InDoubt]
	return i
}

func (r *reference) Commit(ctx context.Context, changes []*checkpoint.Change) error {
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b *checkpoint.Change) int { return strings.Compare(a.Entry.Key, b.Entry.Key) })
	return r.Alone(ctx, func(tx checkpoint.Tx) error {
		for _, c := range sorted {
			key := c.Entry.Key
			k, shown, _ := tx.Under(key)
			if c.Err = k.Apply(tx, c, shown); c.Err == nil {
				_ = tx.Put(key, k)
			}
		}
		return nil
	})
}

func (r *reference) Alone(_ context.Context, f func(checkpoint.Tx) error) error {
	next := r.known
	next.keys, next.blocked, next.notes = maps.Clone(next.keys), maps.Clone(next.blocked), maps.Clone(next.notes)
	next.seq++
	next.at = r.now()
	if err := f(&next); err != nil {
		return err
	}
	r.known = next
	return nil
}

func (r *reference) Scan(_ context.Context, which checkpoint.Filter, f func(checkpoint.KeptKey) error) (err error) {
	for _, key := range slices.Sorted(maps.Keys(r.known.keys)) {
		if err == nil && key >= which.From {
			err = f(r.known.keys[key])
		}
	}
	return err
}

func (r *reference) Notes(_ context.Context, prefix string) ([]checkpoint.Note, error) {
	return r.known.Notes(prefix)
}

func (r *reference) Find(_ context.Context, qs []checkpoint.Query) error {
	return checkpoint.Find(&r.known, qs)
}

func (k *knowledge) Show(key string, out *checkpoint.Entry) error {
	*out = k.visible(key).Entry
	return nil
}

func (k *knowledge) Alike(folded string) (keys []string, forgotten bool) {
	for _, key := range slices.Sorted(maps.Keys(k.keys)) {
		if key != folded && rowkey.Fold(key) == folded {
			keys = append(keys, key)
		}
	}
	fold := string(k.digests.Blocked(folded))
	for hash, other := range k.blocked {
		forgotten = forgotten || other == fold || hash == fold
	}
	return keys, forgotten
}

func (k *knowledge) visible(key string) *checkpoint.Kept {
	one := k.keys[key]
	if shown := one.Shown(); shown != nil {
		return shown
	}
	none := &checkpoint.Kept{Entry: checkpoint.Entry{Key: key}}
	if _, blocked := k.blocked[string(k.digests.Blocked(key))]; blocked {
		none.State = checkpoint.Forgotten
	}
	return none
}

func (k *knowledge) LinkOwners(external, key string) (others []string, err error) {
	for _, other := range slices.Sorted(maps.Keys(k.keys)) {
		if one := k.keys[other]; one.OwnsLink(external) && other != key {
			others = append(others, other)
		}
	}
	return others, nil
}

func (k *knowledge) Now() time.Time { return k.at }

func (k *knowledge) Seq() uint64 { return k.seq }

func (k *knowledge) Owner(lead, _ string) (string, error) {
	for key, one := range k.keys {
		if lead != "" && one.Entry != nil && one.Entry.LeadID == lead {
			return key, nil
		}
	}
	return "", nil
}

func (k *knowledge) Load([]string, []string) error { return nil }

func (k *knowledge) OtherMaySend(string) bool { return false }

func (k *knowledge) Under(key string) (checkpoint.KeptKey, *checkpoint.Kept, error) {
	return k.keys[key], k.visible(key), nil
}

func (k *knowledge) Put(key string, one checkpoint.KeptKey) error {
	if k.keys[key] = one; one == (checkpoint.KeptKey{}) {
		delete(k.keys, key)
	}
	return nil
}

func (k *knowledge) InDoubt(after string) (keys []string, err error) {
	for _, key := range slices.Sorted(maps.Keys(k.keys)) {
		if key > after && k.keys[key].Intent != nil {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func (k *knowledge) Erase(keys []string) error {
	for _, key := range keys {
		delete(k.keys, key)
		delete(k.blocked, string(k.digests.Blocked(key)))
	}
	return nil
}

func (k *knowledge) Block(b checkpoint.KeptBlock) error {
	k.blocked[string(b.Hash)] = string(b.Fold)
	return nil
}

func (k *knowledge) Note(name string) ([]byte, error) { return k.notes[name], nil }

func (k *knowledge) PutNote(n checkpoint.Note) error {
	if k.notes[n.Name] = n.Value; n.Value == nil {
		delete(k.notes, n.Name)
	}
	return nil
}

func (k *knowledge) Notes(prefix string) (all []checkpoint.Note, err error) {
	for _, name := range slices.Sorted(maps.Keys(k.notes)) {
		if strings.HasPrefix(name, prefix) {
			all = append(all, checkpoint.Note{Name: name, Value: k.notes[name]})
		}
	}
	return all, nil
}
