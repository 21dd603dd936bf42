package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// row is what stands under a key. What its records point to is never changed.
type row struct {
	key    string
	seq    uint64 // of the commit that wrote it; 0: there is none
	worker int64  // that wrote it: of an intent, the one that may still send it
	checkpoint.KeptKey
	forgotten bool
}

// visible is what look-ups show.
func (r *row) visible() *checkpoint.Kept {
	if shown := r.Shown(); shown != nil {
		return shown
	}
	return &checkpoint.Kept{Entry: checkpoint.Entry{Key: r.key, State: r.state()}}
}

// state is that of what look-ups show.
func (r *row) state() checkpoint.State {
	shown := r.Shown()
	switch {
	case shown != nil:
		return shown.State
	case r.forgotten:
		return checkpoint.Forgotten
	}
	return checkpoint.Unknown
}

// lead is the ID under which the lead of the key stands, or nothing.
func (r *row) lead() string {
	if r.Entry == nil {
		return ""
	}
	return r.Entry.LeadID
}

// hidden are the ExternalIDs by which the key is found, though what look-ups show has others.
func (r *row) hidden() (all []string) {
	if r.Intent == nil || r.Entry == nil || !r.Entry.State.HasLead() {
		return nil
	}
	for _, link := range []string{r.Entry.ExternalID, r.Entry.WantLink} {
		if link != "" && !slices.Contains(all, link) {
			all = append(all, link)
		}
	}
	return all
}

// linked says whether the lead has this ExternalID, or is to have it.
func (r *row) linked(external string) bool {
	e := r.Entry
	return e != nil && e.State.HasLead() && (e.ExternalID == external || e.WantLink == external) || r.Intent != nil && r.Intent.WantLink == external
}

// fold is the fold of the key where it is another one.
func fold(key string) string {
	if folded := rowkey.Fold(key); folded != key {
		return folded
	}
	return ""
}

// columns are those of a row, in the order of its values, and of what is read into [stood].
const columns = "key, worker, updated, line, state, code, lead_id, organization, location, status, " +
	"external_id, want_link, locator, file, reason, run, digest, content, extra, fold"

// columnsOf names them as those of a table.
func columnsOf(table string) string {
	return table + "." + strings.Join(strings.Split(columns, ", "), ", "+table+".")
}

// values are what stands in the columns.
func (r *row) values() []any {
	v := r.visible()
	digest := v.Digest[:]
	if v.Digest == (checkpoint.Digest{}) {
		digest = []byte{}
	}
	all := []any{[]byte(r.key), r.worker, v.Updated.UnixMilli(), int64(v.Line), int16(r.state()), int32(v.Code)}
	for _, text := range texts(v) {
		all = append(all, checkpoint.Clean(*text))
	}
	return append(all, digest, contentBytes(v.Content), r.extra(), []byte(fold(r.key)))
}

// stood is a row as its columns have it, and its version.
type stood struct {
	key                     []byte
	worker, updated, line   int64
	state                   int16
	code                    int32
	texts                   [10]string // from lead_id to run
	digest, content, folded []byte
	extra                   string
	seq                     uint64
}

// fields are what [columns], and the version behind them, are read into.
func (s *stood) fields() []any {
	all := []any{&s.key, &s.worker, &s.updated, &s.line, &s.state, &s.code}
	for i := range s.texts {
		all = append(all, &s.texts[i])
	}
	return append(all, &s.digest, &s.content, &s.extra, &s.folded, &s.seq)
}

// row is what s tells.
func (s *stood) row() (*row, error) {
	r := &row{key: string(s.key), seq: s.seq, worker: s.worker}
	if s.state == 0 {
		return r, nil
	}
	var a aside
	if err := checkpoint.Decode([]byte(s.extra), &a); err != nil || s.state < 0 || checkpoint.State(s.state) > checkpoint.NotMade {
		return nil, cmp.Or(err, fmt.Errorf("%w: a row is in no state that this version knows", checkpoint.ErrDamaged))
	}
	shown := keyed(&a.Kept, r.key)
	shown.Seq, shown.Updated, shown.Line = cmp.Or(shown.Seq, r.seq), time.UnixMilli(s.updated).UTC(), int(s.line)
	shown.State, shown.Code = checkpoint.State(s.state), int(s.code)
	for i, text := range texts(shown) {
		*text = checkpoint.Restore(s.texts[i])
	}
	copy(shown.Digest[:], s.digest)
	for b := s.content; len(b) >= 8; b = b[8:] {
		var d checkpoint.ContentDigest
		copy(d.Name[:], b)
		copy(d.Value[:], b[4:])
		shown.Content = append(shown.Content, d)
	}
	if shown.State != checkpoint.InDoubt {
		r.Entry = shown
		return r, nil
	}
	r.Intent = shown
	if r.Entry = keyed(a.Below, r.key); r.Entry != nil {
		r.Entry.Seq = cmp.Or(r.Entry.Seq, r.seq)
	}
	return r, nil
}

// mostSeen is how many rows each of the two generations holds.
const mostSeen = 4 << 10

// sight remembers rows as they were seen last. What was seen long ago is forgotten; whatever it
// says is compared by the server before it counts.
type sight struct {
	mu       sync.Mutex
	new, old map[string]*row
}

func newSight() *sight { return &sight{new: map[string]*row{}, old: map[string]*row{}} }

// put remembers rows, unless later versions of them are there.
func (s *sight) put(rows ...*row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rows {
		if known := s.find(r.key); known != nil && known.seq > r.seq {
			continue
		}
		if len(s.new) >= mostSeen {
			s.old, s.new = s.new, s.old
			clear(s.new)
		}
		s.new[r.key] = r
	}
}

func (s *sight) find(key string) *row {
	if r := s.new[key]; r != nil {
		return r
	}
	return s.old[key]
}

// get is the row of a key, or nil.
func (s *sight) get(key string) *row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(key)
}

// clear forgets all.
func (s *sight) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.new)
	clear(s.old)
}
