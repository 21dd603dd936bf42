package bolt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/checkpoint"
)

func salvaged(t *testing.T, path string) (all []checkpoint.Entry, r Salvaged) {
	t.Helper()
	r, err := Salvage(path, func(e checkpoint.Entry) error { all = append(all, e); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return all, r
}

// Of a file that is whole everything is read, and nothing else.
func TestSalvageReadsAGoodFile(t *testing.T) {
	path := newPath(t)
	d := seeded(t, path, 400)
	if _, err := checkpoint.Forget(context.Background(), d, []string{"key-00003"}, false); err != nil {
		t.Fatal(err)
	}
	held, err := contents(d)
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	got, r := salvaged(t, path)
	if diff := cmp.Diff(held, got); diff != "" {
		t.Errorf("(-held +salvaged):\n%s", diff)
	}
	if r.Forgotten != 1 || r.Keys[checkpoint.Created] != 399 || r.Keys[checkpoint.InDoubt] != 3 {
		t.Errorf("%+v", r)
	}
}

// A damaged file is read by any name by which it is opened.
func TestSalvageFollowsTheNameOfAFile(t *testing.T) {
	path, name := newPath(t), newPath(t)
	d := seeded(t, path, 4)
	if err := errors.Join(d.Close(), os.Symlink(path, name)); err != nil {
		t.Fatal(err)
	}
	if all, r := salvaged(t, name); len(all) != 10 {
		t.Errorf("%d keys, %+v", len(all), r)
	}
}

// A key may have the name, or the length, of what a file tells of itself. fault 22
func TestSalvageTellsKeysFromOtherRecords(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	for i, key := range []string{"header", "note lineage", "tally", "moving", "incomplete", "erase", "0001", "00000001", "0000000000000001", "note 0000000000000001"} {
		errs := []error{claim(d, intentOf(key, i))}
		switch i % 4 {
		case 1:
			errs = append(errs, resolve(d, checkpoint.Decision{Key: key}))
		case 2:
			_, err := settle(d, checkpoint.Entry{Key: key, State: checkpoint.Rejected, Code: 422, Reason: "refused"})
			errs = append(errs, err)
		default:
			_, err := settle(d, createdEntry(key, fmt.Sprintf("lead-%d", i), i))
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	held, err := contents(d)
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	got, _ := salvaged(t, path)
	if diff := cmp.Diff(held, got); diff != "" {
		t.Errorf("(-held +salvaged):\n%s", diff)
	}
	if _, err := Repair(path, newPath(t), target(), nil, false, Options{}); err != nil {
		t.Errorf("repair: %v", err)
	}
}

// Of a damaged file every record whose bytes are whole is read as it was; a doubt
// that was settled may come back, never a settled row as unknown or with another
// lead. faults 19, 22
func TestSalvageReadsWhatIsWhole(t *testing.T) {
	file, held := crashed(t)
	known := make(map[string]checkpoint.Entry)
	for _, e := range held {
		known[e.Key] = e
	}
	path, random := newPath(t), rand.New(rand.NewPCG(5, 5))
	page := os.Getpagesize()
	for round := range 30 {
		broken := append([]byte(nil), file...)
		switch round % 3 {
		case 0: // a page is lost
			at := page * random.IntN(len(broken)/page)
			clear(broken[at : at+page])
		case 1:
			for range 50 {
				broken[random.IntN(len(broken))] ^= byte(1 + random.IntN(255))
			}
		case 2:
			broken = broken[:random.IntN(len(broken))]
		}
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		got, _ := salvaged(t, path)
		for _, e := range got {
			was, ok := known[e.Key]
			if e.State == checkpoint.InDoubt && (!ok || was.State != checkpoint.InDoubt) {
				continue // an older record: a person looks
			}
			e.Organization, e.Location, e.Run, e.File = was.Organization, was.Location, was.Run, was.File // words may be lost
			e.Content, e.Reason = was.Content, was.Reason
			if !reflect.DeepEqual(was, e) {
				t.Fatalf("round %d: wrong read:\n%s", round, cmp.Diff(was, e))
			}
		}
		if round%3 == 0 && len(got) < len(held)-100 {
			t.Errorf("round %d: %d of %d keys read", round, len(got), len(held))
		}
	}
}

func TestSalvageRefuses(t *testing.T) {
	path := newPath(t)
	ignore := func(checkpoint.Entry) error { return nil }
	if _, err := Salvage(path, ignore); !errors.Is(err, checkpoint.ErrMissing) {
		t.Errorf("missing: %v", err)
	}
	seeded(t, path, 3)
	_, err := Salvage(path, ignore)
	checkRefusal(t, err, checkpoint.ErrLocked)
	stop := errors.New("enough")
	if _, err := Salvage(killed(t, path), func(checkpoint.Entry) error { return stop }); err != stop {
		t.Errorf("%v", err)
	}
	empty := newPath(t)
	content("")(t, empty)
	if got, _ := salvaged(t, empty); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
