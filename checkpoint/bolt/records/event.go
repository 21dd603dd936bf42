package records

import (
	"encoding/binary"
	"slices"

	"leadferry/checkpoint"
)

// mostPast is how many events are kept before the one that the entry shows: the
// first, the last ones, and, before others, those that tell whose word its lead ID is.
const mostPast = 7

// givesLead are the acts that brought a lead ID: of the service, and of people.
const (
	ofPeople  = checkpoint.Adopted | checkpoint.Decided
	givesLead = checkpoint.Made | ofPeople
)

// AppendEvent adds an event to a past; beyond mostPast the oldest one but the first goes
// that did not bring a lead ID, or else the second.
func (w *Words) AppendEvent(past []byte, ev checkpoint.Event) []byte {
	b := append([]byte(nil), past...)
	from := len(b)
	b = appendStatus(append(b, byte(ev.Act), byte(ev.State)), ev.Status)
	b = binary.AppendUvarint(b, uint64(ev.Code))
	b = AppendTime(w.appendWord(b, ev.Run), ev.At)
	f := Reader{b: b[:from]}
	texts := *w.texts.Load()
	ends, goes := []int(nil), 0
	for len(f.b) > 0 && !f.Bad {
		ev := f.event(texts)
		if n := len(ends); n > 0 && goes == 0 && ev.Act&givesLead == 0 {
			goes = n
		}
		ends = append(ends, from-len(f.b))
	}
	if len(ends) >= mostPast {
		goes = max(goes, 1)
		b = append(b[:ends[goes-1]], b[ends[goes]:]...)
	}
	return b
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

// EventsOf are the events in records of a key, each once: those of the first ones in their
// order, and what these lack of the others by its time.
func (w *Words) EventsOf(key string, records [][]byte) (all []checkpoint.Event, err error) {
	for i, record := range records {
		if len(record) == 0 {
			continue
		}
		var e checkpoint.Entry
		t, err := w.Decode(key, record, &e)
		if err != nil {
			return nil, err
		}
		past, err := w.Events(t.Past)
		if err != nil {
			return nil, err
		}
		for _, ev := range append(past, e.Event(t.Act)) {
			all = checkpoint.AddEvent(all, ev, i > 1)
		}
	}
	return all, nil
}

// Maker is the run that made a lead, or sent what is in doubt.
func (w *Words) Maker(e *checkpoint.Entry, t *Tail) string {
	if e.State == checkpoint.InDoubt || e.State.HasLead() && t.Act&checkpoint.Made != 0 && t.Act&checkpoint.Adopted == 0 {
		return e.Run
	}
	past, _ := w.Events(t.Past) // of a record that was decoded
	for _, ev := range slices.Backward(past) {
		if ev.Act&checkpoint.Made != 0 && ev.Act&checkpoint.Adopted == 0 && e.State.HasLead() {
			return ev.Run
		}
	}
	return ""
}

// ByPeople says whether the lead ID of an entry is the word of people.
func (w *Words) ByPeople(t Tail) bool {
	if t.Act&givesLead != 0 {
		return t.Act&ofPeople != 0
	}
	past, _ := w.Events(t.Past) // of a record that was decoded
	for _, ev := range slices.Backward(past) {
		if ev.Act&givesLead != 0 {
			return ev.Act&ofPeople != 0
		}
	}
	return false
}
