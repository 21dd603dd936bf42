package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"leadferry/checkpoint"
)

// model is the ledger as maps: what must be known after any sequence of calls.
type model struct {
	entries map[string]checkpoint.Entry
	intents map[string]checkpoint.Entry
	priors  map[string]checkpoint.Entry
	blocked map[string]bool
	decided map[string][]decided
	people  map[string]bool // gave the lead ID of the key
}

func newModel() *model {
	return &model{map[string]checkpoint.Entry{}, map[string]checkpoint.Entry{}, map[string]checkpoint.Entry{}, map[string]bool{}, map[string][]decided{}, map[string]bool{}}
}

func (m *model) visible(key string) checkpoint.Entry {
	if e, ok := m.intents[key]; ok {
		return e
	}
	if e, ok := m.entries[key]; ok {
		return e
	}
	if m.blocked[key] {
		return checkpoint.Entry{Key: key, State: checkpoint.Forgotten}
	}
	return checkpoint.Entry{Key: key}
}

func (m *model) claim(in checkpoint.Entry) error {
	switch s := m.visible(in.Key).State; s {
	case checkpoint.Created, checkpoint.Partial:
		return checkpoint.ErrKnown
	case checkpoint.Forgotten:
		return checkpoint.ErrBlocked
	case checkpoint.InDoubt:
		m.priors[in.Key] = m.intents[in.Key]
	}
	in.State = checkpoint.InDoubt
	m.intents[in.Key] = in
	return nil
}

func (m *model) withdraw(key string) {
	delete(m.intents, key)
	if prior, ok := m.priors[key]; ok {
		m.intents[key] = prior
		delete(m.priors, key)
	}
}

func (m *model) owner(lead string) string {
	for k, e := range m.entries {
		if lead != "" && e.LeadID == lead {
			return k
		}
	}
	return ""
}

func (m *model) settle(e checkpoint.Entry) checkpoint.Entry {
	if o := m.owner(e.LeadID); e.State != checkpoint.InDoubt && o != "" && o != e.Key {
		e.State, e.Reason = checkpoint.InDoubt, checkpoint.ReasonLeadTaken
	}
	if e.State == checkpoint.InDoubt {
		in, ok := m.intents[e.Key]
		if !ok {
			in = e
		}
		in.State, in.Code, in.Reason, in.LeadID = checkpoint.InDoubt, e.Code, e.Reason, e.LeadID
		m.intents[e.Key] = in
		return in
	}
	delete(m.intents, e.Key)
	delete(m.priors, e.Key)
	if e.State.HasLead() && !m.entries[e.Key].State.HasLead() {
		m.people[e.Key] = false
	}
	m.entries[e.Key] = e
	return e
}

func (m *model) forget(key string, unblock bool) {
	lead := m.entries[key].LeadID
	for _, in := range []map[string]checkpoint.Entry{m.intents, m.priors} {
		delete(in, key)
		for k, e := range in {
			if lead != "" && e.LeadID == lead {
				e.LeadID = ""
				in[k] = e
			}
		}
	}
	delete(m.decided, key)
	for k, all := range m.decided {
		m.decided[k] = slices.DeleteFunc(all, func(one decided) bool { return lead != "" && one.LeadID == lead })
		for i := range m.decided[k] {
			if send := &m.decided[k][i].send; send.LeadID == lead {
				send.LeadID = ""
			}
		}
	}
	delete(m.entries, key)
	delete(m.blocked, key)
	if !unblock {
		m.blocked[key] = true
	}
}

// adopt returns whether an entry is refused, and takes it if not.
func (m *model) adopt(e checkpoint.Entry, now time.Time) (refused bool) {
	old := m.visible(e.Key)
	switch o := m.owner(e.LeadID); {
	case old.State == checkpoint.Forgotten:
		return false
	case e.State == checkpoint.InDoubt && !old.State.HasLead() && old.State != checkpoint.InDoubt:
		e.Reason = checkpoint.ReasonAdopted
		m.intents[e.Key] = e
		return false
	case e.State == checkpoint.InDoubt:
		return false
	case o != "" && o != e.Key || old.State == checkpoint.InDoubt:
		return true
	case !old.State.HasLead():
		e.Updated = now
		m.entries[e.Key], m.people[e.Key] = e, true
		return false
	case old.LeadID == "" || old.LeadID != e.LeadID && m.people[e.Key]:
		m.people[e.Key] = true
		if old.LeadID != "" {
			old = checkpoint.Entry{Key: e.Key, WantLink: cmp.Or(old.WantLink, old.ExternalID), Run: old.Run}
		}
		old.LeadID, old.Updated = e.LeadID, now
		old.ExternalID, old.Status = cmp.Or(old.ExternalID, e.ExternalID), cmp.Or(old.Status, e.Status)
		if old.State = checkpoint.Created; old.WantLink != "" && old.WantLink != old.ExternalID {
			old.State = checkpoint.Partial
		}
		m.entries[e.Key] = old
		return false
	}
	return old.LeadID != e.LeadID
}

