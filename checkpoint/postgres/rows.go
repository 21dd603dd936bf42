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

// sent is a row as the server sent it: its columns one after another, each behind its length. Most rows that are looked up
// are never changed; this is all that is kept of them.
type sent string

func appendSent(b []byte, columns [][]byte) []byte {
	for _, column := range columns {
		b = append(binary.AppendUvarint(b, uint64(len(column))), column...)
	}
	return b
}

// columns are parts of s, of which the first is the key and the second its version.
func (s sent) columns() (v [columnCount]string) {
	at := 0
	for i := range v {
		n, shift := 0, 0
		for ; s[at] >= 0x80; at++ {
			n |= int(s[at]&0x7F) << shift
			shift += 7
		}
		n |= int(s[at]) << shift
		v[i] = string(s[at+1 : at+1+n])
		at += 1 + n
	}
	return v
}

// decides says that look-ups by this key need not know more.
func (s sent) decides() bool {
	state := s.columns()[5]
	return len(state) == 2 && (checkpoint.State(state[1]).HasLead() || checkpoint.State(state[1]) == checkpoint.InDoubt)
}

// row is what s tells.
func (s sent) row() (*row, error) {
	r := new(row)
	return r, s.read(r, new(checkpoint.Kept))
}

// read makes r what s tells; shown is the room for what look-ups show of it.
func (s sent) read(r *row, shown *checkpoint.Kept) error {
	v := s.columns()
	if len(v[1]) != 8 || len(v[2]) != 8 || len(v[3]) != 8 || len(v[4]) != 8 || len(v[5]) != 2 || len(v[6]) != 4 {
		return fmt.Errorf("%w: a row has not the columns that this version writes", checkpoint.ErrDamaged)
	}
	shown.Key, shown.Seq, shown.Updated, shown.Line = v[0], uint64(int8Of(v[1])), time.UnixMilli(int8Of(v[3])).UTC(), int(int8Of(v[4]))
	shown.State, shown.Code = checkpoint.State(v[5][1]), int(int32(v[6][0])<<24|int32(v[6][1])<<16|int32(v[6][2])<<8|int32(v[6][3]))
	for i, text := range []*string{
		&shown.LeadID, &shown.Organization, &shown.Location, &shown.Status, &shown.ExternalID,
		&shown.WantLink, &shown.Locator, &shown.File, &shown.Reason, &shown.Run,
	} {
		*text = restore(v[7+i])
	}
	*r = row{key: shown.Key, seq: shown.Seq, worker: int8Of(v[2])}
	if shown.State == checkpoint.Unknown {
		return nil
	}
	copy(shown.Digest[:], v[17])
	for b := v[18]; len(b) >= 8; b = b[8:] {
		var d checkpoint.ContentDigest
		copy(d.Name[:], b)
		copy(d.Value[:], b[4:])
		shown.Content = append(shown.Content, d)
	}
	c := coder{b: []byte(v[19]), reading: true}
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
	if c.bad || len(c.b) > 0 || v[5][0] != 0 || shown.State > checkpoint.NotMade {
		return fmt.Errorf("%w: a row is not as this version writes it", checkpoint.ErrDamaged)
	}
	return nil
}

// int8Of is an integer of eight bytes; of another length, none.
func int8Of[T string | []byte](b T) (n int64) {
	if len(b) != 8 {
		return 0
	}
	for i := range 8 {
		n = n<<8 | int64(b[i])
	}
	return n
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
	new, old map[string]seen
}

// seen is a version of a row: as it was sent, or else as it is.
type seen struct {
	seq  uint64
	sent sent
	row  *row
}

func newSight() *sight { return &sight{new: map[string]seen{}, old: map[string]seen{}} }

// put remembers a row, unless a later version of it is there.
func (s *sight) put(r *row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(r.key, seen{seq: r.seq, row: r})
}

// putAll remembers rows that were looked up.
func (s *sight) putAll(rows []stood) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range rows {
		s.note(rows[i].key, rows[i].seen)
	}
}

func (s *sight) note(key string, v seen) {
	if s.find(key).seq > v.seq {
		return
	}
	if len(s.new) >= mostSeen {
		s.old, s.new = s.new, s.old
		clear(s.new)
	}
	s.new[key] = v
}

func (s *sight) find(key string) seen {
	if v, ok := s.new[key]; ok {
		return v
	}
	return s.old[key]
}

// get is the row of a key, or nil.
func (s *sight) get(key string) *row {
	s.mu.Lock()
	v := s.find(key)
	s.mu.Unlock()
	if v.row != nil || v.sent == "" {
		return v.row
	}
	r, err := v.sent.row()
	if err != nil { // it will be looked up once more
		return nil
	}
	return r
}

// clear forgets all.
func (s *sight) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.new)
	clear(s.old)
}
