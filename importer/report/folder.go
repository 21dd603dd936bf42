package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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

// beginnings are those of the files that each run leaves under these names.
var beginnings = [...]struct{ name, text string }{
	{summaryFile, "{\n  \"run_id\":"},
	{resultsFile, "file,line,row,key,"}, // where the mapping has a namespace, its column follows
	{reconciliationFile, "file,line,row,key,lead_id,"},
}

// Foreign is the path of a file that is in a folder where a run would leave one, and that no run wrote; or "".
func Foreign(folder string) string {
	for _, of := range beginnings {
		path := filepath.Join(folder, of.name)
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			continue // writing says why not
		}
		begins := make([]byte, len(of.text))
		_, err = io.ReadFull(f, begins)
		f.Close()
		if err != nil || string(begins) != of.text {
			return path
		}
	}
	return ""
}

// furtherEnd is what comes behind the first name, without its ending, in the names of further rejects files.
var furtherEnd = spelling.Form(`^-\d+\.(?i:csv|tsv|jsonl)(?:\.partial)?$`)

// FurtherRejects reports whether a file called other may be written beside the one that
// --rejects names, for rows of another header.
func FurtherRejects(named, other string) bool {
	end, ours := strings.CutPrefix(other, strings.TrimSuffix(named, filepath.Ext(named)))
	return ours && furtherEnd().MatchString(end)
}

// makeFolder makes the run's folder, for its owner alone, or takes the one that is there, and holds it
// open: its parent may be anyone's, who may put another folder in its place.
func makeFolder(path string) (*os.Root, error) {
	if err := disk.MakeFolders(filepath.Dir(filepath.Clean(path))); err != nil {
		return nil, err
	}
	made := os.Mkdir(path, 0o700)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return nil, made
	}
	folder, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	check := checkMade
	if made != nil {
		check = checkReused
	}
	if err := check(folder, path); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// checkReused fails when something is in a folder that was there where a run would
// write, and is none that it may write to.
func checkReused(folder *os.Root, path string) error {
	entries, err := fs.ReadDir(folder.FS(), ".")
	for _, e := range entries {
		if RunFile(e.Name()) == "" || e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0 {
			continue // a file or a link is replaced
		}
		switch info, err := e.Info(); {
		case err != nil:
			return err
		case e.IsDir():
			return fmt.Errorf("%s is a folder, and a run's file would stand there", filepath.Join(path, e.Name()))
		case !disk.Trusted(info):
			return fmt.Errorf("%s: %w", filepath.Join(path, e.Name()), errNotOurs)
		}
	}
	return err
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

// hasRun reports whether an earlier run has left its files in a folder, complete or not.
// Where it has not, rejects that lie there are the user's own.
func hasRun(folder *os.Root) bool {
	for _, name := range []string{summaryFile, resultsFile, resultsFile + partialEnd} {
		if _, err := folder.Lstat(name); err == nil {
			return true
		}
	}
	return false
}

// removeOld removes from the run's folder what an earlier run left there and this one
// has not written again: it would be taken for this one's.
func (r *Run) removeOld() error {
	if !r.reused {
		return nil
	}
	entries, err := fs.ReadDir(r.folder.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		there, err := r.folder.Lstat(e.Name()) // it may be an output of this run by another path
		wrote := err == nil && slices.ContainsFunc(r.outputs,
			func(o *output) bool { return os.SameFile(o.opened, there) })
		if e.IsDir() || RunFile(e.Name()) == "" || wrote {
			continue
		}
		if err := r.folder.Remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

var runFolder = spelling.Form(`^\d{8}T\d{6}Z-[a-z]+-[0-9a-f]{8}$`)

// Prune removes from the folder parent, in which run folders lie, those of the target
// beyond the newest keep, if nothing in them asks for anybody: runs that came to their
// end, without rejects and doubts. The newest of each checkpoint stays, which testifies
// to what the checkpoint knows, and so does a folder with anything in it that no run
// wrote, or of another user.
func Prune(parent string, keep int, target Target) (bad error) {
	root, err := os.OpenRoot(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	runs := slices.DeleteFunc(Newest([]string{parent}, mostNames), func(s *Summary) bool {
		return s.Target != target || s.DryRun || !runFolder().MatchString(filepath.Base(filepath.Dir(s.SummaryPath)))
	})
	slices.SortFunc(runs, func(a, b *Summary) int { return b.FinishedAt.Compare(a.FinishedAt) })
	seen := map[string]bool{} // checkpoints
	for i, run := range runs {
		name := run.Checkpoint.Path + "\x00" + run.Checkpoint.ID
		newest := !seen[name]
		seen[name] = true
		if i < keep || newest || run.Outcome != "complete" || run.Rows.InDoubt > 0 {
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
	folder, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	entries, err := fs.ReadDir(folder.FS(), ".")
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
	for _, e := range entries {
		if err := folder.Remove(e.Name()); err != nil {
			return err
		}
	}
	if err := folder.Close(); err != nil { // on Windows nobody could remove it before
		return err
	}
	return root.Remove(name)
}

// mostRead bounds a summary that is read as a whole, in bytes. Ours have a tenth of it at
// most.
const mostRead = 16 << 20

// Read reads the summary of a finished run, of which path is the folder or the summary itself.
// What is no summary, or one that this version does not understand, is an error; what the
// summary says is not believed to be harmless.
func Read(path string) (*Summary, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, summaryFile)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|disk.NonBlock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a file", path))
	}
	text, err := io.ReadAll(io.LimitReader(f, mostRead+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > mostRead:
		return nil, fmt.Errorf("%s is too large for the summary of a run", path)
	}
	s, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.SummaryPath = path
	return s, nil
}

func parse(text []byte) (*Summary, error) {
	var s Summary
	if err := json.Unmarshal(text, &s, jsontext.AllowInvalidUTF8(true)); err != nil {
		version := ""
		if s.Version != "" {
			version = ", which leadferry " + Escape(s.Version) + " wrote"
		}
		return nil, fmt.Errorf("is not the summary of a run that this version understands%s", version)
	}
	known := slices.Contains([]string{"complete", "attention", "stopped", "interrupted"}, s.Outcome)
	if s.RunID == "" || s.Command == "" || !known {
		return nil, errors.New("is not the summary of a run: it lacks run_id, command or outcome")
	}
	s.read = true
	return &s, nil
}

const mostNames = 10_000 // of a folder that are looked at

// Newest reads the summaries of the newest runs, most at most, whose folders lie in the parents. Those of another user
// count as none, except the user who called sudo.
func Newest(parents []string, most int) []*Summary {
	type file struct {
		path string
		at   time.Time
	}
	var found []file
	for _, parent := range parents {
		dir, err := os.Open(parent)
		if err != nil {
			continue
		}
		entries, _ := dir.ReadDir(mostNames) // as many as there are
		dir.Close()
		for _, e := range entries {
			path := filepath.Join(parent, e.Name(), summaryFile)
			if info, err := os.Lstat(path); err == nil && e.IsDir() && info.Mode().IsRegular() && disk.Mine(info) {
				found = append(found, file{path, info.ModTime()})
			}
		}
	}
	slices.SortFunc(found, func(a, b file) int { return b.at.Compare(a.at) })
	var all []*Summary
	for _, f := range found[:min(len(found), most)] {
		if s, err := Read(f.path); err == nil {
			all = append(all, s)
		}
	}
	return all
}
