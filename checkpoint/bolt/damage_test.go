package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
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
	"leadferry/internal/rowkey"
	"leadferry/internal/testsupport/must"
)

// The layout of bbolt's pages, as far as these tests need it to damage them.
const (
	headSize    = 16 // bytes: page number, flags, number of elements, number of overflow pages
	elementSize = 16
	branchKind  = 0x01
	leafKind    = 0x02
)

var endian = binary.NativeEndian

func elementsOf(page []byte) int { return int(endian.Uint16(page[10:])) }
func keyOf(branch []byte, i int) []byte {
	e := branch[headSize+i*elementSize:]
	return e[endian.Uint32(e):][:endian.Uint32(e[4:])]
}

// meta is the newest meta page: the root page of all buckets, the page of the free list, the number of the commit, the
// least length of the file, and the page size.
type meta struct{ root, free, commit, end, page int }

func metaOf(t *testing.T, file []byte) (newest meta) {
	t.Helper()
	page := os.Getpagesize()
	for _, at := range []int{headSize, page + headSize} {
		number := func(i int) int { return int(endian.Uint64(file[at+i:])) }
		if number(48) >= newest.commit {
			newest = meta{root: number(16), free: number(32), commit: number(48), end: number(40) * page, page: page}
		}
	}
	return newest
}

// contents reads everything that a checkpoint holds.
func contents(d *Store) (all []checkpoint.Entry, err error) {
	err = checkpoint.Each(context.Background(), d, checkpoint.Filter{State: checkpoint.Unknown}, func(e checkpoint.Entry) error { all = append(all, e); return nil })
	return all, err
}

// crashed returns the bytes of a checkpoint after a kill, and its entries.
func crashed(t *testing.T) (file []byte, held []checkpoint.Entry) {
	t.Helper()
	path := newPath(t)
	d := seeded(t, path, 400)
	must.Do(t, checkpoint.PutRun(context.Background(), d, checkpoint.RunInfo{ID: "one more", Command: "import"}))
	must.Do(t, resolve(d, checkpoint.Decision{Key: "doubt-0"}))
	held, err := contents(d)
	must.Do(t, err)
	return read(t, path), held
}

// reopen writes these bytes to path and opens them as a checkpoint.
func reopen(t *testing.T, path string, file []byte) (*Store, error) {
	t.Helper()
	content(string(file))(t, path)
	return Open(path, target(), inOwnProcess(Options{ReadOnly: true}))
}

// ended returns the bytes of a checkpoint closed in order, and its entries: enough for trees with branch pages.
func ended(t *testing.T) (file []byte, held []checkpoint.Entry) {
	t.Helper()
	path := newPath(t)
	d := seeded(t, path, 400)
	must.Do(t, errors.Join(checkpoint.PutRun(context.Background(), d, checkpoint.RunInfo{ID: "r", Command: "import"}), resolve(d, checkpoint.Decision{Key: "doubt-0"})))
	forget(t, d, "key-00017")
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 30 {
		together(t, d, checkpoint.Settle, createdEntry("late-"+strconv.Itoa(37*i%100), uuid(random), i))
	}
	held, err := contents(d)
	must.Do(t, errors.Join(err, d.Close()))
	return read(t, path), held
}

func patch(t *testing.T, path string, at int, b byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must.Do(t, err)
	if _, err := f.WriteAt([]byte{b}, int64(at)); err != nil {
		t.Fatal(err)
	}
	must.Do(t, f.Close())
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must.Do(t, err)
	return b
}

// checkRefusal wants an OpenError with a text and a path that wraps one of the kinds.
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

