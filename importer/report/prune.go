package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"leadferry/internal/trust"
)

// maxSummary bounds what is read of an old summary, in bytes.
const maxSummary = 16 << 20

// runFolder is how the folders of runs are called.
var runFolder = regexp.MustCompile(`^\d{8}T\d{6}Z-[a-z]+-[0-9a-f]{8}$`)

// oldRun is what an old summary says of its run, as far as it matters here.
type oldRun struct {
	name       string     // of its folder
	Outcome    string     `json:"outcome"`
	Finished   time.Time  `json:"finished_at"`
	DryRun     bool       `json:"dry_run"`
	Checkpoint Checkpoint `json:"checkpoint"`
	Target     Target     `json:"target"`
	Rows       RowCounts  `json:"rows"`
}

// Prune removes from the folder parent, in which run folders lie, those of the target
// beyond the newest keep, if nothing in them asks for anybody: runs that came to their
// end, without rejects and doubts. The newest of each checkpoint stays, which testifies
// to what the checkpoint knows, and so does a folder with anything in it that no run
// wrote, or of another user. It returns how many it removed.
func Prune(parent string, keep int, target Target) (int, error) {
	root, err := os.OpenRoot(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer root.Close()
	runs, err := oldRuns(root, target)
	kept, removed := 0, 0
	seen := map[string]bool{} // checkpoints
	for _, run := range runs {
		name := run.Checkpoint.Path + "\x00" + run.Checkpoint.ID
		newest := !seen[name]
		seen[name] = true
		if kept++; kept <= keep || newest || run.Outcome != "complete" || run.Rows.InDoubt > 0 {
			continue
		}
		gone, err := removeRun(root, run.name)
		if err != nil {
			return removed, fmt.Errorf("%s: %w", path.Join(parent, run.name), err)
		}
		if gone {
			removed++
		}
	}
	return removed, err
}

// oldRuns are those of the target that sent something or would have, the newest first.
func oldRuns(root *os.Root, target Target) ([]oldRun, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var runs []oldRun
	for _, e := range entries {
		if !e.IsDir() || !runFolder.MatchString(e.Name()) {
			continue
		}
		if run, err := readOld(root, e.Name()); err == nil && run.Target == target && !run.DryRun {
			runs = append(runs, run)
		}
	}
	slices.SortFunc(runs, func(a, b oldRun) int { return b.Finished.Compare(a.Finished) })
	return runs, nil
}

func readOld(root *os.Root, name string) (run oldRun, err error) {
	f, err := root.OpenFile(path.Join(name, "summary.json"), os.O_RDONLY|trust.NoFollow|trust.NonBlock, 0)
	if err != nil {
		return run, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || !trust.Mine(info) {
		return run, errors.Join(errNotOurs, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSummary))
	if err != nil {
		return run, err
	}
	run.name = name
	return run, json.Unmarshal(b, &run)
}

// removeRun removes a run's folder, unless something lies in it that is to stay.
func removeRun(root *os.Root, name string) (bool, error) {
	folder, err := root.OpenRoot(name)
	if err != nil {
		return false, err
	}
	defer folder.Close()
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if kind := RunFile(e.Name()); kind == "" || kind == "rejects" || e.IsDir() {
			return false, nil
		}
	}
	for _, e := range entries {
		if err := folder.Remove(e.Name()); err != nil {
			return false, err
		}
	}
	return true, root.Remove(name)
}
