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
	Send             // Doubted: what was sent, where that is still known
}

// Send is what a person needs to find the lead of a send that was in doubt.
type Send struct {
	File                  string
	Line                  int
	Organization, Locator string // the one asked for
}

// mostPast is how many events are kept before the one that the entry shows: the
// first, the last ones, and, before others, those that tell whose word its lead ID is.
const mostPast = 7

func eventOf(e *Entry, act Act) Event {
	ev := Event{Act: act, State: e.State, Status: e.Status, Code: e.Code, Run: e.Run, At: e.Updated}
	if e.State == InDoubt {
		ev.Send = Send{e.File, e.Line, e.Organization, e.Locator}
	}
	return ev
}

// without is an event as a past holds it.
func (ev Event) without() Event {
	ev.Send = Send{}
	return ev
}

// givesLead are the acts that brought a lead ID: of the service, and of people.
const (
	ofPeople  = Adopted | Decided
	givesLead = Made | ofPeople
)

// appendEvent adds an event to a past; beyond mostPast the oldest one but the first goes
// that did not bring a lead ID, or else the second.
func (w *words) appendEvent(past []byte, ev Event) []byte {
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
// ones, and what a person decided or a list brought, with every send that was in doubt
// when it was decided about. It is empty for a key that is not known. Times of sends that
// got no answer are those of the send.
func (d *DB) History(key string) (all []Event, err error) {
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
func (w *words) eventsOf(key string, records [][]byte) (all []Event, err error) {
	for i, record := range records {
		if len(record) == 0 {
			continue
		}
		var e Entry
		t, err := w.decode(key, record, &e)
		if err != nil {
			return nil, err
		}
		past, err := w.events(t.past)
		if err != nil {
			return nil, err
		}
		for _, ev := range append(past, eventOf(&e, t.act)) {
			at := slices.IndexFunc(all, func(other Event) bool { return other.without() == ev.without() })
			later := slices.IndexFunc(all, func(other Event) bool { return other.At.After(ev.At) })
			switch {
			case at >= 0 && all[at].Send == Send{}:
				all[at] = ev
			case at >= 0:
			case i > 1 && later >= 0:
				all = slices.Insert(all, later, ev)
			default:
				all = append(all, ev)
			}
		}
	}
	return all, nil
}
