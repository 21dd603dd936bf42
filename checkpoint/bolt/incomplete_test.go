package bolt

import (
	"context"
	"errors"
	"strings"
	"testing"

	"leadferry/checkpoint"
)

// accepted is a checkpoint that was taken as incomplete.
func accepted(t *testing.T, prepare func(*Store)) *Store {
	t.Helper()
	path := newPath(t)
	d := opened(t, path, Options{})
	prepare(d)
	before := d.Info()
	if err := errors.Join(renewed(t, d, "leads of an older copy"), d.Close()); err != nil {
		t.Fatal(err)
	}
	d = opened(t, path, Options{AnyPlace: true})
	if i := d.Info(); i.ID == before.ID || !i.Incomplete || len(i.Warnings) != 1 || !strings.Contains(i.Warnings[0], i.Missing) {
		t.Errorf("%+v, before it %s", i, before.ID)
	}
	return d
}

// What the older copy says of a key without a lead may not be true any more: it may have been
// sent since. What is found out afterwards is.
func TestWhatAnIncompleteCheckpointMayLack(t *testing.T) {
	refuse := func(d *Store, key string) {
		t.Helper()
		if _, err := settle(d, checkpoint.Entry{Key: key, State: checkpoint.Rejected, Code: 422}); err != nil {
			t.Fatal(err)
		}
	}
	free := func(d *Store, key string) {
		t.Helper()
		if err := claim(d, intentOf(key, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := checkpoint.Resolve(context.Background(), d, []checkpoint.Decision{{Key: key}}); err != nil {
			t.Fatal(err)
		}
	}
	d := accepted(t, func(d *Store) {
		refuse(d, "refused before")
		free(d, "not made before")
		refuse(d, "known")
		if _, err := settle(d, createdEntry("known", "lead-1", 1)); err != nil {
			t.Fatal(err)
		}
		if err := claim(d, intentOf("doubt before", 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := checkpoint.Forget(context.Background(), d, []string{"gone"}, false); err != nil {
			t.Fatal(err)
		}
	})
	refuse(d, "refused")
	free(d, "not made")
	if err := claim(d, intentOf("doubt", 1)); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{
		"refused before": true, "not made before": true, "doubt before": true, "never seen": true,
		"known": false, "gone": false, "refused": false, "not made": false, "doubt": false,
	} {
		if e := lookup(t, d, key); mayLack(d, &e) != want {
			t.Errorf("%s: may be missing is %v, want %v", key, !want, want)
		}
	}
}

// A loss that a person accepts frees what was held for it, and that alone.
func TestAcceptLossFreesWhatWasHeld(t *testing.T) {
	d := accepted(t, func(d *Store) {
		if _, err := settle(d, checkpoint.Entry{Key: "refused", State: checkpoint.Rejected, Code: 422}); err != nil {
			t.Fatal(err)
		}
	})
	for _, key := range []string{"refused", "new", "decided"} {
		if _, err := settle(d, checkpoint.Entry{Key: key, State: checkpoint.InDoubt, Reason: checkpoint.ReasonIncomplete}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := checkpoint.Resolve(context.Background(), d, []checkpoint.Decision{{Key: "decided"}}); err != nil {
		t.Fatal(err)
	}
	if err := claim(d, intentOf("sent", 1)); err != nil {
		t.Fatal(err)
	}
	if freed, err := checkpoint.AcceptLoss(context.Background(), d); freed != 2 || err != nil {
		t.Errorf("%d freed, %v", freed, err)
	}
	path := d.path
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = opened(t, path, Options{})
	if d.Info().Incomplete || len(d.Info().Warnings) != 0 {
		t.Errorf("still incomplete: %q", d.Info().Warnings)
	}
	for key, want := range map[string]checkpoint.State{"refused": checkpoint.Rejected, "new": checkpoint.Unknown, "decided": checkpoint.NotMade, "sent": checkpoint.InDoubt} {
		if e := lookup(t, d, key); e.State != want || mayLack(d, &e) {
			t.Errorf("%s: %v", key, e.State)
		}
	}
}
