package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.etcd.io/bbolt"
)

// History is a lead and how it became what it is.
type History struct {
	Lead
	Changes []Change // the last 30, the oldest first
	Dropped int      // changes before those
}

// record is a History as it is stored; its changes are taken apart only to be shown.
type record struct {
	Lead
	Changes []jsontext.Value `json:",omitempty"`
	Dropped int              `json:",omitzero"`
}

// Change is what one update changed in a lead.
type Change struct {
	At     time.Time
	Values []ChangedValue
}

// ChangedValue is one value before and after, 500 bytes of each at most. Field is Status, ExternalID or, for a key of
// Content, its name behind "Content.".
type ChangedValue struct{ Field, From, To string }

const (
	mostChanges = 30
	mostText    = 500 // bytes of a value
)

// add takes down what an update changed; nothing, where nothing did.
func (r *record) add(now time.Time, before Lead) error {
	values := changed(&before, &r.Lead)
	if len(values) == 0 {
		return nil
	}
	c, err := json.Marshal(Change{now.UTC(), values})
	r.Changes = append(r.Changes, c)
	if n := len(r.Changes) - mostChanges; n > 0 {
		r.Changes, r.Dropped = r.Changes[n:], r.Dropped+n
	}
	return err
}

// changed says what differs between two states of a lead, in the order of their fields.
func changed(before, after *Lead) (values []ChangedValue) {
	differ := func(field, from, to string) {
		if from != to {
			values = append(values, ChangedValue{field, cut(from, mostText), cut(to, mostText)})
		}
	}
	differ("Status", before.Status, after.Status)
	differ("ExternalID", before.ExternalID, after.ExternalID)
	for _, key := range slices.Sorted(maps.Keys(after.Content)) {
		differ("Content."+cut(key, mostText), TextOf(before.Content[key]), TextOf(after.Content[key]))
	}
	return values
}

// TextOf returns a value of a lead's Content as text: that of a string, else JSON; "" for what is not there.
func TextOf(value any) string {
	if text, is := value.(string); is || value == nil {
		return text
	}
	b, _ := json.Marshal(value, json.Deterministic(true)) // it was read from JSON
	return string(b)
}

// History returns a lead and how it changed; nil for a lead that is not known.
func (s *Server) History(id string) (h *History, err error) {
	err = s.store.View(func(tx *bbolt.Tx) error {
		v := tx.Bucket(leadBucket).Get([]byte(id))
		if v == nil {
			return nil
		}
		h = &History{}
		return json.Unmarshal(v, h, exactNumbers)
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox: read a lead: %w", err)
	}
	return h, nil
}
