package bolt

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
)

// contents reads everything that a checkpoint holds.
func contents(d *Store) (all []checkpoint.Entry, err error) {
	err = checkpoint.Each(context.Background(), d, checkpoint.Filter{State: checkpoint.Unknown}, func(e checkpoint.Entry) error { all = append(all, e); return nil })
	return all, err
}

// crashed returns the bytes of a checkpoint that was killed, and what it held.
func crashed(t *testing.T) (file []byte, held []checkpoint.Entry) {
	t.Helper()
	path := newPath(t)
	d := seeded(t, path, 400)
	if err := checkpoint.PutRun(context.Background(), d, checkpoint.RunInfo{ID: "one more", Command: "import"}); err != nil {
		t.Fatal(err)
	}
	if err := resolve(d, checkpoint.Decision{Key: "doubt-0"}); err != nil {
		t.Fatal(err)
	}
	held, err := contents(d)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, path), held
}

// reopen writes a checkpoint as given and opens it.
func reopen(t *testing.T, path string, file []byte) (*Store, error) {
	t.Helper()
	content(string(file))(t, path)
	return Open(path, target(), apart(Options{ReadOnly: true}))
}

// ended returns the bytes of a checkpoint that was closed in order, and what it holds: many keys, so that its trees have branches.
func ended(t *testing.T) (file []byte, held []checkpoint.Entry) {
	t.Helper()
	path := newPath(t)
	d := seeded(t, path, 400)
	if err := errors.Join(checkpoint.PutRun(context.Background(), d, checkpoint.RunInfo{ID: "r", Command: "import"}), resolve(d, checkpoint.Decision{Key: "doubt-0"})); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Forget(context.Background(), d, []string{"key-00017"}, false); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 30 {
		if _, err := settle(d, createdEntry("late-"+strconv.Itoa(37*i%100), uuid(random), i)); err != nil {
			t.Fatal(err)
		}
	}
	held, err := contents(d)
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	return read(t, path), held
}

// A flipped byte is noticed before anything can be changed, or it stood where
// nothing is kept and everything reads as before: after a kill, after an end in
// order, and where it is opened for writing. 350 bytes in all. faults 21, 22, m18, m19, m20
func TestFlippedByteIsNoticedOrHarmless(t *testing.T) {
	for name, test := range map[string]struct {
		source func(*testing.T) (file []byte, held []checkpoint.Entry)
		flips  int
		o      Options
	}{
		"after a kill":          {crashed, 100, Options{ReadOnly: true}},
		"after an end in order": {ended, 150, Options{ReadOnly: true}},
		"while the run begins":  {ended, 50, Options{}},
		"told to check":         {ended, 50, Options{ReadOnly: true, Check: true}},
	} {
		t.Run(name, func(t *testing.T) {
			file, held := test.source(t)
			path, random := newPath(t), rand.New(rand.NewPCG(3, 4))
			noticed := 0
			for i := range test.flips {
				if i == 0 || !test.o.ReadOnly {
					content(string(file))(t, path)
				}
				at, flip := random.IntN(len(file)), byte(1+random.IntN(255))
				patch(t, path, at, file[at]^flip)
				if flipNoticed(t, path, held, test.o) {
					noticed++
				}
				if t.Failed() {
					t.Fatalf("byte %d ^ %d", at, flip)
				}
				patch(t, path, at, file[at])
			}
			if noticed < test.flips/6 {
				t.Errorf("only %d of %d flips noticed", noticed, test.flips)
			}
			content(string(file))(t, path)
			if flipNoticed(t, path, held, test.o) {
				t.Error("the good file is refused")
			}
		})
	}
}

