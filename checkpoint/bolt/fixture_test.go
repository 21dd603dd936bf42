package bolt

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"leadferry/checkpoint"
	"leadferry/checkpoint/storetest"
	"leadferry/internal/testsupport/memory"
	"leadferry/internal/testsupport/must"
)

// TestMain lets the test binary check files as leadferry does, in a process of its own.
func TestMain(m *testing.M) {
	if code, is := CheckFile(os.Args, os.Stdout); is {
		os.Exit(code)
	}
	os.Setenv("TMPDIR", cmp.Or(os.Getenv("TMPDIR"), memory.Folder()))
	os.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector lets each process sleep a second at its end
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue && !*thorough {
		f.Value.Set("40")
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("go.etcd.io/bbolt.(*Tx).check")) // see checkPages
}

// inOwnProcess sets that a separate process checks the file.
func inOwnProcess(o Options) Options {
	o.checker = []string{os.Args[0], checkWord}
	return o
}

func target() checkpoint.Target {
	return checkpoint.Target{BaseURL: "https://api.example.com", LeadsURL: "https://leads.example.com", TrunkID: "trunk-1"}
}

var (
	intentOf, createdEntry    = storetest.IntentOf, storetest.CreatedEntry
	together, resolve, lookup = storetest.Together, storetest.Resolve, storetest.Lookup
)

func claim(d checkpoint.Store, in checkpoint.Entry) error {
	_, err := storetest.Change(d, checkpoint.Claim, in)
	return err
}

func withdraw(d checkpoint.Store, key string) error {
	_, err := storetest.Change(d, checkpoint.Withdraw, intentOf(key, 0))
	return err
}

func settle(d checkpoint.Store, e checkpoint.Entry) (checkpoint.Entry, error) {
	return storetest.Change(d, checkpoint.Settle, e)
}

func sumField(d checkpoint.Store, name, value string) checkpoint.ContentDigest {
	return checkpoint.ContentDigest{Name: d.Digests().SumName(name), Value: d.Digests().SumValue(name, value)}
}

func uuid(r *rand.Rand) string {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:], r.Uint64())
	binary.NativeEndian.PutUint64(b[8:], r.Uint64())
	return uuidOf(b)
}

func uuidOf(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func forget(t *testing.T, d *Store, keys ...string) {
	t.Helper()
	_, err := checkpoint.Forget(t.Context(), d, keys, false)
	must.Do(t, err)
}

// open opens a checkpoint that the test closes.
func open(t storetest.TB, path string, o Options) *Store {
	t.Helper()
	d, err := Open(path, target(), o)
	must.Do(t, err)
	return d
}

// thorough runs much longer tests: `go test ./checkpoint/bolt -thorough -timeout 30m`.
var thorough = flag.Bool("thorough", false, "inject every disk fault, flip many bytes and rebuild 5,000 crash images")

// skipIfShort skips a long test without concurrency. CI uses -short with the race detector.
func skipIfShort(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it happens at once")
	}
}

// opened opens a checkpoint. When the test ends, it closes the checkpoint and checks the whole file.
func opened(t *testing.T, path string, o Options) *Store {
	t.Helper()
	d := open(t, path, o)
	d.bolt.NoSync = !o.ReadOnly // the disk is not under test
	t.Cleanup(func() {
		d.Close()
		intact(t, path)
	})
	return d
}

// intact fails the test unless every page and record of the file is right.
func intact(t storetest.TB, path string) {
	t.Helper()
	d, err := Open(path, target(), Options{ReadOnly: true, Check: true})
	if err != nil {
		t.Errorf("integrity check: %v", err)
		return
	}
	must.Do(t, d.Close())
}

// emptyHeader returns the header of a new checkpoint.
func emptyHeader() *header {
	h := newHeader(target())
	return &h
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "c.db") }

// killed copies a checkpoint as it is, as if the process had been killed now, and returns the copy's path.
func killed(t *testing.T, path string) string {
	t.Helper()
	to := newPath(t)
	copyAll(t, path, to)
	return to
}

func copyAll(t storetest.TB, path, to string) {
	t.Helper()
	b, err := os.ReadFile(path)
	must.Do(t, err)
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	must.Do(t, err)
	_, err = f.Write(b)
	if err := errors.Join(err, f.Chmod(0o600), f.Close()); err != nil { // without permissions inherited from the folder
		t.Fatal(err)
	}
}

// claimNoting claims a row of a file of this shape, which notes the shape.
func claimNoting(t *testing.T, d *Store, s checkpoint.Shape) {
	t.Helper()
	c := &checkpoint.Change{Kind: checkpoint.Claim, Resend: true, Entry: intentOf("k", 1), Shape: &s}
	must.Do(t, errors.Join(d.Commit(t.Context(), []*checkpoint.Change{c}), c.Err))
}

// lookupAll looks keys up and writes their entries to out.
func lookupAll(d *Store, keys []string, out []checkpoint.Entry) error {
	qs := make([]checkpoint.Query, len(keys))
	for i, key := range keys {
		qs[i].Key, qs[i].Entry = key, &out[i]
	}
	return d.Find(context.Background(), qs)
}

// early lets even a few entries gather in the log.
var early = generationSize{least: 8, most: 8}

// seeded makes a checkpoint with n created leads, three rejected rows and three in doubt, and leaves it open. Half of
// the leads come in random order.
func seeded(t *testing.T, path string, n int) *Store {
	t.Helper()
	d := opened(t, path, Options{gather: early})
	random := rand.New(rand.NewPCG(1, 2))
	order := append(random.Perm(n/2), random.Perm(n-n/2)...)
	slices.Sort(order[:n/2])
	for i, at := range order[n/2:] {
		order[n/2+i] = n/2 + at
	}
	var entries []checkpoint.Entry
	for _, i := range order {
		if i >= n/2 && i%4 == 0 { // several commits: within one, entries are sorted
			together(t, d, checkpoint.Settle, entries...)
			entries = entries[:0]
		}
		key := fmt.Sprintf("key-%05d", i)
		e := createdEntry(key, uuid(random), i)
		if i%2 == 0 {
			e.ExternalID = fmt.Sprintf("crm-%d", i)
		}
		entries = append(entries, e)
	}
	together(t, d, checkpoint.Settle, entries...)
	for i := range 3 {
		must.Do(t, claim(d, intentOf(fmt.Sprintf("doubt-%d", i), i)))
		together(t, d, checkpoint.Settle, checkpoint.Entry{Key: fmt.Sprintf("refused-%d", i), State: checkpoint.Rejected, Code: 422, Reason: "refused"})
	}
	return d
}

func mayLack(d *Store, e *checkpoint.Entry) bool {
	i := d.Info()
	return i.MayLack(e)
}

// renewed makes a checkpoint incomplete and gives it a new ID.
func renewed(t *testing.T, d *Store, missing string) error {
	return d.Alone(t.Context(), func(tx checkpoint.Tx) error { return errors.Join(tx.Lack(missing), tx.Renew()) })
}
