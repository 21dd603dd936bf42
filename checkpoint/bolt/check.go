package bolt

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
)

// bbolt trusts its file. A page number that leads past the end kills the process. Numbers that lead in a circle
// overflow the stack, also in bbolt's own check. So if a file was not left in order, a separate process checks it
// before this one maps it. It also reads what is left of a damaged file. If it dies, the file is damaged.

// checkWord is the first argument of that process, before its task and the path. It inherits the file and the lock.
const checkWord = "check-checkpoint-file"

const (
	checkAlone  = "alone"  // check the file, which only it has open
	checkShared = "shared" // check the file, while others read it, too
	readPieces  = "read"   // write what can be read of the file to standard output
)

// The exit codes of that process.
const (
	isGood    = 0
	isDamaged = 3 // what is wrong is on standard output
	isUnable  = 4 // it did not inherit the lock, for example on network drives
)

// inChild starts a process that does todo with the file, and passes its standard output to take. In a test, and on
// Windows, where no other process gets past the lock, it returns isUnable: then this process does the work.
func (d *Store) inChild(todo string, take func(said io.Reader)) (code int, err error) {
	checker := d.o.checker
	if checker == nil && !d.o.Here {
		checker = ownChecker()
	}
	if checker == nil {
		return isUnable, nil
	}
	child := exec.Command(checker[0], append(checker[1:], todo, d.path)...)
	child.ExtraFiles = []*os.File{d.file}
	alive, err := child.StdinPipe() // the process ends when this is closed
	if err != nil {
		return 0, err
	}
	defer alive.Close()
	said, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		return 0, fmt.Errorf("the process that reads it cannot be started: %w", err)
	}
	take(said)
	_, _ = io.Copy(io.Discard, said)
	_ = child.Wait()
	return child.ProcessState.ExitCode(), nil
}

// ownChecker returns the arguments that make this program call CheckFile, or nil.
func ownChecker() []string {
	info, known := debug.ReadBuildInfo()
	if runtime.GOOS == "windows" || !known || info.Path != "leadferry" {
		return nil
	}
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{path, checkWord}
}

// checkApart checks the file in a separate process. done is false if that process is unable to.
func (d *Store) checkApart() (done bool, err error) {
	todo := checkAlone
	if d.o.ReadOnly {
		todo = checkShared
	}
	var text []byte
	code, err := d.inChild(todo, func(said io.Reader) { text, _ = io.ReadAll(said) })
	switch {
	case err != nil:
		return false, err
	case code == isDamaged:
		return true, damage(string(text))
	case code != isGood && code != isUnable:
		return true, damage("its pages lead nowhere")
	}
	return code == isGood, nil
}

// CheckFile does the task that inChild started this process for, and returns the exit code. is: there is a task.
func CheckFile(args []string, out io.Writer) (code int, is bool) {
	if len(args) != 4 || args[1] != checkWord {
		return 0, false
	}
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // the parent reacts to them
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the parent has ended: release the lock
	}()
	debug.SetMaxStack(64 << 20)
	d := newStore(args[3], Options{ReadOnly: args[2] != checkAlone})
	d.file = os.NewFile(3, args[3])
	go endWhenItGrows(d.file)
	err := d.mapFile()
	switch {
	case errors.Is(err, checkpoint.ErrLocked):
		return isUnable, true
	case err == nil && args[2] == readPieces:
		to := json.NewEncoder(out)
		d.pieces(func(p piece) error { return to.Encode(p) })
	case err == nil:
		err = d.inspect(checkpoint.Target{}, false)
		if errors.As(err, new(*checkpoint.OpenError)) {
			err = nil // a file of another program or version is refused when it is opened
		}
	}
	if err != nil {
		fmt.Fprint(out, strings.TrimPrefix(err.Error(), checkpoint.ErrDamaged.Error()+": "))
		return isDamaged, true
	}
	return isGood, true
}

// endWhenItGrows ends this process if it takes far more memory than the check of a file of that size can need: bbolt
// notes every page that belongs to a longer page, and a damaged page may claim to be four billion pages long.
func endWhenItGrows(f *os.File) {
	most := uint64(128 << 20)
	if info, err := f.Stat(); err == nil {
		most += uint64(info.Size()) / 8
	}
	for m := (runtime.MemStats{}); m.HeapAlloc < most; runtime.ReadMemStats(&m) {
		time.Sleep(20 * time.Millisecond)
	}
	os.Exit(1)
}

// inspect loads the mapped file, and checks all of it; if it was checked before, only what a look-up would miss.
func (d *Store) inspect(t checkpoint.Target, checked bool) error {
	return guard(func() error {
		if !checked {
			if err := checkPages(d.bolt); err != nil {
				return err
			}
		}
		return d.bolt.View(func(tx *bbolt.Tx) error {
			if err := d.load(tx, t); err != nil {
				return err
			}
			return d.checkRecords(tx, !checked)
		})
	})
}

