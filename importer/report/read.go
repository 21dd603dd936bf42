package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

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

// parse reads a summary from its JSON.
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
