package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"leadferry/checkpoint"
)

func whatUpdatesLeaveIsKept(t *testing.T, b Backend) {
	at := time.UnixMilli(1_770_000_000_789).UTC()
	d := b.open(t)
	for i, change := range []func(*checkpoint.Entry){
		func(e *checkpoint.Entry) { e.Unsettled = "run" },
		func(e *checkpoint.Entry) { e.Unsettled, e.Sought = "run", "onHold" },
		func(e *checkpoint.Entry) { e.Refused = checkpoint.Digest{7} },
		func(e *checkpoint.Entry) { e.Synced = true },
		func(e *checkpoint.Entry) { e.Confirmed = at },
		func(e *checkpoint.Entry) {
			e.Seen = checkpoint.Sight{At: at, Status: "closedWon", Organization: "org-9"}
		},
		func(e *checkpoint.Entry) { e.Seen = checkpoint.Sight{At: at, Kept: true} },
		func(e *checkpoint.Entry) {
			e.Seen = checkpoint.Sight{At: at, Status: "a status of tomorrow", Kept: true, Against: "another one"}
		},
		func(e *checkpoint.Entry) {
			e.Unsettled, e.Refused, e.Synced, e.Confirmed = "run", checkpoint.Digest{1}, true, at
			e.Seen = checkpoint.Sight{At: at, Status: "onHold", Organization: "org-1", Kept: true, Against: "open"}
		},
	} {
		e := CreatedEntry(fmt.Sprint("k", i), fmt.Sprint("lead.", i), 3)
		change(&e)
		equal(t, e.Key, settled(t, d, e), Lookup(t, d, e.Key))
	}
}

// Shapes outlive the process and are told from one another.
func shapesAreNoted(t *testing.T, b Backend) {
	d := b.open(t)
	byID := checkpoint.Shape{Columns: []string{"id", "e-mail of Ann", "name"}, Key: "{id}"}
	// the last one says nothing
	for _, s := range []checkpoint.Shape{
		byID, byID,
		{Columns: []string{"other"}, Key: "{other}", Namespace: "dealers"},
		{Key: "{id}"},
	} {
		c := &checkpoint.Change{Kind: checkpoint.Claim, Entry: IntentOf("k", 1), Shape: &s}
		if err := errors.Join(d.Commit(t.Context(), []*checkpoint.Change{c}), c.Err); err != nil {
			t.Fatal(err)
		}
	}
	d = d.again(t)
	for name, test := range map[string]struct {
		shape checkpoint.Shape
		known bool
		kin   []checkpoint.Kin
	}{
		"the same": {shape: checkpoint.Shape{
			Columns: []string{"name", "id", "e-mail of Ann"},
			Key:     "{id}",
		}, known: true},
		"another key": {
			shape: checkpoint.Shape{Columns: byID.Columns, Key: "{name}"},
			kin:   []checkpoint.Kin{{Key: "{id}"}},
		},
		"another namespace": {
			shape: checkpoint.Shape{Columns: byID.Columns, Key: "{id}", Namespace: "a"},
			kin:   []checkpoint.Kin{{Key: "{id}"}},
		},
		"one more column": {shape: checkpoint.Shape{
			Columns: append([]string{"new"}, byID.Columns...),
			Key:     "{id}",
		}, kin: []checkpoint.Kin{{Key: "{id}", Strange: []string{"new"}}}},
		"one less": {
			shape: checkpoint.Shape{Columns: []string{"id", "name"}},
			kin:   []checkpoint.Kin{{Key: "{id}", Lacking: 1}},
		},
		"half of the columns": {
			shape: checkpoint.Shape{Columns: []string{"id", "name", "city"}, Key: "{name}"},
			kin:   []checkpoint.Kin{{Key: "{id}", Strange: []string{"city"}, Lacking: 1}},
		},
		"less than half": {shape: checkpoint.Shape{Columns: []string{"id", "street", "city"}, Key: "{id}"}},
		"no columns":     {shape: checkpoint.Shape{Key: "{name}"}},
		"more than one, of all": {
			shape: checkpoint.Shape{Columns: append([]string{"other"}, byID.Columns...)},
			kin: []checkpoint.Kin{
				{Key: "{other}", Namespace: "dealers", Strange: byID.Columns},
				{Key: "{id}", Strange: []string{"other"}},
			},
		},
	} {
		known, kin, err := checkpoint.Noted(context.Background(), d, test.shape)
		diff := cmp.Diff(test.kin, kin)
		if back := len(kin) == 2 && cmp.Equal([]checkpoint.Kin{kin[1], kin[0]}, test.kin); back { // in no order
			diff = ""
		}
		if err != nil || known != test.known || diff != "" {
			t.Errorf("%s: known %v, %v (-want +got):\n%s", name, known, err, diff)
		}
	}
}