func (m *model) all() (all []checkpoint.Entry) {
	keys := maps.Clone(m.entries)
	maps.Copy(keys, m.intents)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		all = append(all, m.visible(k))
	}
	return all
}

const keyCount = 15

// keyNamed is one of the keys of a test. Some look alike.
func keyNamed(n int) string {
	switch n {
	case 5, 11:
		return "k" + strings.Repeat(" ", n-4) + "1"
	case 9, 10:
		return strings.Repeat("0", n-8) + "7"
	case 8:
		return "7"
	}
	return fmt.Sprintf("k%d", n)
}

// machine runs one random sequence against the file and the model.
type machine struct {
	dir  string
	file int
	d    *Store
	m    *model
	now  time.Time
}

func (x *machine) path() string { return filepath.Join(x.dir, fmt.Sprint(x.file)) }

func (x *machine) open(t *rapid.T) {
	gather := rapid.SampledFrom([]gathering{{}, {least: 1, most: 1}, {least: 3, most: 3}, {least: 5, most: 50}}).Draw(t, "gather")
	d, err := Open(x.path(), target(), Options{Now: func() time.Time { return x.now }, gather: gather})
	if err != nil {
		t.Fatal(err)
	}
	d.bolt.NoSync = true // the disk's speed is not under test
	x.d = d
}

