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

// RunsFolder is where run folders are, in the folder that the program was started in.
const RunsFolder = "leadferry-runs"

// The names of what a run leaves in its folder, beside rejects.
const (
	summaryFile        = "summary.json"
	resultsFile        = "results.csv"
	reconciliationFile = "reconciliation.csv"
	pageFile           = "report.html"
)

// runFiles are the names of what runs leave in their folders.
var runFiles = spelling.Form(`^(?:(summary)\.json|(results)\.csv|(reconciliation)\.csv|(report)\.html|(rejects)(?:-\d+)?\.(?:csv|tsv|jsonl))(?:\.partial)?$`)

// RunFile says what a file of this name in a run's folder is: summary, results,
// reconciliation, report or rejects, or "": runs neither write nor remove such a file there.
func RunFile(name string) string {
	if m := runFiles().FindStringSubmatch(name); m != nil {
		return strings.Join(m[1:], "")
	}
	return ""
}

// FurtherRejects reports whether a file called other may be written beside the one that
// --rejects names, for rows of another header.
func FurtherRejects(named, other string) bool {
	end, ours := strings.CutPrefix(other, strings.TrimSuffix(named, filepath.Ext(named)))
	return ours && strings.HasPrefix(end, "-") && RunFile("rejects"+strings.ToLower(end)) == "rejects"
}

// makeFolder makes the run's folder, for its owner alone, or takes the one that is there, and holds it open: its parent
// may be anyone's, who may put another folder in its place. earlier names what an earlier run left in it.
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

// leftIn names what an earlier run left in a folder, complete or not. Where it left neither summary nor results,
// rejects that lie there are the user's own. Files and links are replaced; anything else where a run would write is an
// error, and so is a file that no run has written.
func leftIn(folder *os.Root, path string) (names []string, err error) {
	entries, err := fs.ReadDir(folder.FS(), ".")
	ran := false
	for _, e := range entries {
		kind := RunFile(e.Name())
		switch {
		case kind == "":
			continue
		case checkpoint.WitnessIn(path).GoesOn():
			return nil, fmt.Errorf("%s is the folder of another run, which goes on", path)
		case e.Type()&^fs.ModeSymlink != 0:
			return nil, fmt.Errorf("%s is no file, and a run's file would be there", filepath.Join(path, e.Name()))
		case e.Type() == 0 && foreign(folder, e.Name()):
			return nil, fmt.Errorf("%s would be replaced, which no run has written", filepath.Join(path, e.Name()))
		}
		ran = ran || kind == "summary" || kind == "results"
		names = append(names, e.Name())
	}
	if !ran {
		names = nil
	}
	return names, err
}

// foreign reports whether a file bears the name of one that runs write, and begins in another way. An empty one may be
// anybody's, and one that cannot be read is not replaced anyway.
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

// checkMade fails when an open folder is not the one that was made at path just now.
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

// removeOld removes from the run's folder what an earlier run left there and this one
// has not written again: it would be taken for this one's.
func (r *Run) removeOld() error {
	for _, name := range r.earlier {
		there, err := r.folder.Lstat(name) // it may be an output of this run by another path
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

// Prune removes from the folder parent, in which run folders lie, those of this run's ledger beyond the newest keep, if
// nothing in them asks for anybody: runs that came to their end, without rejects and doubts. This run's always stays,
// which testifies to what the ledger knows, though the clock was put back; so does a folder with anything in it that no
// run wrote, or of another user.
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
		// perhaps somebody has a file of it open: the next run tries again
		if err := removeRun(root, filepath.Base(folder)); err != nil {
			bad = errors.Join(bad, fmt.Errorf("%s: %w", folder, err))
		}
	}
	return bad
}

// removeRun removes a run's folder, unless something lies in it that is to stay.
func removeRun(root *os.Root, name string) error {
	entries, err := fs.ReadDir(root.FS(), name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		kind := RunFile(e.Name())
		if e.Name() == checkpoint.RunFile { // its ledger has later ones: the newest folder stays
			kind = "witness"
		}
		if err != nil || kind == "" || kind == "rejects" || e.IsDir() || !disk.Mine(info) {
			return err
		}
	}
	return root.RemoveAll(name)
}

// output is a file on its way to its name. Its folder is held open, so that anyone who
// puts another one in its place receives nothing.
type output struct {
	kind    string // as Summary.Files names it; "" for one that is not there
	path    string
	folder  *os.Root
	name    string // in the folder
	partial string // what it is called there until then; "" for a device or a pipe, written as it is
	file    *os.File
	opened  fs.FileInfo // to know the file again
	buffer  *bufio.Writer
	lines   *lines // into the buffer; nil: other text

	delimiter rune     // of rejects; 0: JSONL
	names     []string // of rejects: the rows' own columns
}

const outputBuffer = 64 << 10

// partialEnd is what the name of a file ends with until it is complete.
const partialEnd = ".partial"

// create opens path.partial anew, 0600. What a killed run left under that name goes.
// folder is the one that path lies in.
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
	err := disk.Patiently(func() (err error) { there, err = o.folder.Lstat(o.name); return err })
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
		return err // now, not when all is sent
	}
	o.partial = o.name + partialEnd
	if err := o.folder.Remove(o.partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o.file, err = createNew(o.folder, o.partial)
	return err
}

// createNew makes a new file. What is there by then is an error, also a
// symbolic link: O_EXCL with O_CREATE follows none.
func createNew(folder *os.Root, name string) (*os.File, error) {
	return folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// openSpecial opens a device or a pipe of the user's own or of root's, and no other: it may have been planted.
func (o *output) openSpecial(there fs.FileInfo) (err error) {
	if !disk.Trusted(there) { // before it is waited for
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

// failed gives an error of the folder the whole path.
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

// commit makes the content durable, gives the file its name and makes that durable.
func (o *output) commit() error {
	defer o.file.Close()
	if err := o.buffer.Flush(); err != nil {
		return err
	}
	if o.partial == "" {
		return o.file.Close()
	}
	if err := errors.Join(o.file.Sync(), o.own(), o.file.Close()); err != nil {
		return err
	}
	if err := disk.Patiently(func() error { return o.folder.Rename(o.partial, o.name) }); err != nil {
		return o.failed(err)
	}
	there, err := o.folder.Open(".") // to make its names durable, where its file system can
	if err != nil {
		return err
	}
	defer there.Close()
	return disk.SyncOpen(there)
}

// complete commits what write makes of it.
func (o *output) complete(write func(io.Writer) error) error {
	if err := write(o); err != nil {
		return err
	}
	return o.commit()
}

// own fails when NAME.partial is no longer the file that was opened.
func (o *output) own() error {
	there, err := o.folder.Lstat(o.partial)
	if err != nil {
		return o.failed(err)
	}
	if !os.SameFile(o.opened, there) {
		return fmt.Errorf("%s was replaced by another run while this one wrote it", o.path+partialEnd)
	}
	return nil
}

// remove leaves nothing of the output behind, nor of files beside it.
func (o *output) remove(beside ...string) error {
	defer o.file.Close()
	if o.partial == "" {
		return nil
	}
	if err := o.own(); err != nil {
		return err
	}
	for _, name := range append(beside, o.partial) {
		if err := o.folder.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// WriteFile puts a file, for which write has the content, in the place of the one at path, if any.
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