// A flipped byte is noticed before anything can be changed, or it is in an unused place and everything reads as before:
// after a kill, after an end in order, and if the file is opened for writing. faults 21, 22, m18, m19, m20
func TestFlippedByteIsNoticedOrHarmless(t *testing.T) {
	skipIfShort(t)
	for name, test := range map[string]struct {
		source func(*testing.T) (file []byte, held []checkpoint.Entry)
		flips  int
		o      Options
		heads  bool // flip only bytes in the headers of the first pages
	}{
		"after a kill":          {crashed, 10, Options{ReadOnly: true}, false},
		"in a page's header":    {crashed, 40, Options{ReadOnly: true}, true},
		"after an end in order": {ended, 10, Options{ReadOnly: true}, false},
		"while the run begins":  {ended, 8, Options{}, false},
		"told to check":         {ended, 8, Options{ReadOnly: true, Check: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			file, held := test.source(t)
			path, random := newPath(t), rand.New(rand.NewPCG(3, 4))
			noticed := 0
			if *thorough {
				test.flips *= 20
			}
			for i := range test.flips {
				if i == 0 || !test.o.ReadOnly {
					content(string(file))(t, path)
				}
				at, flip := random.IntN(len(file)), byte(1+random.IntN(255))
				if test.heads {
					at = random.IntN(6)*os.Getpagesize() + random.IntN(headSize)
				}
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

// flipNoticed opens the file and reports whether it was refused. If not, all entries must be right.
func flipNoticed(t *testing.T, path string, held []checkpoint.Entry, o Options) bool {
	t.Helper()
	d, err := Open(path, target(), inOwnProcess(o))
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
	must.Do(t, d.Close())
	return false
}

// A file cut to any length is refused with a reason. faults 17, 19, m17, m19
func TestCutFileIsRefused(t *testing.T) {
	skipIfShort(t)
	for name, source := range map[string]func(*testing.T) (file []byte, held []checkpoint.Entry){"after a kill": crashed, "after an end in order": ended} {
		t.Run(name, func(t *testing.T) {
			file, _ := source(t)
			path, random := newPath(t), rand.New(rand.NewPCG(5, 6))
			end := metaOf(t, file).end
			lengths := []int{0, 1, 79, 80, 4095, 4096, 8192, end - 1}
			for range 40 {
				lengths = append(lengths, random.IntN(end))
			}
			for _, n := range lengths {
				_, err := reopen(t, path, file[:n])
				if err == nil {
					t.Fatalf("opened after a cut to %d bytes", n)
				}
				checkRefusal(t, err, checkpoint.ErrDamaged)
			}
		})
	}
}

// Nonsense pages may crash the process that checks them, or it finds them. Both refuse the file. Examples are a free
// page in use, a page that leads to itself, and one that claims to be four billion pages long. fault m19
func TestNonsensePagesAreRefused(t *testing.T) {
	skipIfShort(t)
	file, _ := crashed(t)
	m := metaOf(t, file)
	free, branch := m.free*m.page, 0
	count := endian.Uint16(file[free+10:])
	last := free + headSize + 8*int(count)
	for at := 2 * m.page; at < len(file); at += m.page {
		if endian.Uint16(file[at+8:]) == branchKind && branch == 0 && inUse(file, m, uint64(at/m.page)) {
			branch = at
		}
	}
	if count == 0 || count > 400 || branch == 0 {
		t.Fatalf("%d free pages, a branch at %d: this test needs 1 to 400 and a branch", count, branch)
	}
	for name, change := range map[string]func(b []byte){
		"a free page is in use": func(b []byte) {
			endian.PutUint64(b[last:], uint64(m.root))
			endian.PutUint16(b[free+10:], count+1)
		},
		"a free page twice": func(b []byte) {
			endian.PutUint64(b[last:], endian.Uint64(b[last-8:]))
			endian.PutUint16(b[free+10:], count+1)
		},
		"a free page is lost": func(b []byte) { endian.PutUint16(b[free+10:], count-1) },
		"a page leads to itself": func(b []byte) {
			endian.PutUint64(b[branch+headSize+8:], uint64(branch/m.page))
		},
		"a page is very long": func(b []byte) { endian.PutUint32(b[m.root*m.page+12:], 1<<32-1) },
	} {
		t.Run(name, func(t *testing.T) {
			broken := bytes.Clone(file)
			change(broken)
			_, err := reopen(t, newPath(t), broken)
			checkRefusal(t, err, checkpoint.ErrDamaged)
		})
	}
}

// inUse says that a page is not on the list of free ones.
func inUse(file []byte, m meta, page uint64) bool {
	at := m.free * m.page
	for i := range int(endian.Uint16(file[at+10:])) {
		if endian.Uint64(file[at+headSize+8*i:]) == page {
			return false
		}
	}
	return true
}

// The check finds records that are each whole but contradict each other.
func TestCheckFindsWhatChecksumsCannot(t *testing.T) {
	skipIfShort(t)
	faults := map[string]func(*bbolt.Tx) error{
		"entry gone":  func(tx *bbolt.Tx) error { return tx.Bucket(inEntries).Delete([]byte("key-00007")) },
		"intent gone": func(tx *bbolt.Tx) error { return tx.Bucket(inIntents).Delete([]byte("doubt-1")) },
		"lead moved": func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket(inLeads).Cursor().First()
			return tx.Bucket(inLeads).Put(k, []byte("key-00399"))
		},
		"leads exchanged": func(tx *bbolt.Tx) error {
			b := tx.Bucket(inLeads)
			c := b.Cursor()
			k1, v1 := c.First()
			k2, v2 := c.Next()
			one, two := bytes.Clone(v1), bytes.Clone(v2)
			return errors.Join(b.Put(bytes.Clone(k1), two), b.Put(bytes.Clone(k2), one))
		},
		"note changed": func(tx *bbolt.Tx) error {
			k, v := tx.Bucket(inNotes).Cursor().First()
			v = bytes.Clone(v)
			v[3]++
			return tx.Bucket(inNotes).Put(bytes.Clone(k), v)
		},
		"lead too many": func(tx *bbolt.Tx) error { return tx.Bucket(inLeads).Put([]byte("\x03ab"), []byte("key-00001")) },
		"link gone": func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket(inLinks).Cursor().First()
			return tx.Bucket(inLinks).Delete(k)
		},
		"bucket gone": func(tx *bbolt.Tx) error { return tx.DeleteBucket(inNotes) },
		"header gone": func(tx *bbolt.Tx) error { return tx.Bucket(inMeta).Delete(headerKey) },
		"record swapped": func(tx *bbolt.Tx) error {
			b := tx.Bucket(inEntries)
			return b.Put([]byte("key-00001"), b.Get([]byte("key-00002")))
		},
		"bucket in place": func(tx *bbolt.Tx) error { _, err := tx.Bucket(inIntents).CreateBucket([]byte("b")); return err },
	}
	source := newPath(t)
	d := seeded(t, source, 400)
	must.Do(t, errors.Join(checkpoint.PutRun(t.Context(), d, checkpoint.RunInfo{ID: "r"}), d.Close()))
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			path := killed(t, source)
			db, err := bbolt.Open(path, 0o600, nil)
			must.Do(t, err)
			must.Do(t, errors.Join(db.Update(fault), db.Close()))
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

// Damage that appears while the file is open is an error from then on and never a wrong answer. faults 22, m20
func TestDamageUnderOpenFileEndsEverything(t *testing.T) {
	path := newPath(t)
	seeded(t, path, 400)
	copied := killed(t, path)
	d := open(t, copied, Options{})
	file, err := os.ReadFile(copied)
	must.Do(t, err)
	for at := 0; at+12 < len(file); at++ { // the record is behind the key
		if string(file[at:at+9]) == "key-00003" {
			file[at+11] ^= 1
		}
	}
	f, err := os.OpenFile(copied, os.O_WRONLY, 0)
	must.Do(t, err)
	if _, err := f.WriteAt(file, 0); err != nil {
		t.Fatal(err)
	}
	f.Close()
	first := lookupAll(d, []string{"key-00003"}, make([]checkpoint.Entry, 1))
	if !errors.Is(first, checkpoint.ErrDamaged) {
		t.Fatalf("look-up: %v", first)
	}
	if said, _, _ := strings.Cut(first.Error(), "\n"); strings.Count(said, copied) != 1 || !strings.Contains(first.Error(), ": is damaged: ") {
		t.Errorf("the message names the file not once, or not as damaged: %v", first)
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

// The check accepts every state, odd IDs, keys that are IDs, and entries that are still in the log.
func TestCheckPassesWhatIsRight(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	random := rand.New(rand.NewPCG(8, 9))
	for i := range 300 {
		key := []string{uuid(random), string(rune('a' + i%26)), "", "key"}[i%4] + string(make([]byte, i%7)) + uuid(random)[:8]
		id := []string{"", key, uuid(random), uuid(random)[:1+i%30], string(make([]byte, rowkey.Longest+i%3))}[i%5]
		e := createdEntry(key, id, i)
		e.ExternalID = []string{"", key, uuid(random), string(make([]byte, rowkey.Longest+i%3))}[i%4]
		together(t, d, checkpoint.Settle, e)
		if i%10 == 0 {
			must.Do(t, claim(d, intentOf("doubt"+key, i)))
		}
	}
	together(t, d, checkpoint.Settle, checkpoint.Entry{Key: "sent again", State: checkpoint.Rejected, Code: 422})
	if err := errors.Join(claim(d, intentOf("sent again", 1)), d.Close()); err != nil { // it is in both trees
		t.Fatal(err)
	}
	d = opened(t, path, Options{})
	if err := errors.Join(checkPages(d.bolt), d.bolt.View(func(tx *bbolt.Tx) error { return d.checkRecords(tx, true) })); err != nil {
		t.Error(err)
	}
}

// faults 21, 23, m18: an old copy that was put back is older than its witness says. So is a file whose last commit is
// hidden by a damaged page. If a person accepts it, it becomes incomplete and gets a new ID.
func TestOlderCopyIsOlderThanItsWitness(t *testing.T) {
	for name, older := range map[string]func(t *testing.T, before, now []byte) []byte{
		"a copy put back": func(_ *testing.T, before, _ []byte) []byte { return before },
		"a damaged page": func(t *testing.T, _, now []byte) []byte {
			m := metaOf(t, now)
			now[m.commit%2*m.page+headSize+20] ^= 1
			return now
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, restored := newPath(t), newPath(t)
			d := seeded(t, path, 5)
			must.Do(t, checkpoint.PutRun(t.Context(), d, checkpoint.RunInfo{ID: "r"}))
			ws := attested(t, d).Witnesses
			before := read(t, path)
			must.Do(t, claim(d, intentOf("later", 1)))
			now := read(t, path)
			must.Do(t, d.Close())
			content(string(older(t, before, now)))(t, restored)
			d = opened(t, restored, Options{AnyPlace: true})
			id := d.Info().ID
			v, err := checkpoint.Judge(t.Context(), d, ws, true, nil)
			must.Do(t, err)
			checkRefusal(t, v.Refuse(""), checkpoint.ErrRolledBack)
			if took, err := checkpoint.TakeOlder(t.Context(), d, ws, id, ""); !took || err != nil {
				t.Fatalf("took %v, %v", took, err)
			}
			d.Close()
			d = opened(t, restored, Options{AnyPlace: true})
			if v, err = checkpoint.Judge(t.Context(), d, ws, true, nil); err != nil || v.Refuse("") != nil {
				t.Errorf("taken: %v, %v", v.Refuse(""), err)
			}
			if e := lookup(t, d, "later"); e.State != checkpoint.Unknown || !mayLack(d, &e) || d.Info().ID == id {
				t.Errorf("later %+v, ID %s", e, d.Info().ID)
			}
			if e := lookup(t, d, "key-00000"); mayLack(d, &e) {
				t.Errorf("%+v may be missing", e)
			}
		})
	}
}