// flipNoticed opens the file and reads it, if that goes; what it shows must be right.
func flipNoticed(t *testing.T, path string, held []checkpoint.Entry, o Options) bool {
	t.Helper()
	d, err := Open(path, target(), apart(o))
	if err == nil && !o.ReadOnly {
		if err = checkpoint.PutRun(context.Background(), d, checkpoint.RunInfo{ID: "first"}); err != nil {
			d.Close()
		}
	}
	if err != nil {
		checkRefusal(t, err, checkpoint.ErrDamaged, checkpoint.ErrVersion)
		return true
	}
	got, err := contents(d)
	if err != nil {
		t.Errorf("opened, then %v", err)
	}
	if !reflect.DeepEqual(held, got) {
		t.Errorf("wrong read:\n%s", cmp.Diff(held, got))
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	return false
}

func patch(t *testing.T, path string, at int, b byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{b}, int64(at)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// Every byte of the first pages and every header of a page is worth a look of
// its own. faults 21, 22
func TestFlippedPageHeaderIsNoticedOrHarmless(t *testing.T) {
	file, held := crashed(t)
	path, page := newPath(t), os.Getpagesize()
	for start := 0; start < len(file) && start < 30*page; start += page {
		for at := start; at < start+headSize; at++ {
			flip := byte(1) << (at % 8)
			file[at] ^= flip
			if d, err := reopen(t, path, file); err == nil {
				if got, err := contents(d); err != nil || !reflect.DeepEqual(held, got) {
					t.Errorf("byte %d: wrong read, %v", at, err)
				}
				d.Close()
			} else {
				checkRefusal(t, err, checkpoint.ErrDamaged)
			}
			file[at] ^= flip
		}
	}
}

// A file cut to any length is refused with a sentence. faults 17, 19, m17, m19
func TestCutFileIsRefused(t *testing.T) {
	for name, source := range map[string]func(*testing.T) (file []byte, held []checkpoint.Entry){"after a kill": crashed, "after an end in order": ended} {
		t.Run(name, func(t *testing.T) { cutsAreRefused(t, source) })
	}
}

func cutsAreRefused(t *testing.T, source func(*testing.T) (file []byte, held []checkpoint.Entry)) {
	file, _ := source(t)
	path, random := newPath(t), rand.New(rand.NewPCG(5, 6))
	end := metaOf(t, file).end
	lengths := []int{0, 1, 79, 80, 4095, 4096, 8192, end - 1}
	for range 200 {
		lengths = append(lengths, random.IntN(end))
	}
	for _, n := range lengths {
		_, err := reopen(t, path, file[:n])
		if err == nil {
			t.Fatalf("opened after a cut to %d bytes", n)
		}
		checkRefusal(t, err, checkpoint.ErrDamaged)
	}
}

// checkRefusal wants an OpenError with a sentence around one of the kinds.
func checkRefusal(t *testing.T, err error, kinds ...error) {
	t.Helper()
	var refused *checkpoint.OpenError
	if !errors.As(err, &refused) || refused.Text == "" || refused.Path == "" {
		t.Fatalf("%T: %v", err, err)
	}
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return
		}
	}
	t.Fatalf("unexpected kind: %v", err)
}

// The check finds records that are whole but do not belong together.
func TestCheckFindsWhatChecksumsCannot(t *testing.T) {
	faults := map[string]func(*bbolt.Tx) error{
		"entry gone":  func(tx *bbolt.Tx) error { return tx.Bucket(inEntries).Delete([]byte("key-00007")) },
		"intent gone": func(tx *bbolt.Tx) error { return tx.Bucket(inIntents).Delete([]byte("doubt-1")) },
		"lead moved": func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket(inLeads).Cursor().First()
			return tx.Bucket(inLeads).Put(k, []byte("key-00399"))
		},
		"lead too many": func(tx *bbolt.Tx) error { return tx.Bucket(inLeads).Put([]byte("\x03ab"), []byte("key-00001")) },
		"link gone": func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket(inLinks).Cursor().First()
			return tx.Bucket(inLinks).Delete(k)
		},
		"word gone":   func(tx *bbolt.Tx) error { return tx.Bucket(inWords).Delete([]byte{0, 0, 0, 1}) },
		"bucket gone": func(tx *bbolt.Tx) error { return tx.DeleteBucket(inNotes) },
		"tally gone":  func(tx *bbolt.Tx) error { return tx.Bucket(inMeta).Delete(tallyKey) },
		"record swapped": func(tx *bbolt.Tx) error {
			b := tx.Bucket(inEntries)
			return b.Put([]byte("key-00001"), b.Get([]byte("key-00002")))
		},
		"bucket in place": func(tx *bbolt.Tx) error { _, err := tx.Bucket(inIntents).CreateBucket([]byte("b")); return err },
	}
	source := newPath(t)
	seeded(t, source, 400).Close() // writes the indexes
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			path := killed(t, source)
			db, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Update(fault), db.Close()); err != nil {
				t.Fatal(err)
			}
			later := killed(t, path)
			_, err = Open(path, target(), Options{})
			checkRefusal(t, err, checkpoint.ErrDamaged)
			d, err := Open(later, target(), Options{})
			if err == nil {
				err = claim(d, intentOf("new", 1))
				d.Close()
			}
			checkRefusal(t, err, checkpoint.ErrDamaged)
		})
	}
}

// Damage that shows only later, because a large file was closed in order, is an
// error from then on and never a wrong answer. faults 22, m20
func TestDamageUnderOpenFileEndsEverything(t *testing.T) {
	path := newPath(t)
	seeded(t, path, 400)
	copied := killed(t, path)
	d, err := Open(copied, target(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at+12 < len(file); at++ { // behind the key stands its record
		if string(file[at:at+9]) == "key-00003" {
			file[at+11] ^= 1
		}
	}
	f, err := os.OpenFile(copied, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(file, 0); err != nil {
		t.Fatal(err)
	}
	f.Close()
	first := lookupAll(d, []string{"key-00003"}, make([]checkpoint.Entry, 1))
	if !errors.Is(first, checkpoint.ErrDamaged) {
		t.Fatalf("look-up: %v", first)
	}
	if said, _, _ := strings.Cut(first.Error(), "\n"); strings.Count(said, copied) != 1 || !strings.Contains(first.Error(), ": is damaged: ") {
		t.Errorf("it is said so: %v", first)
	}
	if err := claim(d, intentOf("new", 1)); err != first {
		t.Errorf("claim after damage: %v", err)
	}
	if err := d.Close(); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("close: %v", err)
	}
	_, err = Open(copied, target(), Options{})
	checkRefusal(t, err, checkpoint.ErrDamaged)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
