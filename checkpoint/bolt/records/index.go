package records

import (
	"bytes"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// Indexed says whether an ID is kept in an index: bbolt's keys are bounded.
func Indexed(id string) bool { return id != "" && len(id) <= checkpoint.MaxKey }

// LinkKeys are the index keys of the external IDs of an entry: the one that its lead has,
// and the one that it is to have; nil where none is kept.
type LinkKeys [2][]byte

// Has says whether link is one of them.
func (k LinkKeys) Has(link []byte) bool { return bytes.Equal(k[0], link) || bytes.Equal(k[1], link) }

// IndexKeys returns the index keys of an entry, nil where none is kept.
func IndexKeys(e *checkpoint.Entry) (lead []byte, links LinkKeys) {
	if Indexed(e.LeadID) && e.LeadID != e.Key {
		lead = AppendText(nil, e.LeadID)
	}
	if e.State.HasLead() {
		links[0] = LinkKey(e.ExternalID, e.Key)
		if e.WantLink != e.ExternalID {
			links[1] = LinkKey(e.WantLink, e.Key)
		}
	}
	return lead, links
}

// LinkKey is what stands in an index for an external ID of a key, or nil.
func LinkKey(external, key string) []byte {
	if !Indexed(external) || external == key {
		return nil
	}
	return append(AppendText(nil, external), key...)
}

// FoldKey is the record of a key in the index of folds, or nil. A key whose fold is another one has a record there from the
// moment it is known. Of a forgotten key no more is kept than a keyed hash of its fold.
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
