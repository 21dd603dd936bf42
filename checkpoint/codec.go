package checkpoint

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"leadferry/internal/rowkey"
)

// Format is the version of all that a Store keeps: of records and notes, of a file's buckets and a database's tables.
// Each change of them needs a higher number. No other version is read.
const Format = 22

// EncodeKept returns a record as bytes, without its key.
func EncodeKept(k *Kept) []byte {
	c := coder{b: make([]byte, 0, 256)}
	c.kept(k)
	return c.b
}

// DecodeKept is the reverse of [EncodeKept]. It fills k and does not keep the bytes. Other bytes are ErrDamaged.
func DecodeKept(key string, record []byte, k *Kept) (*Kept, error) {
	*k = Kept{Entry: Entry{Key: key}}
	c := coder{b: record, reads: true}
	c.kept(k)
	return k, c.done()
}

// EncodeKey returns what is stored under a key as bytes, without the key.
func EncodeKey(k KeptKey) []byte {
	c := coder{b: make([]byte, 0, 256)}
	c.maybe(&k.Entry, "")
	c.maybe(&k.Intent, "")
	return c.b
}

// DecodeKey is the reverse of [EncodeKey].
func DecodeKey(key string, records []byte) (k KeptKey, err error) {
	c := coder{b: records, reads: true}
	c.maybe(&k.Entry, key)
	c.maybe(&k.Intent, key)
	return k, c.done()
}

func (c *coder) kept(k *Kept) {
	c.entry(&k.Entry)
	c.byte((*byte)(&k.Act))
	past := len(k.Past)
	c.number(&past)
	for i := 0; i < past && !c.bad; i++ {
		if c.reads {
			k.Past = append(k.Past, Event{})
		}
		c.event(&k.Past[i])
	}
	c.maybe(&k.Prior, k.Key)
}

// maybe codes a record of a key, or that there is none.
func (c *coder) maybe(k **Kept, key string) {
	if !c.flag(*k != nil) {
		return
	}
	if c.reads {
		*k = &Kept{Entry: Entry{Key: key}}
	}
	c.kept(*k)
}

// entry is the only list of an entry's fields. Fields that are seldom set share one byte while all of them are empty.
func (c *coder) entry(e *Entry) {
	c.byte((*byte)(&e.State))
	if c.reads && (e.State == Unknown || e.State > NotMade) {
		c.bad = true
	}
	c.status(&e.Status)
	c.text(&e.LeadID)
	c.text(&e.Organization)
	c.text(&e.Location)
	if c.flag(e.ExternalID == e.Key) { // the common case
		e.ExternalID = e.Key
	} else {
		c.text(&e.ExternalID)
	}
	c.digest(&e.Digest)
	c.content(&e.Content)
	c.number(&e.Line)
	c.text(&e.File)
	c.text(&e.Run)
	c.time(&e.Updated)
	c.uint(&e.Seq)
	if c.flag(e.Code != 0 || e.Reason != "" || e.Locator != "" || e.WantLink != "" || e.RequestID != "") {
		c.number(&e.Code)
		c.text(&e.Reason)
		c.text(&e.Locator)
		c.text(&e.WantLink)
		c.text(&e.RequestID)
	}
	if c.flag(e.Unsettled != "" || e.Sought != "" || e.AsksLink || e.Refused != Digest{} || e.Synced ||
		!e.Confirmed.IsZero() || e.Seen != Sight{}) {
		c.text(&e.Unsettled)
		c.status(&e.Sought)
		e.AsksLink = c.flag(e.AsksLink)
		c.digest(&e.Refused)
		e.Synced = c.flag(e.Synced)
		c.time(&e.Confirmed)
		c.time(&e.Seen.At)
		c.status(&e.Seen.Status)
		c.text(&e.Seen.Organization)
		c.status(&e.Seen.Against)
		e.Seen.Content = c.flag(e.Seen.Content)
	}
}

func (c *coder) event(ev *Event) {
	c.byte((*byte)(&ev.Act))
	c.byte((*byte)(&ev.State))
	c.status(&ev.Status)
	c.number(&ev.Code)
	c.text(&ev.Run)
	c.time(&ev.At)
}

