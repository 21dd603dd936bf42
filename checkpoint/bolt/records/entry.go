package records

import (
	"encoding/binary"
	"slices"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// coder writes the fields of a record behind one another, or reads them: both ways by one list of fields, see
// [coder.entry].
type coder struct {
	out    []byte // what is written
	in     Reader // what is read
	writes bool
}

// AppendKept appends the record of k; nil has none.
func AppendKept(b []byte, k *checkpoint.Kept) []byte {
	if k == nil {
		return b
	}
	c := coder{out: b, writes: true}
	c.kept(k)
	return Seal(c.out, len(b), []byte(k.Key))
}

// Decode fills e from the record under key. It reuses e.Content, and the texts that are equal in both: entries that
// follow one another mostly have file, run, organization and location in common.
func Decode(key string, record []byte, e *checkpoint.Entry) error {
	f, err := Unseal([]byte(key), record)
	if err != nil {
		return err
	}
	c := coder{in: f}
	c.under(key, e)
	if c.in.Bad {
		return ErrRecord
	}
	return nil
}

// Kept is what a record says, with what led to it; nil where record is nil. An empty one is damaged: a key that has it
// was known.
func Kept(key string, record []byte) (*checkpoint.Kept, error) {
	if record == nil {
		return nil, nil
	}
	f, err := Unseal([]byte(key), record)
	if err != nil {
		return nil, err
	}
	k := &checkpoint.Kept{Entry: checkpoint.Entry{Key: key}}
	c := coder{in: f}
	c.kept(k)
	return k, c.in.Done()
}

func (c *coder) under(key string, e *checkpoint.Entry) {
	if !c.writes {
		*e = checkpoint.Entry{
			Content: e.Content, Organization: e.Organization, Location: e.Location, File: e.File, Run: e.Run,
		}
	}
	e.Key = key
	c.entry(e)
	if e.State == checkpoint.Unknown || e.State > checkpoint.NotMade {
		c.in.Bad = !c.writes
	}
}

func (c *coder) kept(k *checkpoint.Kept) {
	c.under(k.Key, &k.Entry)
	c.byte((*byte)(&k.Act))
	past := len(k.Past)
	c.number(&past)
	for i := 0; i < past && !c.in.Bad; i++ {
		if !c.writes {
			k.Past = append(k.Past, checkpoint.Event{})
		}
		c.event(&k.Past[i])
	}
	if !c.some(k.Prior != nil) {
		return
	}
	if !c.writes {
		k.Prior = &checkpoint.Kept{Entry: checkpoint.Entry{Key: k.Key}}
	}
	c.kept(k.Prior)
}

// entry is the one list of an entry's fields. Those that are seldom there take a byte together.
func (c *coder) entry(e *checkpoint.Entry) {
	c.byte((*byte)(&e.State))
	c.status(&e.Status)
	c.text(&e.LeadID)
	c.text(&e.Organization)
	c.text(&e.Location)
	c.textOr(&e.ExternalID, e.Key)
	c.digest(&e.Digest)
	c.content(&e.Content)
	c.number(&e.Line)
	c.text(&e.File)
	c.text(&e.Run)
	c.time(&e.Updated)
	c.uint(&e.Seq)
	if c.some(e.Code != 0 || e.Reason != "" || e.Locator != "" || e.WantLink != "" || e.RequestID != "") {
		c.number(&e.Code)
		c.text(&e.Reason)
		c.text(&e.Locator)
		c.text(&e.WantLink)
		c.text(&e.RequestID)
	}
	if c.some(e.Unsettled != "" || e.Sought != "" || e.Refused != checkpoint.Digest{} || e.Synced ||
		!e.Confirmed.IsZero() || e.Seen != checkpoint.Sight{}) {
		c.text(&e.Unsettled)
		c.status(&e.Sought)
		c.digest(&e.Refused)
		c.bool(&e.Synced)
		c.time(&e.Confirmed)
		c.time(&e.Seen.At)
		c.status(&e.Seen.Status)
		c.text(&e.Seen.Organization)
		c.bool(&e.Seen.Kept)
		c.status(&e.Seen.Against)
	}
}

func (c *coder) event(ev *checkpoint.Event) {
	c.byte((*byte)(&ev.Act))
	c.byte((*byte)(&ev.State))
	c.status(&ev.Status)
	c.number(&ev.Code)
	c.text(&ev.Run)
	c.time(&ev.At)
}

func (c *coder) byte(v *byte) {
	if c.writes {
		c.out = append(c.out, *v)
	} else {
		*v = c.in.Byte()
	}
}

func (c *coder) bool(v *bool) {
	one := byte(0)
	if *v {
		one = 1
	}
	c.byte(&one)
	*v = one != 0
}

// some writes whether there is something, or reads it.
func (c *coder) some(there bool) bool {
	c.bool(&there)
	return there
}

func (c *coder) uint(v *uint64) {
	if c.writes {
		c.out = binary.AppendUvarint(c.out, *v)
	} else {
		*v = c.in.Uint()
	}
}

func (c *coder) number(v *int) {
	n := uint64(*v)
	c.uint(&n)
	*v = int(n)
}

func (c *coder) time(v *time.Time) {
	if c.writes {
		c.out = AppendTime(c.out, *v)
	} else {
		*v = c.in.Time()
	}
}

// text leaves what v holds if it is the same text, so that none is made anew for each record.
func (c *coder) text(v *string) {
	if c.writes {
		c.out = AppendText(c.out, *v)
	} else {
		*v = c.in.textLike(*v)
	}
}

// textOr is a text that is often the same as another one.
func (c *coder) textOr(v *string, other string) {
	if c.some(*v == other) {
		*v = other
	} else {
		c.text(v)
	}
}

func (c *coder) status(v *string) {
	if c.writes {
		c.out = appendStatus(c.out, *v)
	} else {
		*v = c.in.status()
	}
}

// digest is a byte where there is none.
func (c *coder) digest(v *checkpoint.Digest) {
	switch some := c.some(*v != checkpoint.Digest{}); {
	case some && c.writes:
		c.out = append(c.out, v[:]...)
	case some:
		copy(v[:], c.in.Next(uint64(len(v))))
	}
}

func (c *coder) content(v *[]checkpoint.ContentDigest) {
	n := len(*v)
	c.number(&n)
	if c.writes {
		for i := range *v {
			c.out = append(append(c.out, (*v)[i].Name[:]...), (*v)[i].Value[:]...)
		}
		return
	}
	all := (*v)[:0]
	for ; n > 0 && !c.in.Bad; n-- {
		var d checkpoint.ContentDigest
		copy(d.Name[:], c.in.Next(4))
		copy(d.Value[:], c.in.Next(4))
		all = append(all, d)
	}
	if *v = all; len(all) == 0 {
		*v = nil
	}
}

// Indexed says whether an ID is kept in an index: bbolt's keys are bounded.
func Indexed(id string) bool { return id != "" && len(id) <= checkpoint.MaxKey }

// LeadKey is what the index of leads has for an entry, or nil: one whose key is its lead ID has nothing there.
func LeadKey(e *checkpoint.Entry) []byte {
	if !Indexed(e.LeadID) || e.LeadID == e.Key {
		return nil
	}
	return AppendText(nil, e.LeadID)
}

// Links are what the index of external IDs has for a key: the one that its lead has, and those that it is to have.
func Links(key string, k *checkpoint.KeptKey) (links [][]byte) {
	var ids [3]string
	if k.Entry != nil && k.Entry.State.HasLead() {
		ids[0], ids[1] = k.Entry.ExternalID, k.Entry.WantLink
	}
	if k.Intent != nil {
		ids[2] = k.Intent.WantLink
	}
	for i, id := range ids {
		if Indexed(id) && id != key && !slices.Contains(ids[:i], id) {
			links = append(links, append(AppendText(nil, id), key...))
		}
	}
	return links
}

// FoldKey is the record of a key in the index of folds, or nil. A key whose fold is another one has a record there
// from the moment it is known. Of a forgotten key no more is kept than a keyed hash of its fold.
func FoldKey(d *checkpoint.Digester, key string) []byte {
	folded := rowkey.Fold(key)
	if folded == key || folded == "" {
		return nil
	}
	return append(FoldPrefix(d, folded), key...)
}

// FoldPrefix is what the records of a fold begin with: two folds do not have the same, 64 bits see to that.
func FoldPrefix(d *checkpoint.Digester, folded string) []byte { return d.Blocked(folded)[:8:8] }

// ForgottenFold is the record of a forgotten key: no fold is empty, so that none begins so.
func ForgottenFold(folded, key []byte) []byte {
	return append(append([]byte{0}, folded...), key...)
}

// EncodeBlock is the record of a forgotten key under its hash.
func EncodeBlock(b checkpoint.KeptBlock) []byte {
	return Seal(append(AppendTime(nil, b.At), b.Fold...), 0, b.Hash)
}

// DecodeBlock reads the record of a forgotten key. What it returns does not outlive record and key.
func DecodeBlock(key, record []byte) (b checkpoint.KeptBlock, err error) {
	f, err := Unseal(key, record)
	b = checkpoint.KeptBlock{Hash: key, At: f.Time()}
	if err != nil || len(key) != len(checkpoint.Digest{}) || b.At.IsZero() {
		return b, ErrRecord
	}
	if len(f.b) > 0 {
		b.Fold = f.Next(uint64(len(checkpoint.Digest{})))
	}
	return b, f.Done()
}
