package bolt

import (
	"context"
	"strings"
	"testing"

	"leadferry/checkpoint"
)

// accepted is a copy of a checkpoint that was taken although a newer one was here.
func accepted(t *testing.T, prepare func(*Store)) *Store {
	t.Helper()
	path := newPath(t)
	d := opened(t, path, Options{})
	prepare(d)
	older := killed(t, path)
	if err := claim(d, intentOf("later", 1)); err != nil {
		t.Fatal(err)
	}
	d.Close()
	restore(t, older, path)
	if d, err := Open(path, target(), Options{Accept: true}); err != nil || d.Close() != nil {
		t.Fatal(err)
	}
	return opened(t, path, Options{})
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
		if _, err := d.Resolve(context.Background(), []checkpoint.Decision{{Key: key}}); err != nil {
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
		if _, err := d.Forget(context.Background(), []string{"gone"}, false); err != nil {
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
	if _, err := d.Resolve(context.Background(), []checkpoint.Decision{{Key: "decided"}}); err != nil {
		t.Fatal(err)
	}
	if err := claim(d, intentOf("sent", 1)); err != nil {
		t.Fatal(err)
	}
	if freed, err := d.AcceptLoss(context.Background()); freed != 2 || err != nil {
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

// Once as many leads were taken over, by a list or a decision, as are missing, nobody is told of leads that are missing.
func TestWhatIsMissingIsCountedDown(t *testing.T) {
	d := accepted(t, func(*Store) {})
	says := func(want string) {
		t.Helper()
		if got := d.Info().Missing; !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	says("1 lead that it knew is missing")
	list := checkpoint.ListOf(checkpoint.Entry{Key: "later", LeadID: "lead-9"})
	for range 2 { // the second time it is known
		if _, err := d.Adopt(context.Background(), list); err != nil {
			t.Fatal(err)
		}
		says("as many leads as were missing have been taken over")
	}
	if d.Close() != nil {
		t.Fatal("not closed")
	}
	d = opened(t, d.path, Options{})
	says("as many leads as were missing have been taken over")
	if !d.Info().Incomplete {
		t.Error("complete, though nobody has said so")
	}
}
