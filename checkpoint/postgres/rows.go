package postgres

import (
	"cmp"
	"fmt"
	"strings"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

type kept = checkpoint.Kept

// row is what is stored under a key. What its records point to is never changed.
type row struct {
	key    string
	seq    uint64 // of the commit that wrote it; 0: there is none
	worker int64  // that wrote the row; of an intent: that may still send it
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

// number sets the number of the commit that wrote the row. No other goroutine has the row yet.
func (r *row) number(seq uint64) {
	r.seq = seq
	for _, rec := range []*kept{r.Entry, r.Intent} {
		if rec != nil && rec.Seq == 0 {
			rec.Seq = seq
		}
	}
}

// column is a column of lead_rows that writes fill. of returns its value; shown is what look-ups show of the row.
type column struct {
	name, kind string
	of         func(r *row, shown *kept) any
}

func textColumn(name string, of func(shown *kept) string) column {
	return column{name, "text", func(_ *row, shown *kept) any { return checkpoint.Clean(of(shown)) }}
}

// columns are all columns that writes fill. Look-ups read only those of [stored]: record has all that is known. The
// others are for conditions in statements, and for people who query the views.
var columns = []column{
	{"key", "bytea", func(r *row, _ *kept) any { return []byte(r.key) }},
	{"worker", "bigint", func(r *row, _ *kept) any { return r.worker }},
	{"state", "smallint", func(_ *row, shown *kept) any { return int16(shown.State) }},
	{"record", "bytea", func(r *row, _ *kept) any { return checkpoint.EncodeKey(r.KeptKey) }},
	{"updated", "bigint", func(_ *row, shown *kept) any { return shown.Updated.UnixMilli() }},
	{"line", "bigint", func(_ *row, shown *kept) any { return shown.Line }},
	{"code", "integer", func(_ *row, shown *kept) any { return shown.Code }},
	{"fold", "bytea", func(r *row, _ *kept) any {
		if fold := rowkey.Fold(r.key); fold != r.key {
			return []byte(fold)
		}
		return []byte{} // the key is its own fold
	}},
	{"link", "text", func(r *row, _ *kept) any { return checkpoint.Clean(r.Links()[0]) }},
	{"link2", "text", func(r *row, _ *kept) any { return checkpoint.Clean(r.Links()[1]) }},
	{"link3", "text", func(r *row, _ *kept) any { return checkpoint.Clean(r.Links()[2]) }},
	{"hidden_lead", "text", func(r *row, _ *kept) any {
		if r.Intent == nil {
			return ""
		}
		return checkpoint.Clean(r.lead())
	}},
	textColumn("lead_id", func(shown *kept) string { return shown.LeadID }),
	textColumn("organization", func(shown *kept) string { return shown.Organization }),
	textColumn("location", func(shown *kept) string { return shown.Location }),
	textColumn("status", func(shown *kept) string { return shown.Status }),
	textColumn("external_id", func(shown *kept) string { return cmp.Or(shown.ExternalID, shown.WantLink) }),
	textColumn("locator", func(shown *kept) string { return shown.Locator }),
	textColumn("file", func(shown *kept) string { return shown.File }),
	textColumn("reason", func(shown *kept) string { return shown.Reason }),
	textColumn("run", func(shown *kept) string { return shown.Run }),
}

func columnNames(table string) string {
	return strings.Join(checkpoint.Map(columns, func(c column) string { return table + c.name }), ", ")
}

// stored is a row as look-ups read it.
type stored struct {
	key, record []byte
	worker      int64
	state       int16
	seq         uint64
}

// places are in the order of the columns in find.sql and scan.sql.
func (s *stored) places() []any { return []any{&s.key, &s.record, &s.worker, &s.state, &s.seq} }

func (s *stored) row() (r *row, err error) {
	r = &row{key: string(s.key), seq: s.seq, worker: s.worker}
	r.KeptKey, err = checkpoint.DecodeKey(r.key, s.record)
	if err == nil && int16(r.state()) != s.state {
		err = fmt.Errorf("%w: a row is in another state than its record says", checkpoint.ErrDamaged)
	}
	r.number(r.seq)
	return r, err
}

const mostSeen = 8 << 10 // rows that are remembered

// cache remembers a row as it was seen last, so that a commit need not look it up first. The server compares it before
// the commit counts, so any row may be dropped at any time. The caller holds the lock.
func (s *Store) cache(r *row) {
	if len(s.seen) >= mostSeen || s.seen == nil {
		s.seen = make(map[string]*row, mostSeen)
	}
	s.seen[r.key] = r
}
