package records

import (
	"encoding/binary"

	"leadferry/checkpoint"
)

func (w *Words) appendEvent(b []byte, ev checkpoint.Event) []byte {
	b = appendStatus(append(b, byte(ev.Act), byte(ev.State)), ev.Status)
	b = binary.AppendUvarint(b, uint64(ev.Code))
	return AppendTime(w.appendWord(b, ev.Run), ev.At)
}

func (r *Reader) event(texts []string) checkpoint.Event {
	return checkpoint.Event{
		Act: checkpoint.Act(r.Byte()), State: checkpoint.State(r.Byte()), Status: r.status(),
		Code: int(r.Uint()), Run: r.word(texts), At: r.Time(),
	}
}

// Events are those of a past, oldest first.
func (w *Words) Events(past []byte) (all []checkpoint.Event, err error) {
	texts := *w.texts.Load()
	f := Reader{b: past}
	for len(f.b) > 0 && !f.Bad {
		all = append(all, f.event(texts))
	}
	return all, f.Done()
}

// Kept is what a record says, with what led to it; nil where there is none.
func (w *Words) Kept(key string, record []byte) (*checkpoint.Kept, error) {
	if len(record) == 0 {
		return nil, nil
	}
	k := &checkpoint.Kept{}
	t, err := w.Decode(key, record, &k.Entry)
	if err != nil {
		return nil, err
	}
	k.Act = t.Act
	if k.Past, err = w.Events(t.Past); err != nil {
		return nil, err
	}
	k.Prior, err = w.Kept(key, t.Prior)
	return k, err
}

// AppendKept appends the record of k; nil has none.
func (w *Words) AppendKept(b []byte, k *checkpoint.Kept) []byte {
	if k == nil {
		return b
	}
	return w.AppendEntry(b, &k.Entry, w.TailOf(k))
}

// TailOf is what the record of k holds beside the entry.
func (w *Words) TailOf(k *checkpoint.Kept) Tail {
	t := Tail{Act: k.Act, Prior: w.AppendKept(nil, k.Prior)}
	for _, ev := range k.Past {
		t.Past = w.appendEvent(t.Past, ev)
	}
	return t
}

// Maker is the run that made a lead, or sent what is in doubt.
func (w *Words) Maker(e *checkpoint.Entry, t *Tail) string {
	past, _ := w.Events(t.Past) // of a record that was decoded
	return (&checkpoint.Kept{Entry: *e, Act: t.Act, Past: past}).Maker()
}
