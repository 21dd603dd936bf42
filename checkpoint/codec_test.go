package checkpoint_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"leadferry/checkpoint"
)

// If you change the bytes of records or notes, raise [checkpoint.Format] and copy what the test prints to here.
func TestEncodingChangesOnlyWithTheFormatNumber(t *testing.T) {
	at := time.UnixMilli(1_770_000_000_123).UTC()
	e := checkpoint.Entry{
		Key: "k", State: checkpoint.InDoubt, LeadID: "lead-1", Organization: "0b1c2d3e-0000-4000-8000-000000000001",
		Location: "North", Status: "escalated", ExternalID: "k", Digest: checkpoint.Digest{1}, Code: 500,
		Content: make([]checkpoint.ContentDigest, 2), Reason: "timeout", File: "leads.csv", Line: 7, Locator: "l-1",
		WantLink: "crm-2", RequestID: "id-1", Run: "run", Updated: at, Seq: 9, Unsettled: "run-2", Sought: "open",
		Refused: checkpoint.Digest{2}, Synced: true, Confirmed: at,
		Seen: checkpoint.Sight{At: at, Status: "closedWon", Organization: "org", Against: "open", Content: true},
	}
	past := []checkpoint.Event{e.Event(checkpoint.Doubted).Past()}
	k := &checkpoint.Kept{Entry: e, Act: checkpoint.Made, Past: past, Prior: &checkpoint.Kept{Entry: e}}
	known := checkpoint.EncodeKey(checkpoint.KeptKey{Entry: &checkpoint.Kept{Entry: e}, Intent: k})
	decision := checkpoint.KeptDecision{At: at, Send: k, Against: []checkpoint.Evidence{{Text: "x", Found: at}}}
	notes := checkpoint.Encode([]any{decision, checkpoint.RunInfo{ID: "run", Started: at}, checkpoint.Kind{Key: "{id}"}})
	lineage := checkpoint.Lineage{Machine: "m", Ancestors: []checkpoint.Ancestor{{ID: "a"}}, Answered: []string{"b"}}
	sum := sha256.Sum256(append(append(known, notes...), lineage.Note().Value...))
	if got := fmt.Sprintf("%d %x", checkpoint.Format, sum[:8]); got != "22 c323fc3dd2cab66f" {
		t.Errorf("the encoding is now %s: did you raise checkpoint.Format?", got)
	}
}
