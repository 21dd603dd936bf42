package postgres

import (
	"encoding/binary"
	"time"

	"leadferry/checkpoint"
)

// coder writes or reads the parts of a record that have no column of their own. One
// description serves both ways: each method appends the value, or fills it in.
type coder struct {
	b       []byte
	reading bool
	bad     bool // what is read is cut short
	keepSeq bool // the record that look-ups show is older than its row
}

func (c *coder) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return make([]byte, min(n, 64))
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *coder) uint(v *uint64) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, *v)
		return
	}
	n := 0
	if *v, n = binary.Uvarint(c.b); n <= 0 {
		*v, c.b, c.bad = 0, nil, true
		return
	}
	c.b = c.b[n:]
}

func (c *coder) int(v *int) {
	u := uint64(*v)<<1 ^ uint64(*v>>63)
	c.uint(&u)
	*v = int(u>>1) ^ -int(u&1)
}

func (c *coder) bool(v *bool) {
	n := uint64(0)
	if *v {
		n = 1
	}
	c.uint(&n)
	*v = n != 0
}

func (c *coder) fixed(v []byte) {
	if c.reading {
		copy(v, c.take(uint64(len(v))))
		return
	}
	c.b = append(c.b, v...)
}

func (c *coder) text(v *string) {
	n := uint64(len(*v))
	c.uint(&n)
	if c.reading {
		*v = string(c.take(min(n, uint64(len(c.b))+1)))
		return
	}
	c.b = append(c.b, *v...)
}

// time keeps milliseconds; the zero time is told apart.
func (c *coder) time(v *time.Time) {
	there, ms := !v.IsZero(), 0
	c.bool(&there)
	if !there {
		*v = time.Time{}
		return
	}
	ms = int(v.UnixMilli())
	c.int(&ms)
	*v = time.UnixMilli(int64(ms)).UTC()
}

// list describes a slice by its members.
func list[T any](c *coder, v *[]T, member func(*T)) {
	n := uint64(len(*v))
	if c.uint(&n); c.reading {
		*v = nil
	}
	for i := uint64(0); i < n && !c.bad; i++ {
		if c.reading {
			*v = append(*v, *new(T))
		}
		member(&(*v)[i])
	}
}

func (c *coder) event(ev *checkpoint.Event) {
	act, state := uint64(ev.Act), uint64(ev.State)
	c.uint(&act)
	c.uint(&state)
	ev.Act, ev.State = checkpoint.Act(act), checkpoint.State(state)
	c.text(&ev.Status)
	c.int(&ev.Code)
	c.text(&ev.Run)
	c.time(&ev.At)
}

func (c *coder) sight(s *checkpoint.Sight) {
	c.time(&s.At)
	c.text(&s.Status)
	c.text(&s.Organization)
	c.bool(&s.Kept)
	c.text(&s.Against)
}

func (c *coder) content(v *[]checkpoint.ContentDigest) {
	list(c, v, func(d *checkpoint.ContentDigest) {
		c.fixed(d.Name[:])
		c.fixed(d.Value[:])
	})
}

// The parts of a record that are seldom there.
const (
	hasID = 1 << iota
	hasUpdate
	hasSeen
	hasPast
	hasPrior
	hasSeq // an earlier commit's than the row's
)

// partsOf says which of them a record has.
func (c *coder) partsOf(r *checkpoint.Kept) (flags uint64) {
	set := func(flag uint64, on bool) {
		if on {
			flags |= flag
		}
	}
	set(hasID, r.RequestID != "")
	set(hasUpdate, r.Unsettled != "" || r.Sought != "" || r.Refused != checkpoint.Digest{} || r.Synced || !r.Confirmed.IsZero())
	set(hasSeen, r.Seen != checkpoint.Sight{})
	set(hasPast, len(r.Past) > 0)
	set(hasPrior, r.Prior != nil)
	set(hasSeq, c.keepSeq && r.Seq != 0)
	return flags
}

// aside describes what of a record has no column.
func (c *coder) aside(r *checkpoint.Kept) {
	act, flags := uint64(r.Act), c.partsOf(r)
	c.uint(&act)
	r.Act = checkpoint.Act(act)
	if c.uint(&flags); flags&hasID != 0 {
		c.text(&r.RequestID)
	}
	if flags&hasUpdate != 0 {
		c.text(&r.Unsettled)
		c.text(&r.Sought)
		c.fixed(r.Refused[:])
		c.bool(&r.Synced)
		c.time(&r.Confirmed)
	}
	if flags&hasSeen != 0 {
		c.sight(&r.Seen)
	}
	if flags&hasPast != 0 {
		list(c, &r.Past, c.event)
	}
	if flags&hasPrior != 0 {
		if c.reading {
			r.Prior = new(checkpoint.Kept)
		}
		c.whole(r.Prior)
		r.Prior.Key = r.Key
	}
	if flags&hasSeq != 0 {
		c.uint(&r.Seq)
	}
}

// whole describes a record but for its key.
func (c *coder) whole(r *checkpoint.Kept) {
	state := uint64(r.State)
	c.uint(&state)
	r.State = checkpoint.State(state)
	for _, text := range []*string{&r.LeadID, &r.Organization, &r.Location, &r.Status, &r.ExternalID, &r.Reason, &r.File, &r.Locator, &r.WantLink, &r.Run} {
		c.text(text)
	}
	c.fixed(r.Digest[:])
	c.content(&r.Content)
	c.int(&r.Code)
	c.int(&r.Line)
	c.time(&r.Updated)
	seq := r.Seq // of the row, where it came with the same commit
	if c.uint(&r.Seq); c.reading && r.Seq == 0 {
		r.Seq = seq
	}
	c.aside(r)
}
