package bolt

import (
	"encoding/binary"

	"leadferry/checkpoint"
)

// Parts of an entry that are seldom there have a flag instead of empty fields.
const (
	hasOwnLink = 1 << iota // external ID equals the key
	hasLink                // external ID
	hasAnswer              // code and reason
	hasOrigin              // file and line
	hasWish                // locator, wanted link and request ID
	hasPrior               // the intent that this one replaced, as it was
	hasPast                // events before the one that the entry shows
	hasUpdate              // what updates left, see appendUpdate
)

// tail is what a record holds beside the entry.
type tail struct {
	act   checkpoint.Act
	past  []byte // events, see appendEvent
	prior []byte // a record: it comes back when this intent is withdrawn
}

// appendEntry appends the record of e.
func (w *words) appendEntry(b []byte, e *checkpoint.Entry, t tail) []byte {
	from := len(b)
	flags := entryFlags(e, t)
	b = append(b, byte(e.State), flags, byte(t.act))
	b = appendStatus(b, e.Status)
	b = appendText(b, e.LeadID)
	b = w.appendWord(b, e.Organization)
	b = w.appendWord(b, e.Location)
	if flags&hasLink != 0 {
		b = appendText(b, e.ExternalID)
	}
	b = append(b, e.Digest[:]...)
	b = binary.AppendUvarint(b, uint64(len(e.Content)))
	for i := range e.Content {
		b = w.appendName(b, i, e.Content[i].Name)
		b = append(b, e.Content[i].Value[:]...)
	}
	if flags&hasAnswer != 0 {
		b = w.appendWord(binary.AppendUvarint(b, uint64(e.Code)), e.Reason)
	}
	if flags&hasOrigin != 0 {
		b = w.appendWord(binary.AppendUvarint(b, uint64(e.Line)), e.File)
	}
	if flags&hasWish != 0 {
		b = appendText(appendText(w.appendWord(b, e.Locator), e.WantLink), e.RequestID)
	}
	b = appendTime(w.appendWord(b, e.Run), e.Updated)
	b = binary.AppendUvarint(b, e.Seq)
	if flags&hasUpdate != 0 {
		b = w.appendUpdate(b, e)
	}
	for _, part := range [][]byte{t.past, t.prior} {
		if len(part) > 0 {
			b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
		}
	}
	return seal(b, from, []byte(e.Key))
}

func entryFlags(e *checkpoint.Entry, t tail) (flags byte) {
	set := func(flag byte, on bool) {
		if on {
			flags |= flag
		}
	}
	own := e.ExternalID != "" && e.ExternalID == e.Key
	set(hasOwnLink, own)
	set(hasLink, e.ExternalID != "" && !own)
	set(hasAnswer, e.Code != 0 || e.Reason != "")
	set(hasOrigin, e.Line != 0 || e.File != "")
	set(hasWish, e.Locator != "" || e.WantLink != "" || e.RequestID != "")
	set(hasPast, len(t.past) > 0)
	set(hasPrior, len(t.prior) > 0)
	set(hasUpdate, updateFlags(e) != 0)
	return flags
}

// decode fills e from the record under key and returns what else it holds, which
// lives as long as the record. It reuses e.Content.
func (w *words) decode(key string, record []byte, e *checkpoint.Entry) (t tail, err error) {
	f, err := unseal([]byte(key), record)
	if err != nil {
		return t, err
	}
	texts := *w.texts.Load()
	*e = checkpoint.Entry{Key: key, State: checkpoint.State(f.byte()), Content: e.Content[:0]}
	flags := f.byte()
	t.act = checkpoint.Act(f.byte())
	e.Status, e.LeadID = f.status(), f.text()
	e.Organization, e.Location = f.word(texts), f.word(texts)
	switch {
	case flags&hasOwnLink != 0:
		e.ExternalID = key
	case flags&hasLink != 0:
		e.ExternalID = f.text()
	}
	copy(e.Digest[:], f.next(uint64(len(e.Digest))))
	f.content(e, texts)
	if flags&hasAnswer != 0 {
		e.Code, e.Reason = int(f.uint()), f.word(texts)
	}
	if flags&hasOrigin != 0 {
		e.Line, e.File = int(f.uint()), f.word(texts)
	}
	if flags&hasWish != 0 {
		e.Locator, e.WantLink, e.RequestID = f.word(texts), f.text(), f.text()
	}
	e.Run, e.Updated, e.Seq = f.word(texts), f.time(), f.uint()
	if flags&hasUpdate != 0 {
		f.update(e, texts)
	}
	if flags&hasPast != 0 {
		t.past = f.next(f.uint())
	}
	if flags&hasPrior != 0 {
		t.prior = f.next(f.uint())
	}
	if e.State == checkpoint.Unknown || e.State > checkpoint.NotMade {
		return t, errRecord
	}
	return t, f.done()
}

func (r *reader) content(e *checkpoint.Entry, texts []string) {
	for n := r.uint(); n > 0 && !r.bad; n-- {
		var c checkpoint.ContentDigest
		copy(c.Name[:], r.word(texts))
		copy(c.Value[:], r.next(4))
		e.Content = append(e.Content, c)
	}
	if len(e.Content) == 0 {
		e.Content = nil
	}
}

// stateOf returns the state in a record without decoding the rest; nil is Unknown.
func stateOf(key string, record []byte) (checkpoint.State, error) {
	if record == nil {
		return checkpoint.Unknown, nil
	}
	f, err := unseal([]byte(key), record)
	return checkpoint.State(f.byte()), err
}
