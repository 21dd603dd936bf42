package postgres

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

type kept = checkpoint.Kept

// row is what is stored under a key. What its records point to is never changed.
type row struct {
	key    string
	seq    uint64 // of the commit that wrote it; 0: there is none
	worker int64  // that wrote it: of an intent, the one that may still send it
	checkpoint.KeptKey
	forgotten bool
}

// visible is what look-ups show.
func (r *row) visible() *kept {
	if shown := r.Shown(); shown != nil {
		return shown
	}
	return &kept{Entry: checkpoint.Entry{Key: r.key, State: r.state()}}
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

// hidden is the lead that is below a doubt; the key is found by its ExternalIDs, too.
func (r *row) hidden() *kept {
	if r.Intent == nil || r.Entry == nil || !r.Entry.State.HasLead() {
		return new(kept)
	}
	return r.Entry
}

// linked says whether the lead of the key has an ExternalID, or is to have it.
func (r *row) linked(external string) bool {
	e := r.Entry
	return e != nil && e.State.HasLead() && (e.ExternalID == external || e.WantLink == external) ||
		r.Intent != nil && r.Intent.WantLink == external
}

// number gives a row that was just written the number of its commit; nobody else knows it yet.
func (r *row) number(seq uint64) *row {
	r.seq = seq
	for _, rec := range []*kept{r.Entry, r.Intent} {
		if rec != nil && rec.Seq == 0 {
			rec.Seq = seq
		}
	}
	return r
}

// column is one of lead_rows. A field of an entry that is to have one takes a line in [columns] and one in schema.sql;
// others are in the column extra by themselves.
type column struct {
	name, kind string
	of         func(k *kept) *string         // the text that it holds, of what look-ups show; nil: it is none
	value      func(r *row, shown *kept) any // else: what is written,
	into       func(s *stood) any            // and what it is read into
}

// skipped is a column that is only looked up.
func skipped(*stood) any { return nil }

func text(name string, of func(k *kept) *string) column {
	return column{name: name, kind: "text", of: of}
}

// texts are the columns of texts.
var texts = []column{
	text("lead_id", func(k *kept) *string { return &k.LeadID }),
	text("organization", func(k *kept) *string { return &k.Organization }),
	text("location", func(k *kept) *string { return &k.Location }),
	text("status", func(k *kept) *string { return &k.Status }),
	text("external_id", func(k *kept) *string { return &k.ExternalID }),
	text("want_link", func(k *kept) *string { return &k.WantLink }),
	text("locator", func(k *kept) *string { return &k.Locator }),
	text("file", func(k *kept) *string { return &k.File }),
	text("reason", func(k *kept) *string { return &k.Reason }),
	text("run", func(k *kept) *string { return &k.Run }),
}

// columns are all that writes fill and look-ups read, in this order.
var columns = append([]column{
	{"key", "bytea", nil, func(r *row, _ *kept) any { return []byte(r.key) }, func(s *stood) any { return &s.key }},
	{"worker", "bigint", nil, func(r *row, _ *kept) any { return r.worker }, func(s *stood) any { return &s.worker }},
	{
		"updated", "bigint", nil, func(_ *row, k *kept) any { return k.Updated.UnixMilli() },
		func(s *stood) any { return &s.updated },
	},
	{
		"line", "bigint", nil, func(_ *row, k *kept) any { return int64(k.Line) },
		func(s *stood) any { return &s.shown.Line },
	},
	{
		"state", "smallint", nil, func(r *row, _ *kept) any { return int16(r.state()) },
		func(s *stood) any { return &s.state },
	},
	{
		"code", "integer", nil, func(_ *row, k *kept) any { return int32(k.Code) },
		func(s *stood) any { return &s.shown.Code },
	},
	{"digest", "bytea", nil, func(_ *row, k *kept) any { return k.Digest[:] }, func(s *stood) any { return &s.digest }},
	{
		"content", "bytea", nil, func(_ *row, k *kept) any { return contentBytes(k.Content) },
		func(s *stood) any { return &s.content },
	},
	{"extra", "text", nil, func(r *row, _ *kept) any { return r.extra() }, func(s *stood) any { return &s.extra }},
	{"fold", "bytea", nil, func(r *row, _ *kept) any { return []byte(fold(r.key)) }, skipped},
	{"hidden_lead", "text", nil, func(r *row, _ *kept) any { return checkpoint.Clean(r.hidden().LeadID) }, skipped},
	{"hidden_id", "text", nil, func(r *row, _ *kept) any { return checkpoint.Clean(r.hidden().ExternalID) }, skipped},
	{"hidden_link", "text", nil, func(r *row, _ *kept) any { return checkpoint.Clean(r.hidden().WantLink) }, skipped},
}, texts...)

// columnNames are their names, those of a table where one is named.
func columnNames(table string) string {
	var names []string
	for _, c := range columns {
		names = append(names, table+c.name)
	}
	return strings.Join(names, ", ")
}

// values are what is in the columns.
func (r *row) values() (all []any) {
	shown := r.visible()
	for _, c := range columns {
		if c.of != nil {
			all = append(all, checkpoint.Clean(*c.of(shown)))
		} else {
			all = append(all, c.value(r, shown))
		}
	}
	return all
}

// fold is the fold of the key where it is another one.
func fold(key string) string {
	if folded := rowkey.Fold(key); folded != key {
		return folded
	}
	return ""
}

// contentBytes are the digests of a content as they are in their column.
func contentBytes(content []checkpoint.ContentDigest) []byte {
	b := make([]byte, 0, 8*len(content))
	for i := range content {
		b = append(append(b, content[i].Name[:]...), content[i].Value[:]...)
	}
	return b
}

func contentOf(b []byte) (content []checkpoint.ContentDigest) {
	for ; len(b) >= 8; b = b[8:] {
		content = append(content, checkpoint.ContentDigest{Name: [4]byte(b[:4]), Value: [4]byte(b[4:8])})
	}
	return content
}

// aside is a record except what has columns, and what is below a doubt.
type aside struct {
	kept
	Below *kept
}

// extra is what has no column: of what look-ups show, and what is below it.
func (r *row) extra() string {
	a := aside{kept: *keyed(r.visible(), "")}
	for _, c := range texts {
		*c.of(&a.kept) = ""
	}
	a.State, a.Code, a.Line, a.Updated, a.Digest, a.Content = 0, 0, 0, time.Time{}, checkpoint.Digest{}, nil
	if r.Intent != nil {
		a.Below = keyed(r.Entry, "")
	}
	return string(checkpoint.Encode(&a))
}

// keyed is a record, and what it came in place of, under a key; "": as it is kept, where the key is beside it.
func keyed(k *kept, key string) *kept {
	if k == nil {
		return nil
	}
	under := *k
	under.Key, under.Prior = key, keyed(k.Prior, key)
	return &under
}

// stood is a row as its columns have it, and its version.
type stood struct {
	key, digest, content []byte
	worker, updated      int64
	state                int16
	shown                kept // its texts and numbers
	extra                string
	seq                  uint64
}

// fields are what the columns, and the version behind them, are read into.
func (s *stood) fields() (all []any) {
	for _, c := range columns {
		if c.of != nil {
			all = append(all, c.of(&s.shown))
		} else {
			all = append(all, c.into(s))
		}
	}
	return append(all, &s.seq)
}

// row is what s tells.
func (s *stood) row() (*row, error) {
	r := &row{key: string(s.key), seq: s.seq, worker: s.worker}
	if s.state == 0 {
		return r, nil
	}
	var a aside
	if err := checkpoint.Decode([]byte(s.extra), &a); err != nil || s.state < 0 ||
		checkpoint.State(s.state) > checkpoint.NotMade {
		return nil, cmp.Or(err, fmt.Errorf("%w: a row is in no state that this version knows", checkpoint.ErrDamaged))
	}
	shown := keyed(&a.kept, r.key)
	for _, c := range texts {
		*c.of(shown) = checkpoint.Restore(*c.of(&s.shown))
	}
	shown.State, shown.Code, shown.Line = checkpoint.State(s.state), s.shown.Code, s.shown.Line
	shown.Seq, shown.Updated, shown.Content = cmp.Or(shown.Seq,
		r.seq), time.UnixMilli(s.updated).UTC(), contentOf(s.content)
	copy(shown.Digest[:], s.digest)
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

// mostSeen is how many rows are remembered.
const mostSeen = 8 << 10

// sight remembers rows as they were seen last, so that a commit need not look them up first. Whatever it says is
// compared by the server before it counts, so that it may forget anything at any time.
type sight struct {
	mu   sync.Mutex
	rows map[string]*row
}

// put remembers rows, unless later versions of them are there.
func (s *sight) put(rows ...*row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rows {
		if known := s.rows[r.key]; known != nil && known.seq > r.seq {
			continue
		}
		if len(s.rows) >= mostSeen || s.rows == nil {
			s.rows = make(map[string]*row, mostSeen)
		}
		s.rows[r.key] = r
	}
}

// get is the row of a key, or nil.
func (s *sight) get(key string) *row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[key]
}

// clear forgets all.
func (s *sight) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = nil
}