// checkPages runs bbolt's own check up to its first finding, since it would never stop in a circle of pages. After a
// finding, bbolt's goroutine and its transaction never end and the file stays mapped, see release.
func checkPages(of *bbolt.DB) error {
	tx, err := of.Begin(false)
	if err != nil {
		return err
	}
	for found := range tx.Check(bbolt.WithKVStringer(wordless{})) {
		return damage(found.Error())
	}
	return tx.Rollback()
}

type wordless struct{}

func (wordless) KeyToString([]byte) string   { return "…" }
func (wordless) ValueToString([]byte) string { return "…" }

// checkRecords checks the records of rows in doubt and of forgotten keys, or all records: the checksums must be right,
// and the numbers must equal the counts. A look-up notices all other damage, but not that one of the first two is gone.
func (d *Store) checkRecords(tx *bbolt.Tx, all bool) error {
	var failed error
	number := func(n uint64, err error) uint64 {
		failed = errors.Join(failed, err)
		return n
	}
	in := func(name []byte) uint64 { return number(wholeRecords(tx, name)) }
	counts := &d.head.Load().Counts
	right := in(inIntents) == counts.Keys[checkpoint.InDoubt] && in(inBlocked) == counts.Keys[checkpoint.Forgotten]
	if all && right {
		right = number(d.entries.count(tx)) == counts.Entries && in(inNotes) == counts.Notes &&
			number(d.leads.count(tx))+in(inLinks)+in(inFolds) == counts.Indexed
	}
	if failed == nil && !right {
		return damage("it holds more or fewer records than it counted")
	}
	return failed
}

// wholeRecords counts the records of a bucket, and fails at the first one whose checksum is wrong.
func wholeRecords(tx *bbolt.Tx, name []byte) (n uint64, err error) {
	err = tx.Bucket(name).ForEach(func(k, v []byte) error {
		n++
		if !isWhole(k, v) {
			return errRecord
		}
		return nil
	})
	return n, err
}

// looksWhole refuses an empty, foreign or cut file: bbolt would change it, or would be killed by it at once.
func looksWhole(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return damage("it is empty")
	}
	newest, end := newestMeta(f)
	switch {
	case newest == 0:
		return damage("it does not begin like a checkpoint")
	case end > uint64(info.Size()):
		return damage("it is shorter than its header says")
	}
	return nil
}

// newestMeta returns the newest commit in the first two pages (0: none), and how long the file must be then.
func newestMeta(f *os.File) (newest, end uint64) {
	var page [80]byte // up to the end of the meta; a page's size is a power of two
	meta, native := page[16:], binary.NativeEndian
	for at := int64(0); at <= 1<<16; at = max(1<<10, 2*at) {
		if _, err := f.ReadAt(page[:], at); err != nil {
			break
		}
		sum := fnv.New64a()
		sum.Write(meta[:56])
		commit := native.Uint64(meta[48:]) + 1
		if native.Uint32(meta) == 0xED0CDAED && native.Uint64(meta[56:]) == sum.Sum64() && commit > newest {
			newest, end = commit, native.Uint64(meta[40:])*uint64(native.Uint32(meta[8:]))
		}
	}
	return newest, end
}

// IsLedger reports whether the file at path begins like a file of bbolt. Nothing else may take its place.
func IsLedger(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|disk.NonBlock, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	newest, _ := newestMeta(f)
	return newest > 0
}

func damage(text string) error { return fmt.Errorf("%w: %s", checkpoint.ErrDamaged, text) }

// piece is a record of a damaged file, and the bucket that holds it.
type piece struct {
	Bucket     string
	Key, Value []byte
}

// pieces calls found with each record that bbolt still finds in the mapped file, checked or not, until found fails.
func (d *Store) pieces(found func(piece) error) {
	_ = d.bolt.View(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			_ = guard(func() error {
				if b := tx.Bucket(name); b != nil {
					walk(b, func(k, v []byte) error { return found(piece{string(name), k, v}) })
				}
				return nil
			})
		}
		return nil
	})
}

// walk goes through a bucket from its beginning to the first damage, then from its end.
func walk(b *bbolt.Bucket, found func(k, v []byte) error) {
	var low, high []byte // the key found last from each end
	for _, way := range []struct {
		first, next func(*bbolt.Cursor) (k, v []byte)
		last        *[]byte
	}{{(*bbolt.Cursor).First, (*bbolt.Cursor).Next, &low}, {(*bbolt.Cursor).Last, (*bbolt.Cursor).Prev, &high}} {
		err := guard(func() (err error) {
			c := b.Cursor()
			for k, v := way.first(c); k != nil && err == nil; k, v = way.next(c) {
				if low != nil && bytes.Compare(k, low) <= 0 || high != nil && bytes.Compare(k, high) >= 0 {
					return errRecord
				}
				*way.last, err = bytes.Clone(k), found(k, v)
			}
			return err
		})
		if err == nil {
			return
		}
	}
}