func (x *machine) actions() map[string]func(*rapid.T) {
	key := rapid.Custom(func(t *rapid.T) string { return keyNamed(rapid.IntRange(0, 12).Draw(t, "key")) })
	// Some lead IDs equal keys: those are not in the index.
	lead := rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(0, 14).Draw(t, "lead")
		return []string{fmt.Sprintf("k%d", n), fmt.Sprintf("0b1c2d3e-0000-4000-8000-%012d", n), fmt.Sprintf("lead.%d", n), ""}[n%4]
	})
	return map[string]func(*rapid.T){
		"claim": func(t *rapid.T) {
			in := intentOf(key.Draw(t, "key"), rapid.IntRange(0, 9).Draw(t, "line"))
			in.WantLink = rapid.SampledFrom([]string{"", in.Key, "crm-1"}).Draw(t, "link")
			if err := claim(x.d, in); !errors.Is(err, x.m.claim(in)) {
				t.Fatalf("claim: %v", err)
			}
		},
		"withdraw": func(t *rapid.T) {
			k := key.Draw(t, "key")
			x.m.withdraw(k)
			if err := withdraw(x.d, k); err != nil {
				t.Fatal(err)
			}
		},
		"settle": func(t *rapid.T) {
			e := createdEntry(key.Draw(t, "key"), lead.Draw(t, "lead"), rapid.IntRange(0, 9).Draw(t, "line"))
			e.State = rapid.SampledFrom([]checkpoint.State{checkpoint.Created, checkpoint.Partial, checkpoint.Rejected, checkpoint.InDoubt}).Draw(t, "state")
			if e.State == checkpoint.Rejected {
				e.LeadID, e.Code, e.Reason = "", 422, "refused"
			}
			e.ExternalID = rapid.SampledFrom([]string{"", e.Key, "crm-1", "crm-2"}).Draw(t, "link")
			stored, err := settle(x.d, e)
			if x.m.blocked[e.Key] {
				if !errors.Is(err, checkpoint.ErrBlocked) {
					t.Fatalf("settled a forgotten key: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			same(t, x.m.settle(e), stored)
		},
		"forget": func(t *rapid.T) {
			k, unblock := key.Draw(t, "key"), rapid.Bool().Draw(t, "unblock")
			r, err := x.d.Forget(context.Background(), []string{k, k}, unblock)
			if err != nil || r.Leads+r.InDoubt+r.Rejected+r.Unknown+r.Already != 1 {
				t.Fatalf("forget: %+v, %v", r, err)
			}
			x.m.forget(k, unblock)
		},
		"adopt": func(t *rapid.T) {
			e := checkpoint.Entry{Key: key.Draw(t, "key"), LeadID: lead.Draw(t, "lead"), Status: "open", Updated: x.now, State: checkpoint.Created}
			if e.State = rapid.SampledFrom([]checkpoint.State{checkpoint.Created, checkpoint.Created, checkpoint.InDoubt}).Draw(t, "state"); e.State == checkpoint.InDoubt {
				e.LeadID, e.WantLink = "", e.Key
			} else if e.LeadID == "" {
				e.LeadID = "given.1"
			} else {
				e.ExternalID = rapid.SampledFrom([]string{e.Key, "crm-1"}).Draw(t, "link")
			}
			before := x.m.visible(e.Key)
			_, err := x.d.Adopt(context.Background(), []checkpoint.Entry{e})
			var why *checkpoint.ListError
			if refused := x.m.adopt(e, x.now); errors.As(err, &why) != refused || (err != nil) != refused {
				t.Fatalf("adopt %+v over %+v: %v", e, before, err)
			}
		},
		"resolve": func(t *rapid.T) {
			one := checkpoint.Decision{Key: key.Draw(t, "key"), LeadID: lead.Draw(t, "lead")}
			one.Exists = one.LeadID == "" && rapid.Bool().Draw(t, "exists")
			err, refused := resolve(x.d, one), x.m.resolve(one, x.now)
			var why *checkpoint.ListError
			if errors.As(err, &why) != refused || (err != nil) != refused {
				t.Fatalf("resolve %+v: %v", one, err)
			}
		},
		"reopen": func(t *rapid.T) {
			if err := x.d.Close(); err != nil {
				t.Fatal(err)
			}
			x.open(t)
		},
		"crash": func(t *rapid.T) {
			old := x.path()
			x.file++
			for _, end := range []string{"", ".seq"} {
				b, err := os.ReadFile(old + end)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(x.path()+end, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			x.d.Close()
			x.open(t)
		},
		"": func(t *rapid.T) {
			x.now = x.now.Add(time.Second)
			x.compare(t)
		},
	}
}

// compare checks everything that can be asked.
func (x *machine) compare(t *rapid.T) {
	var all []checkpoint.Entry
	if err := x.d.Each(context.Background(), checkpoint.Filter{State: checkpoint.Unknown}, func(e checkpoint.Entry) error { all = append(all, e); return nil }); err != nil {
		t.Fatal(err)
	}
	want := x.m.all()
	if len(all) != len(want) {
		t.Fatalf("%d keys, want %d", len(all), len(want))
	}
	counts := map[checkpoint.State]int{checkpoint.Created: 0, checkpoint.Partial: 0, checkpoint.Rejected: 0, checkpoint.InDoubt: 0, checkpoint.NotMade: 0, checkpoint.Forgotten: len(x.m.blocked)}
	keys := []string{"not there"}
	for i := range want {
		same(t, want[i], all[i])
		counts[want[i].State]++
		keys = append(keys, want[i].Key)
	}
	out := make([]checkpoint.Entry, len(keys))
	if err := lookupAll(x.d, keys, out); err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		same(t, x.m.visible(k), out[i])
	}
	if got := x.d.Info().Keys; !maps.Equal(got, counts) {
		t.Fatalf("counts %v, want %v", got, counts)
	}
	statuses := map[string]int{}
	for _, e := range x.m.entries {
		if e.State.HasLead() {
			statuses[e.Status]++
		}
	}
	if got := x.d.tally.Load().byStatus(); !maps.Equal(got, statuses) {
		t.Fatalf("leads by status %v, want %v", got, statuses)
	}
	if x.d.Info().Leads != counts[checkpoint.Created]+counts[checkpoint.Partial] || x.d.Info().InDoubt != counts[checkpoint.InDoubt] {
		t.Fatal("leads or doubts miscounted")
	}
}

func same(t *rapid.T, want, got checkpoint.Entry) {
	got.Seq, want.Seq = 0, 0
	if len(got.Content) == 0 {
		got.Content = nil
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("entry (-want +got):\n%s", diff)
	}
}

// newMachine is a machine with an empty file, closed and removed when the sequence ends.
func newMachine(t *rapid.T) *machine {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	x := &machine{dir: dir, m: newModel(), now: time.UnixMilli(1_770_000_000_000).UTC()}
	x.open(t)
	t.Cleanup(func() { x.d.Close() })
	return x
}

// Whatever is done, in whatever order, with the process killed anywhere between
// two commits: the file knows what a map would know. faults 1, 3, 10
func TestLedgerKnowsWhatAMapWouldKnow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newMachine(t)
		t.Repeat(x.actions())
		if err := x.d.Close(); err != nil {
			t.Fatal(err)
		}
		d, err := Open(x.path(), target(), Options{ReadOnly: true, Check: true})
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
	})
}
