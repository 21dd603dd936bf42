package bolt

import (
	"errors"
	"fmt"
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
	"leadferry/checkpoint/bolt/pages"
)

// bbolt trusts its file. A page number that leads past the end kills the process, and one that leads in a circle overflows
// the stack, in bbolt's own check too. So a process of its own checks a file that was not left in order, before this one
// maps it. It may die of what it finds: that is an answer.

// checkWord is the first argument of such a process. How the file is locked and its path follow; it inherits the file
// itself, and the lock with it.
const checkWord = "check-checkpoint-file"

// What such a process ends with.
const (
	isGood     = 0
	isDamaged  = 3 // what is wrong stands on standard output
	isUnlocked = 4 // the lock was not inherited, as on network drives
)

// checkApart has a process of its own check the file. done is false where there can be none: in a test, on Windows, where no
// other process comes past the lock, and where the lock is not inherited.
func (d *Store) checkApart(checker []string) (done bool, err error) {
	if checker == nil {
		checker = ownChecker()
	}
	if checker == nil {
		return false, nil
	}
	lock := "alone"
	if d.readOnly {
		lock = "shared"
	}
	child := exec.Command(checker[0], append(checker[1:], lock, d.path)...)
	child.ExtraFiles = []*os.File{d.file}
	alive, err := child.StdinPipe()
	if err != nil {
		return false, err
	}
	defer alive.Close()
	said, err := child.Output()
	switch {
	case child.ProcessState == nil:
		return false, fmt.Errorf("the process that checks it cannot be started: %w", err)
	case child.ProcessState.ExitCode() == isGood:
		return true, nil
	case child.ProcessState.ExitCode() == isDamaged:
		return true, pages.Damage(string(said))
	case child.ProcessState.ExitCode() == isUnlocked:
		return false, nil
	}
	return true, pages.Damage("its pages lead nowhere")
}

// ownChecker are the arguments that have this program call CheckFile; nil: it does not.
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

// CheckFile is what a process does, and ends with, that was started to check a checkpoint's file; is says whether it was.
func CheckFile(args []string, out io.Writer) (code int, is bool) {
	if len(args) != 4 || args[1] != checkWord {
		return 0, false
	}
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // whoever asked decides what they mean
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // whoever asked is gone, and the lock has to go, too
	}()
	debug.SetMaxStack(64 << 20)
	d := &Store{path: args[3], readOnly: args[2] == "shared", file: os.NewFile(3, args[3])}
	go endWhenItGrows(d.file)
	d.entries, d.leads = newBuffered(inEntries, newEntries, false, gathering{}), newBuffered(inLeads, newLeads, true, gathering{})
	switch err := d.checkHere(); {
	case err == nil:
		return isGood, true
	case errors.Is(err, checkpoint.ErrLocked):
		return isUnlocked, true
	default:
		fmt.Fprint(out, strings.TrimPrefix(err.Error(), checkpoint.ErrDamaged.Error()+": "))
		return isDamaged, true
	}
}

// endWhenItGrows ends a check that takes far more memory than a file of that size can need: bbolt notes each page that a
// page says it is long, and a damaged one says four billion.
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

// checkHere maps the file and checks it. That it is another program's, or another version's, is said by who opens it.
func (d *Store) checkHere() error {
	if err := d.mapFile(); err != nil {
		return err
	}
	return guard(func() error {
		if err := checkPages(d.bolt); err != nil {
			return err
		}
		return d.bolt.View(func(tx *bbolt.Tx) error {
			switch err := d.load(tx, checkpoint.Target{}); {
			case err == nil:
				return d.survey(tx)
			case errors.As(err, new(*checkpoint.OpenError)):
				return nil
			default:
				return err
			}
		})
	})
}

// checkAll checks every page, record and index of a file whose head was read.
func (d *Store) checkAll() error {
	if err := checkPages(d.bolt); err != nil {
		return err
	}
	return d.bolt.View(d.survey)
}

// checkPages is bbolt's own check, as far as the first thing that it finds: in a circle it would find more for ever. What is
// left of it goes on in a goroutine of its own, so its transaction never ends and the file stays mapped, see release.
func checkPages(of *bbolt.DB) error {
	tx, err := of.Begin(false)
	if err != nil {
		return err
	}
	for found := range tx.Check(bbolt.WithKVStringer(wordless{})) {
		return pages.Damage(found.Error())
	}
	return tx.Rollback()
}

// wordless keeps keys out of messages.
type wordless struct{}

func (wordless) KeyToString([]byte) string   { return "…" }
func (wordless) ValueToString([]byte) string { return "…" }
