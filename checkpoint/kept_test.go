package checkpoint

import (
	"testing"
	"time"
)

// A long history keeps its first event and the last ones, in order.
func TestHistoryIsBounded(t *testing.T) {
	var past []Event
	for i := range 100 {
		past = addPast(past, Event{Act: StatusSent, State: Created, Status: "closedWon", Code: 200, Run: "run", At: time.UnixMilli(int64(i)).UTC()})
	}
	if len(past) != MostPast {
		t.Fatalf("%d events", len(past))
	}
	for i, ev := range past {
		want := int64(100 - MostPast + i)
		if i == 0 {
			want = 0
		}
		if got := ev.At.UnixMilli(); got != want {
			t.Errorf("event %d is number %d, want %d", i, got, want)
		}
	}
}

// Encode lets tests of package checkpoint_test encode a witness.
func (w *Witness) Encode() []byte { return w.encode() }
