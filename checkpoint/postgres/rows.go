package postgres

import (
	"cmp"
	"fmt"
	"strings"
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

func (r *row) visible() *kept {
	if shown := r.Shown(); shown != nil {
		return shown
	}
	nothing := &kept{Entry: checkpoint.Entry{Key: r.key}}
	if r.forgotten {
		nothing.State = checkpoint.Forgotten
	}
	return nothing
}

func (r *row) state() checkpoint.State { return r.visible().State }

func (r *row) lead() string {
	if r.Entry == nil {
		return ""
	}
	return r.Entry.LeadID
}

// number gives a row that was just written the number of its commit; nobody else knows it yet.
func (r *row) number(seq uint64) {
	r.seq = seq
	for _, rec := range []*kept{r.Entry, r.Intent} {
		if rec != nil && rec.Seq == 0 {
			rec.Seq = seq
		}
	}
}

// column is one of lead_rows. A field of an entry that is to have one takes a line in [columns] and in schema.sql and,
// unless it is a text or a number, in [row.stored] and [stored.row]. Others are in extra.
type column struct {
	name, kind string
	in         func(s *stored) any
}

// columns are all that writes fill and look-ups read, in this order.
var columns = []column{
	{"key", "bytea", func(s *stored) any { return &s.key }},
	{"worker", "bigint", func(s *stored) any { return &s.worker }},
	{"updated", "bigint", func(s *stored) any { return &s.updated }},
	{"line", "bigint", func(s *stored) any { return &s.shown.Line }},
	{"state", "smallint", func(s *stored) any { return &s.state }},
	{"code", "integer", func(s *stored) any { return &s.shown.Code }},
	{"digest", "bytea", func(s *stored) any { return &s.digest }},
	{"content", "bytea", func(s *stored) any { return &s.content }},
	{"extra", "text", func(s *stored) any { return &s.extra }},
	{"fold", "bytea", func(s *stored) any { return &s.fold }},
	{"hidden_lead", "text", func(s *stored) any { return &s.hidden.LeadID }},
	{"hidden_id", "text", func(s *stored) any { return &s.hidden.ExternalID }},
	{"hidden_link", "text", func(s *stored) any { return &s.hidden.WantLink }},
	{"lead_id", "text", func(s *stored) any { return &s.shown.LeadID }},
	{"organization", "text", func(s *stored) any { return &s.shown.Organization }},
	{"location", "text", func(s *stored) any { return &s.shown.Location }},
	{"status", "text", func(s *stored) any { return &s.shown.Status }},
	{"external_id", "text", func(s *stored) any { return &s.shown.ExternalID }},
	{"want_link", "text", func(s *stored) any { return &s.shown.WantLink }},
	{"locator", "text", func(s *stored) any { return &s.shown.Locator }},
	{"file", "text", func(s *stored) any { return &s.shown.File }},
	{"reason", "text", func(s *stored) any { return &s.shown.Reason }},
	{"run", "text", func(s *stored) any { return &s.shown.Run }},
}

func columnNames(table string) string {
	var names []string
	for _, c := range columns {
		names = append(names, table+c.name)
	}
	return strings.Join(names, ", ")
}

// stored is a row as its columns have it, and its version.
type stored struct {
	key, digest, content, fold []byte
	worker, updated            int64
	state                      int16
	shown                      kept             // its texts and numbers
	hidden                     checkpoint.Entry // of the lead below a doubt; the key is found by its ExternalIDs, too
	extra                      string
	seq                        uint64
}

func (s *stored) places() (all []any) {
	for _, c := range columns {
		all = append(all, c.in(s))
	}
	return all
}

func (s *stored) eachText(change func(string) string) {
	for _, c := range columns {
		if text, is := c.in(s).(*string); is {
			*text = change(*text)
		}
	}
}

// aside is what has no column: of the record that is shown, and the one below a doubt.
type aside struct {
	kept
	Below *kept
}

func (r *row) stored() *stored {
	shown := r.visible()
	s := &stored{
		key: []byte(r.key), worker: r.worker, updated: shown.Updated.UnixMilli(), state: int16(shown.State),
		digest: shown.Digest[:], content: contentBytes(shown.Content), fold: []byte{}, shown: *shown,
	}
	s.eachText(func(string) string { return "" })
	a := aside{kept: s.shown}
	a.Key, a.State, a.Code, a.Line = "", 0, 0, 0
	a.Updated, a.Digest, a.Content = time.Time{}, checkpoint.Digest{}, nil
	if fold := rowkey.Fold(r.key); fold != r.key {
		s.fold = []byte(fold)
	}
	if r.Intent != nil && r.Entry != nil {
		a.Below = r.Entry
		if r.Entry.State.HasLead() {
			s.hidden = r.Entry.Entry
		}
	}
	s.shown, s.extra = *shown, string(checkpoint.Encode(&a))
	s.eachText(checkpoint.Clean)
	return s
}

func (s *stored) row() (*row, error) {
	r := &row{key: string(s.key), seq: s.seq, worker: s.worker}
	if s.state == 0 {
		return r, nil
	}
	s.eachText(checkpoint.Restore)
	a := aside{kept: s.shown}
	if err := checkpoint.Decode([]byte(s.extra), &a); err != nil || s.state < 0 ||
		checkpoint.State(s.state) > checkpoint.NotMade {
		return nil, cmp.Or(err, fmt.Errorf("%w: a row is in no state that this version knows", checkpoint.ErrDamaged))
	}
	shown := &a.kept
	shown.Key, shown.State = r.key, checkpoint.State(s.state)
	shown.Updated, shown.Content = time.UnixMilli(s.updated).UTC(), contentOf(s.content)
	copy(shown.Digest[:], s.digest)
	if shown.State == checkpoint.InDoubt {
		r.Intent, r.Entry = shown, a.Below
	} else {
		r.Entry = shown
	}
	r.number(r.seq)
	return r, nil
}

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

// mostSeen is how many rows are remembered.
const mostSeen = 8 << 10

// see remembers a row as it was seen last, so that a commit need not look it up first. Whatever it says is compared by
// the server before it counts, so that anything may be forgotten at any time. Its caller holds the lock.
func (s *Store) see(r *row) {
	if len(s.seen) >= mostSeen || s.seen == nil {
		s.seen = make(map[string]*row, mostSeen)
	}
	s.seen[r.key] = r
}