// coder writes fields one after another, or reads them into zero values; both use one list of calls.
type coder struct {
	b          []byte // what was written, or what is left to read
	reads, bad bool   // bad: a field is missing or wrong
}

// done returns an error unless the fields that were read were all there and nothing is left.
func (c *coder) done() error {
	if c.bad || len(c.b) != 0 {
		return fmt.Errorf("%w: a record is not as this version writes it", ErrDamaged)
	}
	return nil
}

// next takes n bytes, without a copy.
func (c *coder) next(n uint64) (out []byte) {
	if n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return nil
	}
	out, c.b = c.b[:n], c.b[n:]
	return out
}

func (c *coder) bytes(v []byte) {
	if c.reads {
		copy(v, c.next(uint64(len(v))))
	} else {
		c.b = append(c.b, v...)
	}
}

func (c *coder) byte(v *byte) {
	one := [1]byte{*v}
	c.bytes(one[:])
	*v = one[0]
}

// flag codes whether something is there.
func (c *coder) flag(there bool) bool {
	one := byte(0)
	if there {
		one = 1
	}
	c.byte(&one)
	return one != 0
}

func (c *coder) uint(v *uint64) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, *v)
		return
	}
	value, n := binary.Uvarint(c.b)
	if n <= 0 { // not a number: next must fail
		n = len(c.b) + 1
	}
	*v = value
	c.next(uint64(n))
}

func (c *coder) number(v *int) {
	n := uint64(*v)
	c.uint(&n)
	*v = int(n)
}

// time codes a time in milliseconds, in UTC.
func (c *coder) time(v *time.Time) {
	if !c.flag(!v.IsZero()) {
		return
	}
	ms := uint64(v.UnixMilli())
	if c.uint(&ms); c.reads {
		*v = time.UnixMilli(int64(ms)).UTC()
	}
}

func (c *coder) text(v *string) {
	if !c.reads {
		c.b = AppendText(c.b, *v)
		return
	}
	var n uint64
	switch c.uint(&n); n {
	case 0: // none
	case 1:
		id := [16]byte{}
		c.bytes(id[:])
		text := hex.AppendEncode(make([]byte, 0, 32), id[:])
		*v = string(text[:8]) + "-" + string(text[8:12]) + "-" + string(text[12:16]) + "-" + string(text[16:20]) + "-" +
			string(text[20:])
	default:
		*v = string(c.next(n - 1))
	}
}

// status codes a status of the specification as one byte, and others as a text after the byte 255.
func (c *coder) status(v *string) {
	at := byte(slices.Index(Statuses[:], *v))
	c.byte(&at)
	switch {
	case int(at) < len(Statuses):
		*v = Statuses[at]
	case at == 255:
		*v = BoundedStatus(*v)
		c.text(v)
	default:
		c.bad = true
	}
}

func (c *coder) digest(v *Digest) {
	if c.flag(*v != Digest{}) {
		c.bytes(v[:])
	}
}

func (c *coder) content(v *[]ContentDigest) {
	n := len(*v)
	if c.number(&n); c.reads {
		*v = slices.Grow(*v, min(max(n, 0), len(c.b)/8))
	}
	for i := 0; i < n && !c.bad; i++ {
		if c.reads {
			*v = append(*v, ContentDigest{})
		}
		c.bytes((*v)[i].Name[:])
		c.bytes((*v)[i].Value[:])
	}
}

// AppendText appends s with its length in front: 0 if s is empty, 1 for a UUID in lower case that follows in 16 bytes,
// else the number of bytes plus one. No text in this form is the beginning of another, so texts can be joined to keys.
func AppendText(b []byte, s string) []byte {
	if s == "" {
		return append(b, 0)
	}
	if id, is := rowkey.UUID(s); is && s == strings.ToLower(s) {
		return append(append(b, 1), id[:]...)
	}
	b = binary.AppendUvarint(b, uint64(len(s))+1)
	return append(b, s...)
}
