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

// Foreign is the path of a file that is in a folder where a run would leave one, and that no run wrote; or "".
func Foreign(folder string) string {
	for _, of := range []struct{ name, begins string }{
		{summaryFile, "{\n  \"run_id\":"},
		{resultsFile, "file,line,row,key,"}, // where the mapping has a namespace, its column follows
		{reconciliationFile, "file,line,row,key,lead_id,"},
	} {
		path := filepath.Join(folder, of.name)
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			continue // writing says why not
		}
		begins := make([]byte, len(of.begins))
		_, err = io.ReadFull(f, begins)
		f.Close()
		if err != nil || string(begins) != of.begins {
			return path
		}
	}
	return ""
}

// FurtherRejects reports whether a file called other may be written beside the one that
// --rejects names, for rows of another header.
func FurtherRejects(named, other string) bool {
	end, ours := strings.CutPrefix(other, strings.TrimSuffix(named, filepath.Ext(named)))
	return ours && strings.HasPrefix(end, "-") && RunFile("rejects"+strings.ToLower(end)) == "rejects"
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
