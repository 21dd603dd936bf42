package checkpoint

import (
	"encoding/binary"
	"slices"
	"time"
)

// Act says what an event did to a key; several may come together.
type Act uint8

// The acts.
const (
	Made       Act = 1 << iota // a lead was created
	Linked                     // its external ID was set
	StatusSent                 // its status was changed
	DataSent                   // other data were sent
	Refused                    // the service refused it
	Doubted                    // a create was sent and nobody could tell
	Adopted                    // taken over from a list
	Decided                    // settled by a person
)

// Event is one step in the history of a key.
type Event struct {
	Act    Act
	State  State // as it stood after
	Status string
	Code   int // of the answer, where it says something
	Run    string
	At     time.Time // UTC, to the millisecond
}

// mostPast is how many events are kept before the one that the entry shows: the
// first, and the last ones.
const mostPast = 7

func eventOf(e *Entry, act Act) Event {
	return Event{Act: act, State: e.State, Status: e.Status, Code: e.Code, Run: e.Run, At: e.Updated}
}

// appendEvent adds an event to a past; beyond mostPast the second one goes.
func (w *words) appendEvent(past []byte, ev Event) []byte {
	b := append([]byte(nil), past...)
	from := len(b)
	b = appendStatus(append(b, byte(ev.Act), byte(ev.State)), ev.Status)
	b = binary.AppendUvarint(b, uint64(ev.Code))
	b = appendTime(w.appendWord(b, ev.Run), ev.At)
	f := reader{b: b[:from]}
	texts := *w.texts.Load()
	var ends []int
	for len(f.b) > 0 && !f.bad {
		f.event(texts)
		ends = append(ends, from-len(f.b))
	}
	if len(ends) >= mostPast {
		b = append(b[:ends[0]], b[ends[1]:]...)
	}
	return b
}

func (r *reader) event(texts []string) Event {
	return Event{
		Act: Act(r.byte()), State: State(r.byte()), Status: r.status(),
		Code: int(r.uint()), Run: r.word(texts), At: r.time(),
	}
}

func (w *words) events(past []byte) (all []Event, err error) {
	texts := *w.texts.Load()
	f := reader{b: past}
	for len(f.b) > 0 && !f.bad {
		all = append(all, f.event(texts))
	}
	return all, f.done()
}

// actOf compares an entry with the one that it replaces.
func actOf(old, e *Entry) (act Act) {
	set := func(a Act, on bool) {
		if on {
			act |= a
		}
	}
	switch e.State {
	case Rejected:
		return Refused
	case InDoubt:
		return Doubted
	case NotMade:
		return 0
	}
	made := old.State != Created && old.State != Partial
	set(Made, made)
	set(Linked, e.ExternalID != "" && e.ExternalID != old.ExternalID)
	if !made {
		set(StatusSent, e.Status != old.Status)
		set(DataSent, e.Digest != old.Digest || !slices.Equal(e.Content, old.Content))
		set(Refused, e.Refused != (Digest{}) && e.Code >= 400)
		set(DataSent, act == 0 && old.Unsettled != "" && e.Unsettled == "" && e.Reason == "")
	}
	return act
}

// History returns what was done with a key, in order: its first event, the last
// ones, and what a person decided or a list brought. It is empty for a key that is
// not known. Times of sends that got no answer are those of the send.
func (d *DB) History(key string) (all []Event, err error) {
	err = d.read("read history", func(r *reading) error {
		for _, record := range [][]byte{r.entry(key), r.tx.Bucket(inIntents).Get([]byte(key))} {
			if record == nil {
				continue
			}
			var e Entry
			t, err := d.words.decode(key, record, &e)
			if err != nil {
				return err
			}
			past, err := d.words.events(t.past)
			if err != nil {
				return err
			}
			all = append(append(all, past...), eventOf(&e, t.act))
		}
		return nil
	})
	return all, err
}
