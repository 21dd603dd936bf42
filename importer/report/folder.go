package report

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
	"leadferry/internal/spelling"
)

// RunsFolder holds the run folders. It is in the folder where the program was started.
const RunsFolder = "leadferry-runs"

// The names of a run's files in its folder, except rejects files.
const (
	summaryFile        = "summary.json"
	resultsFile        = "results.csv"
	reconciliationFile = "reconciliation.csv"
	pageFile           = "report.html"
)

// runFiles match the names of all files that runs write in their folders.
var runFiles = spelling.Form(`^(?:(summary)\.json|(results)\.csv|(reconciliation)\.csv|(report)\.html|(rejects)(?:-\d+)?\.(?:csv|tsv|jsonl))(?:\.partial)?$`)

// RunFile returns the kind of a run's file by its name, for example "summary" or "rejects"; "" for any other file.
func RunFile(name string) string {
	if m := runFiles().FindStringSubmatch(name); m != nil {
		return strings.Join(m[1:], "")
	}
	return ""
}

// FurtherRejects reports whether a run with --rejects named may also write other, for rows with another header.
func FurtherRejects(named, other string) bool {
	stem := strings.ToLower(strings.TrimSuffix(named, filepath.Ext(named))) // some systems have no case in names
	end, ours := strings.CutPrefix(strings.ToLower(other), stem)
	return ours && strings.HasPrefix(end, "-") && RunFile("rejects"+end) == "rejects"
}

// makeFolder makes the run's folder for its owner only, or uses the folder that exists. It holds the folder open: other
// users may be able to replace it in its parent. earlier names the files that an earlier run left there.
func makeFolder(path string) (folder *os.Root, earlier []string, err error) {
	if err := disk.MakeFolders(filepath.Dir(filepath.Clean(path))); err != nil {
		return nil, nil, err
	}
	made := os.Mkdir(path, 0o700)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return nil, nil, made
	}
	if folder, err = os.OpenRoot(path); err != nil {
		return nil, nil, err
	}
	if made == nil {
		err = checkMade(folder, path)
	} else {
		earlier, err = leftIn(folder, path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, folder.Close())
	}
	return folder, earlier, nil
}

// leftIn names the files that an earlier run left in a folder; none without a summary or results: rejects alone are the
// user's own. It fails if a foreign file, or something that is not a file, has the name of a run's file.
func leftIn(folder *os.Root, path string) (names []string, err error) {
	entries, err := fs.ReadDir(folder.FS(), ".")
	ran := false
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		kind := RunFile(name)
		switch {
		case kind == "", name != e.Name() && !sameIn(folder, name, e.Name()): // else names have no case here
			continue
		case checkpoint.WitnessIn(path).GoesOn():
			return nil, fmt.Errorf("%s is the folder of another run, which goes on", path)
		case e.Type()&^fs.ModeSymlink != 0:
			return nil, fmt.Errorf("%s is not a file, so the run cannot write its own", filepath.Join(path, e.Name()))
		case e.Type() == 0 && foreign(folder, name):
			return nil, fmt.Errorf("%s would be replaced, but no run wrote it", filepath.Join(path, e.Name()))
		}
		ran = ran || kind == "summary" || kind == "results"
		names = append(names, e.Name())
	}
	if !ran {
		names = nil
	}
	return names, err
}

func sameIn(folder *os.Root, a, b string) bool {
	one, err := folder.Stat(a)
	other, err2 := folder.Stat(b)
	return err == nil && err2 == nil && os.SameFile(one, other)
}

// foreign reports whether a summary, results or reconciliation does not begin as runs write it. An empty file is fine.
func foreign(folder *os.Root, name string) bool {
	begins := map[string]string{
		summaryFile: "{\n  \"run_id\":",
		resultsFile: "file,line,row,key,", reconciliationFile: "file,line,row,key,lead_id,",
	}[name]
	f, err := folder.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	have := make([]byte, len(begins))
	n, err := io.ReadFull(f, have)
	return n > 0 && (err != nil || string(have) != begins)
}

