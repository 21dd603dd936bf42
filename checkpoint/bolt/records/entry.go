package records

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

// Tail is what a record holds beside the entry.
type Tail struct {
	Act   checkpoint.Act
	Past  []byte // events, see Words.Events
	Prior []byte // a record: it comes back when this intent is withdrawn
}

// AppendEntry appends the record of e.
func (w *Words) AppendEntry(b []byte, e *checkpoint.Entry, t Tail) []byte {
	from := len(b)
	flags := entryFlags(e, t)
	b = append(b, byte(e.State), flags, byte(t.Act))
	b = appendStatus(b, e.Status)
	b = AppendText(b, e.LeadID)
	b = w.appendWord(b, e.Organization)
	b = w.appendWord(b, e.Location)
	if flags&hasLink != 0 {
		b = AppendText(b, e.ExternalID)
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
		b = AppendText(AppendText(w.appendWord(b, e.Locator), e.WantLink), e.RequestID)
	}
	b = AppendTime(w.appendWord(b, e.Run), e.Updated)
	b = binary.AppendUvarint(b, e.Seq)
	if flags&hasUpdate != 0 {
		b = w.appendUpdate(b, e)
	}
	for _, part := range [][]byte{t.Past, t.Prior} {
		if len(part) > 0 {
			b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
		}
	}
	return Seal(b, from, []byte(e.Key))
}

func entryFlags(e *checkpoint.Entry, t Tail) (flags byte) {
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
	set(hasPast, len(t.Past) > 0)
	set(hasPrior, len(t.Prior) > 0)
	set(hasUpdate, updateFlags(e) != 0)
	return flags
}

// Decode fills e from the record under key and returns what else it holds, which
// lives as long as the record. It reuses e.Content.
func (w *Words) Decode(key string, record []byte, e *checkpoint.Entry) (t Tail, err error) {
	f, err := Unseal([]byte(key), record)
	if err != nil {
		return t, err
	}
	texts := *w.texts.Load()
	*e = checkpoint.Entry{Key: key, State: checkpoint.State(f.Byte()), Content: e.Content[:0]}
	flags := f.Byte()
	t.Act = checkpoint.Act(f.Byte())
	e.Status, e.LeadID = f.status(), f.Text()
	e.Organization, e.Location = f.word(texts), f.word(texts)
	switch {
	case flags&hasOwnLink != 0:
		e.ExternalID = key
	case flags&hasLink != 0:
		e.ExternalID = f.Text()
	}
	copy(e.Digest[:], f.Next(uint64(len(e.Digest))))
	f.content(e, texts)
	if flags&hasAnswer != 0 {
		e.Code, e.Reason = int(f.Uint()), f.word(texts)
	}
	if flags&hasOrigin != 0 {
		e.Line, e.File = int(f.Uint()), f.word(texts)
	}
	if flags&hasWish != 0 {
		e.Locator, e.WantLink, e.RequestID = f.word(texts), f.Text(), f.Text()
	}
	e.Run, e.Updated, e.Seq = f.word(texts), f.Time(), f.Uint()
	if flags&hasUpdate != 0 {
		f.update(e, texts)
	}
	if flags&hasPast != 0 {
		t.Past = f.Next(f.Uint())
	}
	if flags&hasPrior != 0 {
		t.Prior = f.Next(f.Uint())
	}
	if e.State == checkpoint.Unknown || e.State > checkpoint.NotMade {
		return t, ErrRecord
	}
	return t, f.Done()
}

func (r *Reader) content(e *checkpoint.Entry, texts []string) {
	for n := r.Uint(); n > 0 && !r.Bad; n-- {
		var c checkpoint.ContentDigest
		copy(c.Name[:], r.word(texts))
		copy(c.Value[:], r.Next(4))
		e.Content = append(e.Content, c)
	}
	if len(e.Content) == 0 {
		e.Content = nil
	}
}

// What updates left in an entry is a byte that says which parts follow.
const (
	isUnsettled = 1 << iota
	isRefused
	isSynced
	isConfirmed
	isSeen
	isKept
)

func updateFlags(e *checkpoint.Entry) (flags byte) {
	set := func(flag byte, on bool) {
		if on {
			flags |= flag
		}
	}
	set(isUnsettled, e.Unsettled != "")
	set(isRefused, e.Refused != checkpoint.Digest{})
	set(isSynced, e.Synced)
	set(isConfirmed, !e.Confirmed.IsZero())
	set(isSeen, e.Seen != checkpoint.Sight{})
	set(isKept, e.Seen.Kept)
	return flags
}

func (w *Words) appendUpdate(b []byte, e *checkpoint.Entry) []byte {
	flags := updateFlags(e)
	b = append(b, flags)
	if flags&isUnsettled != 0 {
		b = appendStatus(w.appendWord(b, e.Unsettled), e.Sought)
	}
	if flags&isRefused != 0 {
		b = append(b, e.Refused[:]...)
	}
	if flags&isConfirmed != 0 {
		b = AppendTime(b, e.Confirmed)
	}
	if flags&isSeen != 0 {
		b = w.appendWord(appendStatus(AppendTime(b, e.Seen.At), e.Seen.Status), e.Seen.Organization)
	}
	if flags&isKept != 0 {
		b = appendStatus(b, e.Seen.Against)
	}
	return b
}

func (r *Reader) update(e *checkpoint.Entry, texts []string) {
	flags := r.Byte()
	if flags&isUnsettled != 0 {
		e.Unsettled, e.Sought = r.word(texts), r.status()
	}
	if flags&isRefused != 0 {
		copy(e.Refused[:], r.Next(uint64(len(e.Refused))))
	}
	e.Synced = flags&isSynced != 0
	if flags&isConfirmed != 0 {
		e.Confirmed = r.Time()
	}
	if flags&isSeen != 0 {
		e.Seen = checkpoint.Sight{At: r.Time(), Status: r.status(), Organization: r.word(texts)}
	}
	if flags&isKept != 0 {
		e.Seen.Kept, e.Seen.Against = true, r.status()
	}
}
