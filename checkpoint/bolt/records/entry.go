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

// tail is what a record holds beside the entry.
type tail struct {
	act         checkpoint.Act
	past, prior []byte // events; the record of an intent
}

// AppendKept appends the record of k; nil has none.
func (w *Words) AppendKept(b []byte, k *checkpoint.Kept) []byte {
	if k == nil {
		return b
	}
	from, flags := len(b), entryFlags(k)
	b = append(b, byte(k.State), flags, byte(k.Act))
	b = appendStatus(b, k.Status)
	b = AppendText(b, k.LeadID)
	b = w.appendWord(b, k.Organization)
	b = w.appendWord(b, k.Location)
	if flags&hasLink != 0 {
		b = AppendText(b, k.ExternalID)
	}
	b = append(b, k.Digest[:]...)
	b = binary.AppendUvarint(b, uint64(len(k.Content)))
	for i := range k.Content {
		b = w.appendName(b, i, k.Content[i].Name)
		b = append(b, k.Content[i].Value[:]...)
	}
	if flags&hasAnswer != 0 {
		b = w.appendWord(binary.AppendUvarint(b, uint64(k.Code)), k.Reason)
	}
	if flags&hasOrigin != 0 {
		b = w.appendWord(binary.AppendUvarint(b, uint64(k.Line)), k.File)
	}
	if flags&hasWish != 0 {
		b = AppendText(AppendText(w.appendWord(b, k.Locator), k.WantLink), k.RequestID)
	}
	b = AppendTime(w.appendWord(b, k.Run), k.Updated)
	b = binary.AppendUvarint(b, k.Seq)
	if flags&hasUpdate != 0 {
		b = w.appendUpdate(b, &k.Entry)
	}
	if flags&hasPast != 0 {
		b = appendPart(b, w.appendEvents(k.Past))
	}
	if flags&hasPrior != 0 {
		b = appendPart(b, w.AppendKept(nil, k.Prior))
	}
	return Seal(b, from, []byte(k.Key))
}

func appendPart(b, part []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// when is a flag that is set on a condition.
func when(on bool, flag byte) byte {
	if on {
		return flag
	}
	return 0
}

func entryFlags(k *checkpoint.Kept) byte {
	own := k.ExternalID != "" && k.ExternalID == k.Key
	return when(own, hasOwnLink) | when(k.ExternalID != "" && !own, hasLink) |
		when(k.Code != 0 || k.Reason != "", hasAnswer) | when(k.Line != 0 || k.File != "", hasOrigin) |
		when(k.Locator != "" || k.WantLink != "" || k.RequestID != "", hasWish) |
		when(len(k.Past) > 0, hasPast) | when(k.Prior != nil, hasPrior) | when(updateFlags(&k.Entry) != 0, hasUpdate)
}

// Decode fills e from the record under key. It reuses e.Content.
func (w *Words) Decode(key string, record []byte, e *checkpoint.Entry) error {
	_, err := w.decode(key, record, e)
	return err
}

func (w *Words) decode(key string, record []byte, e *checkpoint.Entry) (t tail, err error) {
	f, err := Unseal([]byte(key), record)
	if err != nil {
		return t, err
	}
	texts := *w.texts.Load()
	*e = checkpoint.Entry{Key: key, State: checkpoint.State(f.Byte()), Content: e.Content[:0]}
	flags := f.Byte()
	t.act = checkpoint.Act(f.Byte())
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
		t.past = f.Next(f.Uint())
	}
	if flags&hasPrior != 0 {
		t.prior = f.Next(f.Uint())
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

func updateFlags(e *checkpoint.Entry) byte {
	return when(e.Unsettled != "", isUnsettled) | when(e.Refused != checkpoint.Digest{}, isRefused) | when(e.Synced, isSynced) |
		when(!e.Confirmed.IsZero(), isConfirmed) | when(e.Seen != checkpoint.Sight{}, isSeen) | when(e.Seen.Kept, isKept)
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

func (w *Words) appendEvents(past []checkpoint.Event) (b []byte) {
	for _, ev := range past {
		b = appendStatus(append(b, byte(ev.Act), byte(ev.State)), ev.Status)
		b = binary.AppendUvarint(b, uint64(ev.Code))
		b = AppendTime(w.appendWord(b, ev.Run), ev.At)
	}
	return b
}

func (r *Reader) event(texts []string) checkpoint.Event {
	return checkpoint.Event{
		Act: checkpoint.Act(r.Byte()), State: checkpoint.State(r.Byte()), Status: r.status(),
		Code: int(r.Uint()), Run: r.word(texts), At: r.Time(),
	}
}

// events are those of a past, oldest first.
func (w *Words) events(past []byte) (all []checkpoint.Event, err error) {
	texts := *w.texts.Load()
	f := Reader{b: past}
	for len(f.b) > 0 && !f.Bad {
		all = append(all, f.event(texts))
	}
	return all, f.Done()
}

// Kept is what a record says, with what led to it; nil where record is nil. An empty one is damaged: a key that has it was known.
func (w *Words) Kept(key string, record []byte) (*checkpoint.Kept, error) {
	if record == nil {
		return nil, nil
	}
	k := &checkpoint.Kept{}
	t, err := w.decode(key, record, &k.Entry)
	if err != nil {
		return nil, err
	}
	k.Act = t.act
	if k.Past, err = w.events(t.past); err != nil {
		return nil, err
	}
	k.Prior, err = w.Kept(key, t.prior)
	return k, err
}
