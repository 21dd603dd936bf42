package bolt

import (
	"context"
	"encoding/binary"

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

// appendEvent adds an event to a past; beyond mostPast the oldest one but the first goes
// that did not bring a lead ID, or else the second.
func (w *words) appendEvent(past []byte, ev checkpoint.Event) []byte {
	b := append([]byte(nil), past...)
	from := len(b)
	b = appendStatus(append(b, byte(ev.Act), byte(ev.State)), ev.Status)
	b = binary.AppendUvarint(b, uint64(ev.Code))
	b = appendTime(w.appendWord(b, ev.Run), ev.At)
	f := reader{b: b[:from]}
	texts := *w.texts.Load()
	ends, goes := []int(nil), 0
	for len(f.b) > 0 && !f.bad {
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

func (r *reader) event(texts []string) checkpoint.Event {
	return checkpoint.Event{
		Act: checkpoint.Act(r.byte()), State: checkpoint.State(r.byte()), Status: r.status(),
		Code: int(r.uint()), Run: r.word(texts), At: r.time(),
	}
}

func (w *words) events(past []byte) (all []checkpoint.Event, err error) {
	texts := *w.texts.Load()
	f := reader{b: past}
	for len(f.b) > 0 && !f.bad {
		all = append(all, f.event(texts))
	}
	return all, f.done()
}

// History returns what was done with a key, in order: its first event, the last
// ones, and what a person decided or a list brought, with every send that was in doubt
// when it was decided about. It is empty for a key that is not known. Times of sends that
// got no answer are those of the send.
func (d *Store) History(_ context.Context, key string) (all []checkpoint.Event, err error) {
	err = d.read("read history", func(r *reading) error {
		records := [][]byte{r.entry(key), r.tx.Bucket(inIntents).Get([]byte(key))}
		err := r.tx.Bucket(inAudit).ForEach(func(k, v []byte) error {
			line, err := decodeAudit(k, v)
			if line.Key == key {
				records = append(records, line.send)
			}
			return err
		})
		if err != nil {
			return err
		}
		all, err = d.words.eventsOf(key, records)
		return err
	})
	return all, err
}

// eventsOf are the events in records of a key, each once: those of the first ones in their
// order, and what these lack of the others by its time.
func (w *words) eventsOf(key string, records [][]byte) (all []checkpoint.Event, err error) {
	for i, record := range records {
		if len(record) == 0 {
			continue
		}
		var e checkpoint.Entry
		t, err := w.decode(key, record, &e)
		if err != nil {
			return nil, err
		}
		past, err := w.events(t.past)
		if err != nil {
			return nil, err
		}
		for _, ev := range append(past, e.Event(t.act)) {
			all = checkpoint.AddEvent(all, ev, i > 1)
		}
	}
	return all, nil
}
