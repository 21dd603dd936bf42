package records

import (
	"slices"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

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
