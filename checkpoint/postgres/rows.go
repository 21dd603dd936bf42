package postgres

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

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

// extra is what has no column: what look-ups show, and what stands below it.
func (r *row) extra() []byte {
	c := coder{keepSeq: true}
	c.aside(r.visible())
	c.keepSeq = false
	below := r.Intent != nil && r.Entry != nil
	if c.bool(&below); below {
		c.whole(r.Entry)
	}
	return c.b
}

// fold is the fold of the key where it is another one.
func fold(key string) string {
	if folded := rowkey.Fold(key); folded != key {
		return folded
	}
	return ""
}

// unclean begins a text that the server would not take as it is, in hexadecimal digits.
const unclean = "\x01"

// between parts the texts of a list that is sent as one.
const between = "\x1e"

// clean is a text as the server takes it: without NUL, and UTF-8. restore is its reverse.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && !strings.Contains(s, between) && !strings.HasPrefix(s, unclean) {
		return s
	}
	return unclean + hex.EncodeToString([]byte(s))
}

func restore(s string) string {
	if !strings.HasPrefix(s, unclean) {
		return s
	}
	raw, _ := hex.DecodeString(s[len(unclean):])
	return string(raw)
}

// columns are those of a row, in the order in which readRow takes them.
const columns = `l.key, l.seq, l.worker, l.updated, l.line, l.state, l.code, l.lead_id, l.organization, l.location, l.status, l.external_id,
	l.want_link, l.locator, l.file, l.reason, l.run, l.digest, l.content, l.extra`

const columnCount = 20

// noColumns stand in their place where there is only a key.
const noColumns = `0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::smallint, 0, '', '', '', '', '', '', '', '', '', '', ''::bytea, ''::bytea, ''::bytea`

// readRow takes a row from its columns in the binary format.
func readRow(v [][]byte) (*row, error) {
	if len(v) < columnCount || len(v[5]) != 2 || len(v[6]) != 4 {
		return nil, fmt.Errorf("%w: a row has not the columns that this version writes", checkpoint.ErrDamaged)
	}
	shown := &checkpoint.Kept{Entry: checkpoint.Entry{
		Key: string(v[0]), Seq: uint64(int8Of(v[1])), Updated: time.UnixMilli(int8Of(v[3])).UTC(), Line: int(int8Of(v[4])),
		State: checkpoint.State(binary.BigEndian.Uint16(v[5])), Code: int(int32(binary.BigEndian.Uint32(v[6]))),
	}}
	for i, text := range []*string{
		&shown.LeadID, &shown.Organization, &shown.Location, &shown.Status, &shown.ExternalID,
		&shown.WantLink, &shown.Locator, &shown.File, &shown.Reason, &shown.Run,
	} {
		*text = restore(string(v[7+i]))
	}
	r := &row{key: shown.Key, seq: shown.Seq, worker: int8Of(v[2])}
	if shown.State == checkpoint.Unknown {
		return r, nil
	}
	copy(shown.Digest[:], v[17])
	for b := v[18]; len(b) >= 8; b = b[8:] {
		shown.Content = append(shown.Content, checkpoint.ContentDigest{Name: [4]byte(b[:4]), Value: [4]byte(b[4:8])})
	}
	c := coder{b: v[19], reading: true}
	c.aside(shown)
	below := false
	if c.bool(&below); below {
		r.Entry = &checkpoint.Kept{Entry: checkpoint.Entry{Key: r.key, Seq: r.seq}}
		c.whole(r.Entry)
	}
	if shown.State == checkpoint.InDoubt {
		r.Intent = shown
	} else {
		r.Entry = shown
	}
	if c.bad || len(c.b) > 0 || shown.State > checkpoint.NotMade {
		return nil, fmt.Errorf("%w: a row is not as this version writes it", checkpoint.ErrDamaged)
	}
	return r, nil
}

func int8Of(b []byte) int64 {
	if len(b) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// contentBytes are the digests of a content as they stand in their column.
func contentBytes(content []checkpoint.ContentDigest) []byte {
	b := make([]byte, 0, 8*len(content))
	for i := range content {
		b = append(append(b, content[i].Name[:]...), content[i].Value[:]...)
	}
	return b
}

// mostSeen is how many rows each of the two generations holds.
const mostSeen = 4 << 10

// sight remembers rows as they were seen last. What was seen long ago is forgotten; whatever it
// says is compared by the server before it counts.
type sight struct {
	mu       sync.Mutex
	new, old map[string]*row
}

func newSight() *sight { return &sight{new: map[string]*row{}} }

// put remembers a row, unless a later version of it is there.
func (s *sight) put(r *row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.find(r.key); known != nil && known.seq > r.seq {
		return
	}
	if len(s.new) >= mostSeen {
		s.old, s.new = s.new, map[string]*row{}
	}
	s.new[r.key] = r
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
	s.new, s.old = map[string]*row{}, nil
}
