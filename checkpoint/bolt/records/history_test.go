package records

import (
	"testing"
	"time"

	"leadferry/checkpoint"
)

// The first and the last events are kept, in order, and a row stays small.
func TestHistoryIsBounded(t *testing.T) {
	w := NewWords()
	var past []byte
	for i := range 100 {
		past = w.AppendEvent(past, checkpoint.Event{Act: checkpoint.StatusSent, State: checkpoint.Created, Status: "closedWon", Code: 200, Run: "run", At: time.UnixMilli(1_770_000_000_000 + int64(i)).UTC()})
	}
	events, err := w.Events(past)
	if err != nil || len(events) != checkpoint.MostPast {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, ev := range events {
		want := int64(100 - checkpoint.MostPast + i)
		if i == 0 {
			want = 0
		}
		if got := ev.At.UnixMilli() - 1_770_000_000_000; got != want {
			t.Errorf("event %d is number %d, want %d", i, got, want)
		}
	}
	if len(past) > 120 {
		t.Errorf("%d bytes", len(past))
	}
}
