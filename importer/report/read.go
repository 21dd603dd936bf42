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

// ReadWitness reads the summary of an earlier run as far as it says what became of it: run,
// outcome, checkpoint, target, rows and requests. The summary of another user counts as
// none, but that of the user who called sudo.
func ReadWitness(path string) (*Summary, error) {
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

// Newest reads the summaries of the newest runs, most at most, whose folders lie in the
// parents. This must cost a run next to nothing, whatever lies there.
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
			if info, err := os.Lstat(path); err == nil && e.IsDir() && disk.Invokers(info) {
				found = append(found, file{path, info.ModTime()})
			}
		}
	}
	slices.SortFunc(found, func(a, b file) int { return b.at.Compare(a.at) })
	var all []*Summary
	for _, f := range found[:min(len(found), most)] {
		if s, err := ReadWitness(f.path); err == nil {
			all = append(all, s)
		}
	}
	return all
}