// checkMade fails if an open folder is not the one just made at path.
func checkMade(folder *os.Root, path string) error {
	opened, err := folder.Stat(".")
	if err != nil {
		return err
	}
	if there, err := os.Lstat(path); err != nil || !os.SameFile(opened, there) || !disk.Mine(opened) {
		return fmt.Errorf("%s was replaced by somebody else while it was made", path)
	}
	return nil
}

// removeOld removes files of an earlier run that this run did not replace: people would take them for this run's.
func (r *Run) removeOld() error {
	for _, name := range r.earlier {
		there, err := r.folder.Lstat(name) // a flag may name the same file by another path
		wrote := err == nil && slices.ContainsFunc(r.outputs,
			func(o *output) bool { return os.SameFile(o.opened, there) })
		if wrote || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := r.folder.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

var runFolder = spelling.Form(`^\d{8}T\d{6}Z-[a-z]+-[0-9a-f]{8}$`)

// Prune removes folders of runs with this run's ledger and target from parent, except the newest keep. It removes only
// complete runs without rejects and rows in doubt. This run's folder stays even if the clock was put back: it is a
// witness of what the ledger knows. Folders of other users, and folders with a file that no run wrote, stay, too.
func (s *Summary) Prune(parent string, keep int) (bad error) {
	root, err := os.OpenRoot(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	runs := slices.DeleteFunc(Newest([]string{parent}, math.MaxInt), func(r *Summary) bool {
		known := r.Target == s.Target && r.Checkpoint.ID == s.Checkpoint.ID && r.Checkpoint.Path == s.Checkpoint.Path
		return !known || r.DryRun || !runFolder().MatchString(filepath.Base(filepath.Dir(r.SummaryPath)))
	})
	slices.SortFunc(runs, func(a, b *Summary) int { return b.FinishedAt.Compare(a.FinishedAt) })
	for _, run := range runs[min(max(keep, 1), len(runs)):] {
		if run.Outcome != "complete" || run.Rows.InDoubt > 0 || run.RunID == s.RunID {
			continue
		}
		folder := filepath.Dir(run.SummaryPath)
		// It fails if another program has a file open. The next run tries again.
		if err := removeRun(root, filepath.Base(folder)); err != nil {
			bad = errors.Join(bad, fmt.Errorf("%s: %w", folder, err))
		}
	}
	return bad
}

// removeRun removes a run's folder, unless it holds something to keep.
func removeRun(root *os.Root, name string) error {
	entries, err := fs.ReadDir(root.FS(), name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		witness := e.Name() == checkpoint.RunFile // not needed any more: a newer folder, which stays, has a later one
		kind := RunFile(e.Name())
		if err != nil || kind == "" && !witness || kind == "rejects" || e.IsDir() || !disk.Mine(info) {
			return err
		}
	}
	for _, e := range entries { // the summary is the last one: without it, the folder would stay for ever
		if err := root.Remove(filepath.Join(name, e.Name())); err != nil {
			return err
		}
	}
	return root.Remove(name)
}

// output is a file that is being written. Its folder is held open, so that a folder put in its place receives nothing.
type output struct {
	kind    string // as Summary.Files names it; "" if it is not listed there
	path    string
	folder  *os.Root
	name    string // in the folder
	partial string // its name until it is complete; "" for a device or a pipe, to which it writes directly
	file    *os.File
	opened  fs.FileInfo // identifies the file later
	buffer  *bufio.Writer
	lines   *lines // the CSV writer to the buffer; nil for other texts

	delimiter rune     // of rejects; 0: JSONL
	names     []string // of rejects: the rows' own columns
}

const outputBuffer = 64 << 10

// partialEnd ends the name of a file until it is complete.
const partialEnd = ".partial"

// create makes path.partial with mode 0600 and replaces what a killed run left there. folder is the folder of path.
func create(folder *os.Root, path string) (*output, error) {
	o := &output{path: path, folder: folder, name: filepath.Base(path)}
	err := o.open()
	if err == nil {
		o.opened, err = o.file.Stat()
	}
	if err != nil {
		return nil, o.failed(err)
	}
	o.buffer = bufio.NewWriterSize(o.file, outputBuffer)
	return o, nil
}

func (o *output) open() error {
	var there fs.FileInfo
	err := disk.Patiently(0, func() (err error) { there, err = o.folder.Lstat(o.name); return err })
	switch {
	case os.IsPathSeparator(o.path[len(o.path)-1]):
		return errors.New("is the name of a folder")
	case disk.Reserved(o.name):
		return errors.New(disk.ReservedWords)
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case there.IsDir():
		return errors.New("is a folder")
	case disk.MountPoint(o.path):
		return errors.New("is mounted by itself, so that no file can take its place: mount its folder")
	case there.Mode()&fs.ModeSymlink != 0:
		// Replacing /dev/stdout would break more than this run.
		if target, err := os.Stat(o.path); err == nil && !target.Mode().IsRegular() {
			return errors.New("is a symbolic link to something that is not a file: symbolic links are not followed")
		}
	case !there.Mode().IsRegular():
		return o.openSpecial(there)
	}
	if err := disk.Replaceable(o.path); err != nil {
		return err // fail now, not after all is sent
	}
	o.partial = o.name + partialEnd
	if err := o.folder.Remove(o.partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o.file, err = createNew(o.folder, o.partial)
	return err
}

// createNew makes a new file. If the name exists, even as a symbolic link, it fails: O_EXCL with O_CREATE follows none.
func createNew(folder *os.Root, name string) (*os.File, error) {
	return folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// openSpecial opens a device or a pipe, if it belongs to the user or to root. Any other may be a trap.
func (o *output) openSpecial(there fs.FileInfo) (err error) {
	if !disk.Trusted(there) { // checked before opening, because that may wait for a reader
		return errors.New("belongs to another user, who would receive what is written to it")
	}
	if o.file, err = o.folder.OpenFile(o.name, os.O_WRONLY|disk.NoFollow, 0); err != nil {
		return err
	}
	if opened, err := o.file.Stat(); err != nil || !os.SameFile(there, opened) {
		return errors.Join(errors.New("was replaced while it was opened"), err, o.file.Close())
	}
	return nil
}

// failed puts the whole path into an error of the folder, in place of the bare name.
func (o *output) failed(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		err = e.Err
	case *os.LinkError:
		err = e.Err
	}
	return fmt.Errorf("%s: %w", o.path, err)
}

func (o *output) Write(p []byte) (int, error) { return o.buffer.Write(p) }

// commit makes the content durable, gives the file its name and makes the name durable.
func (o *output) commit() error {
	defer o.file.Close()
	if err := o.buffer.Flush(); err != nil {
		return err
	}
	if o.partial == "" {
		return o.file.Close()
	}
	if err := errors.Join(o.file.Sync(), o.checkUnreplaced(), o.file.Close()); err != nil {
		return err
	}
	if err := disk.Patiently(0, func() error { return o.folder.Rename(o.partial, o.name) }); err != nil {
		return o.failed(err)
	}
	there, err := o.folder.Open(".")
	if err != nil {
		return err
	}
	defer there.Close()
	return disk.SyncOpen(there)
}

// complete writes the content with write and commits it.
func (o *output) complete(write func(io.Writer) error) error {
	if err := write(o); err != nil {
		return err
	}
	return o.commit()
}

// checkUnreplaced fails if NAME.partial is no longer the file that was opened.
func (o *output) checkUnreplaced() error {
	there, err := o.folder.Lstat(o.partial)
	if err != nil {
		return o.failed(err)
	}
	if !os.SameFile(o.opened, there) {
		return fmt.Errorf("%s was replaced by another run while this one wrote it", o.path+partialEnd)
	}
	return nil
}

// remove removes the output, and these other files in its folder.
func (o *output) remove(beside ...string) error {
	defer o.file.Close()
	if o.partial == "" {
		return nil
	}
	if err := o.checkUnreplaced(); err != nil {
		return err
	}
	for _, name := range append(beside, o.partial) {
		if err := o.folder.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// WriteFile writes the file at path with write, or replaces the file that is there. After an error the old file stays.
func WriteFile(path string, write func(io.Writer) error) error {
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	out, err := create(folder, path)
	if err != nil {
		return err
	}
	if err = out.complete(write); err != nil {
		return errors.Join(err, out.remove())
	}
	return nil
}
