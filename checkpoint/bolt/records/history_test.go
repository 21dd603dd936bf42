package records

import (
	"slices"
	"testing"
	"time"

	"leadferry/checkpoint"
)

// A history comes back as it was, and a row with one stays small.
func TestHistoryIsSmall(t *testing.T) {
	w := NewWords()
	k := &checkpoint.Kept{Entry: checkpoint.Entry{Key: "k", State: checkpoint.Created}}
	for i := range checkpoint.MostPast {
		k.Past = append(k.Past, checkpoint.Event{Act: checkpoint.StatusSent, State: checkpoint.Created, Status: "closedWon", Code: 200, Run: "run", At: time.UnixMilli(1_770_000_000_000 + int64(i)).UTC()})
	}
	again, err := w.Kept("k", w.AppendKept(nil, k))
	if err != nil || !slices.Equal(again.Past, k.Past) {
		t.Errorf("%+v, %v", again, err)
	}
	if past := w.appendEvents(k.Past); len(past) > 120 {
		t.Errorf("%d bytes", len(past))
	}
}
