package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"leadferry/internal/disk"
	"leadferry/internal/lazyregexp"
)

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
		at := int64(0)
		if e, ok := errors.AsType[*json.SemanticError](err); ok {
			at = e.ByteOffset
		} else if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			at = e.ByteOffset
		}
		return nil, fmt.Errorf("is not the summary of a run that this version understands%s: something else stands at byte %d", version, at)
	}
	known := slices.Contains([]string{"complete", "attention", "stopped", "interrupted"}, s.Outcome)
	if s.RunID == "" || s.Command == "" || !known {
		return nil, errors.New("is not the summary of a run: it lacks run_id, command or outcome")
	}
	s.read = true
	return &s, nil
}

const (
	mostNames     = 10_000  // of a folder that are looked at
	mostOfSummary = 4 << 20 // bytes: what is asked for stands near its beginning
)

// ReadOld reads the summary of an earlier run as far as it says what became of it: run,
// outcome, checkpoint, target, rows and requests. The summary of another user counts as
// none, but that of the user who called sudo.
func ReadOld(path string) (*Summary, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|disk.NoFollow|disk.NonBlock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := disk.StatOpen(f); err != nil || !info.Mode().IsRegular() || !disk.Invokers(info) {
		return nil, errors.Join(err, errNotOurs)
	}
	dec := jsontext.NewDecoder(io.LimitReader(f, mostOfSummary), jsontext.AllowInvalidUTF8(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return nil, errors.Join(err, fs.ErrInvalid)
	}
	s := &Summary{SummaryPath: path}
	parts := map[string]any{
		"run_id": &s.RunID, "dry_run": &s.DryRun, "outcome": &s.Outcome, "finished_at": &s.FinishedAt,
		"checkpoint": &s.Checkpoint, "target": &s.Target, "rows": &s.Rows, "requests": &s.Requests,
	}
	for len(parts) > 0 {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() == '}' {
			return nil, errors.Join(err, fs.ErrInvalid)
		}
		part := parts[name.String()]
		delete(parts, name.String())
		if part == nil {
			part = new(jsontext.Value)
		}
		if err := json.UnmarshalDecode(dec, part); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// RunsFolder is where run folders stand, in the folder that the program was started in.
const RunsFolder = "leadferry-runs"

// Old reads the summaries of the newest runs, most at most, whose folders lie in the
// parents. This must cost a run next to nothing, whatever lies there.
func Old(parents []string, most int) []*Summary {
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
			if info, err := os.Lstat(path); err == nil && e.IsDir() && disk.Invokers(info) {
				found = append(found, file{path, info.ModTime()})
			}
		}
	}
	slices.SortFunc(found, func(a, b file) int { return b.at.Compare(a.at) })
	var all []*Summary
	for _, f := range found[:min(len(found), most)] {
		if s, err := ReadOld(f.path); err == nil {
			all = append(all, s)
		}
	}
	return all
}

var runFolder = lazyregexp.New(`^\d{8}T\d{6}Z-[a-z]+-[0-9a-f]{8}$`)

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
	runs := slices.DeleteFunc(Old([]string{parent}, mostNames), func(s *Summary) bool {
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
		if err := removeRun(root, filepath.Base(folder)); err != nil { // perhaps somebody has a file of it open: the next run tries again
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
		if kind := RunFile(e.Name()); err != nil || kind == "" || kind == "rejects" || e.IsDir() || !disk.Mine(info) {
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
