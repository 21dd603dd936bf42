package bolt

import (
	"slices"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// encodeKept is the record of k.
func encodeKept(k *checkpoint.Kept) []byte {
	c := coder{b: make([]byte, 0, 256)}
	c.kept(k)
	return seal(c.b, []byte(k.Key))
}

// decodeKept is what a record says, with what led to it; nil where record is nil. An empty one is damaged.
func decodeKept(key string, record []byte) (*checkpoint.Kept, error) {
	if record == nil {
		return nil, nil
	}
	fields, err := unseal([]byte(key), record)
	if err != nil {
		return nil, err
	}
	k := &checkpoint.Kept{Entry: checkpoint.Entry{Key: key}}
	c := coder{b: fields, reads: true}
	c.kept(k)
	return k, c.done()
}

func (c *coder) kept(k *checkpoint.Kept) {
	c.entry(&k.Entry)
	c.byte((*byte)(&k.Act))
	past := len(k.Past)
	c.number(&past)
	for i := 0; i < past && !c.bad; i++ {
		if c.reads {
			k.Past = append(k.Past, checkpoint.Event{})
		}
		c.event(&k.Past[i])
	}
	if !c.some(k.Prior != nil) {
		return
	}
	if c.reads {
		k.Prior = &checkpoint.Kept{Entry: checkpoint.Entry{Key: k.Key}}
	}
	c.kept(k.Prior)
}

// entry is the one list of an entry's fields, under its key. Those that are seldom there take a byte together.
func (c *coder) entry(e *checkpoint.Entry) {
	c.byte((*byte)(&e.State))
	if c.reads && (e.State == checkpoint.Unknown || e.State > checkpoint.NotMade) {
		c.bad = true
	}
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
		e.Synced = c.some(e.Synced)
		c.time(&e.Confirmed)
		c.time(&e.Seen.At)
		c.status(&e.Seen.Status)
		c.text(&e.Seen.Organization)
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

// hasIndex says whether an ID is kept in an index: bbolt's keys are bounded.
func hasIndex(id string) bool { return id != "" && len(id) <= checkpoint.MaxKey }

// leadKey is what the index of leads has for a lead ID, or nil.
func leadKey(id string) []byte {
	if !hasIndex(id) {
		return nil
	}
	return appendText(nil, id)
}

// linksOf are what the index of external IDs has for a key: the one that its lead has, and those that it is to have.
func linksOf(key string, k *checkpoint.KeptKey) (links []string) {
	var ids [3]string
	if k.Entry != nil && k.Entry.State.HasLead() {
		ids[0], ids[1] = k.Entry.ExternalID, k.Entry.WantLink
	}
	if k.Intent != nil {
		ids[2] = k.Intent.WantLink
	}
	for i, id := range ids {
		if hasIndex(id) && id != key && !slices.Contains(ids[:i], id) {
			links = append(links, string(appendText(nil, id))+key)
		}
	}
	return links
}

// foldsOf are what the index of folds has for a key that is known: one record, unless the key is its own fold.
func foldsOf(d *checkpoint.Digester, key string, k *checkpoint.KeptKey) []string {
	folded := rowkey.Fold(key)
	if k.Shown() == nil || folded == key || folded == "" {
		return nil
	}
	return []string{string(foldPrefix(d, folded)) + key}
}

// foldPrefix is what the records of a fold begin with: two folds do not have the same, 64 bits see to that.
func foldPrefix(d *checkpoint.Digester, folded string) []byte { return d.Blocked(folded)[:8:8] }

// foldsOfBlock are what the same index has for a forgotten key: no more than a keyed hash of its fold.
func foldsOfBlock(b *checkpoint.KeptBlock) []string {
	if len(b.Fold) == 0 {
		return nil
	}
	return []string{string(forgottenFold(b.Fold)) + string(b.Hash)}
}

// forgottenFold begins like no other fold: none is empty.
func forgottenFold(folded []byte) []byte { return append([]byte{0}, folded...) }

// encodeBlock is the record of a forgotten key under its hash.
func encodeBlock(b *checkpoint.KeptBlock) []byte { return seal(checkpoint.Encode(b), b.Hash) }

func decodeBlock(hash, record []byte) (b checkpoint.KeptBlock, err error) {
	text, err := unseal(hash, record)
	if err == nil {
		err = checkpoint.Decode(text, &b)
	}
	return b, err
}
