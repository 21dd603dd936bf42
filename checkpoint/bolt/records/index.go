package records

import (
	"bytes"

	"leadferry/checkpoint"
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

// Gist is what a survey counts of an entry, and looks for in the indexes. What it holds lives as
// long as the record.
type Gist struct {
	State  checkpoint.State
	Status int    // its place, see KindOfStatus
	Lead   []byte // the key in the index of lead IDs; nil: none
	Link   []byte // the external ID as the index of links begins with it; nil: none
	Wishes bool   // it asks for a link: what the index holds takes decoding
}

// GistOf reads no more of an entry than that. The checksum vouches for the rest.
func GistOf(key, record []byte) (g Gist, err error) {
	f, err := Unseal(key, record)
	if err != nil {
		return g, err
	}
	g.State = checkpoint.State(f.Byte())
	flags := f.Byte()
	f.Byte()
	g.Status = f.statusKind()
	lead := f.rawText()
	if g.State == checkpoint.Unknown || g.State == checkpoint.InDoubt || g.State > checkpoint.NotMade || f.Bad {
		return g, ErrRecord
	}
	if n := len(lead); n > 1 && n <= maxIndexKey && !isText(lead, key) {
		g.Lead = lead
	}
	if !g.State.HasLead() {
		return g, nil
	}
	if g.Wishes = flags&hasWish != 0; g.Wishes || flags&hasLink == 0 {
		return g, nil // few wish: all others are linked
	}
	f.skipWord()
	f.skipWord()
	if link := f.rawText(); len(link) > 1 && len(link) <= maxIndexKey {
		g.Link = link
	}
	if f.Bad {
		return g, ErrRecord
	}
	return g, nil
}

// maxIndexKey is the length of the longest ID that is kept in an index, as
// AppendText writes it.
const maxIndexKey = checkpoint.MaxKey + 2

// isText says whether raw is text as AppendText writes it. It nearly never is, which
// is cheap to see by the lengths or by the last byte of a UUID.
func isText(raw, text []byte) bool {
	const digits = "0123456789abcdef"
	if len(text) == 36 && raw[0] == 1 {
		if last := raw[16]; digits[last>>4] != text[34] || digits[last&15] != text[35] {
			return false
		}
	} else if n := len(raw) - len(text); n != 1 && n != 2 {
		return false
	}
	return bytes.Equal(raw, AppendText(nil, string(text)))
}
