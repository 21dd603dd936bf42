package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"leadferry/internal/disk"
	"leadferry/internal/spelling"
)

// mostRead is the largest summary that Read accepts, in bytes. The summaries of leadferry are at most a tenth of that.
const mostRead = 16 << 20

// Read reads the summary of a finished run; path is the run's folder or the summary. A file that is not a summary, or
// that this version does not understand, is an error. The file may come from anybody: escape texts before showing them.
func Read(path string) (*Summary, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		path = filepath.Join(path, summaryFile)
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Size() > mostRead:
		return nil, fmt.Errorf("%s is too large for the summary of a run", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Summary{SummaryPath: path, read: true}
	err = json.Unmarshal(text, s, jsontext.AllowInvalidUTF8(true))
	known := slices.Contains([]string{"complete", "attention", "stopped", "interrupted"}, s.Outcome)
	if err != nil || s.RunID == "" || s.Command == "" || !known {
		return nil, fmt.Errorf("%s is not the summary of a run that this version understands", path)
	}
	return s, nil
}

// Newest returns the summaries of the user's newest runs in parents, at most `most`. It leaves out what it cannot read.
func Newest(parents []string, most int) []*Summary {
	written := map[string]time.Time{} // by path of the summary
	for _, parent := range parents {
		entries, _ := os.ReadDir(parent) // a parent that cannot be read has no runs
		for _, e := range entries {
			path := filepath.Join(parent, e.Name(), summaryFile)
			if info, err := os.Lstat(path); err == nil && e.IsDir() && info.Mode().IsRegular() && disk.Mine(info) {
				written[path] = info.ModTime()
			}
		}
	}
	newest := slices.SortedFunc(maps.Keys(written), func(a, b string) int { // a folder's name begins with the time
		return cmp.Or(written[b].Compare(written[a]), cmp.Compare(b, a))
	})
	var all []*Summary
	for _, path := range newest[:min(len(newest), most)] {
		if s, err := Read(path); err == nil {
			all = append(all, s)
		}
	}
	return all
}

// LastRejects are the rejects of the last finished run of the same command, mapping and target.
type LastRejects struct {
	At    time.Time // when that run began
	seed  maphash.Seed
	since map[uint64]string // by hash of a reject: when it began to need attention
}

const (
	mostRuns = 200     // summaries to look at
	mostOld  = 200_000 // rows to compare; further rows count as new
)

// ReadBefore returns the rejects of the last run that was like this one, or nil if there is none that can be read. It
// looks for the summary that this run will replace, beside its folder, and in RunsFolder.
func ReadBefore(own Files, like *Summary) *LastRejects {
	all := Newest([]string{RunsFolder, filepath.Dir(filepath.Clean(own.Dir))}, mostRuns)
	if s, err := Read(own.path(own.Summary, summaryFile)); err == nil {
		all = append(all, s)
	}
	runs := slices.DeleteFunc(all, func(s *Summary) bool {
		finished := s.Outcome == "complete" || s.Outcome == "attention"
		same := s.Mapping.Path == like.Mapping.Path || s.Mapping.SHA256 == like.Mapping.SHA256
		return !finished || s.DryRun || !same || s.Command != like.Command || s.Target != like.Target ||
			s.Fleet != like.Fleet || s.Shard != like.Shard
	})
	if len(runs) == 0 {
		return nil
	}
	last := slices.MaxFunc(runs, func(a, b *Summary) int { return a.FinishedAt.Compare(b.FinishedAt) })
	b := &LastRejects{At: last.StartedAt, seed: maphash.MakeSeed(), since: map[uint64]string{}}
	for _, f := range last.Files {
		if f.Name != "rejects" {
			continue
		}
		path := filepath.Join(filepath.Dir(last.SummaryPath), filepath.Base(f.Path))
		if _, err := os.Stat(path); err != nil {
			path = f.Path // a flag named another place
		}
		if eachNote(path, notePrefix, b.add) != nil {
			return nil
		}
	}
	return b
}

// Since returns when a row began to need attention for the same reason; "" means in this run.
func (b *LastRejects) Since(rej *Reject) string {
	if b == nil {
		return ""
	}
	return b.since[b.hash(rej.shown())]
}

// httpStatus matches the part of a refusal's text that later runs repeat: they do not have the service's words.
var httpStatus = spelling.Form(`HTTP [0-9]{3}`)

// hash identifies a reject by key, outcome and reason. It identifies a row without a key by its line.
func (b *LastRejects) hash(n Reject) uint64 {
	if n.Key == "" {
		n.Key = "\x00" + strconv.Itoa(n.Line)
	}
	switch n.Outcome {
	case "rejected":
		n.Error = httpStatus().FindString(n.Error)
	case "in_doubt": // later runs say only that it is still in doubt
		n.Error = ""
	}
	return maphash.String(b.seed, strings.Join([]string{n.Namespace, n.Key, n.Outcome, n.Error}, "\x00"))
}

// add adds a reject. Its time counts only if it is valid: a person may have edited it.
func (b *LastRejects) add(rej Reject) {
	if _, err := time.Parse(time.RFC3339, rej.Since); err != nil {
		rej.Since = b.At.UTC().Format(time.RFC3339)
	}
	if len(b.since) < mostOld {
		b.since[b.hash(rej)] = rej.Since
	}
}

// eachNote calls f for each row of a file that a run wrote, even if a person saved it again. In CSV, it reads only the
// columns that begin with prefix.
func eachNote(path, prefix string, f func(Reject)) error {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // a named pipe would wait for its writer
		return fmt.Errorf("%s is not a file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<16)
	if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = in.Discard(len(mark)) // cannot fail after Peek
	}
	if filepath.Ext(strings.TrimSuffix(path, partialEnd)) == "."+jsonl {
		return eachObject(in, f)
	}
	return eachLine(in, prefix, f)
}

func eachObject(in *bufio.Reader, f func(Reject)) error {
	for {
		line, err := in.ReadBytes('\n')
		var row struct {
			Note Reject `json:"leadferry"`
		}
		if json.Unmarshal(bytes.TrimSpace(line), &row) == nil {
			f(row.Note)
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func eachLine(in *bufio.Reader, prefix string, f func(Reject)) error {
	head, _ := in.Peek(in.Size()) // a short file gives fewer bytes
	_, behind, found := bytes.Cut(head, []byte(prefix+"line"))
	if !found || len(behind) == 0 {
		return fmt.Errorf("it lacks the column %sline", prefix)
	}
	r := csv.NewReader(in)
	r.Comma, _ = utf8.DecodeRune(bytes.TrimPrefix(behind, []byte(`"`)))
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	for names := []string(nil); ; {
		row, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case names == nil:
			names = row
			continue
		}
		cells := map[string]string{}
		for i, cell := range row[:min(len(row), len(names))] {
			if name, ours := strings.CutPrefix(names[i], prefix); ours {
				cells[name] = cell
			}
		}
		line, _ := strconv.Atoi(cells["line"])
		f(Reject{
			Line: line, Key: cells["key"], Namespace: cells["namespace"], Outcome: cells["outcome"],
			Since: cells["since"], Error: strings.TrimPrefix(cells["error"], "'"),
		})
	}
}

// Holds reports whether a results, reconciliation or rejects file of a run has a row whose key is wanted. It returns
// false for a file that cannot be read.
func Holds(path string, wanted func(namespace, key string) bool) (found bool) {
	prefix := ""
	if RunFile(filepath.Base(path)) == "rejects" {
		prefix = notePrefix
	}
	_ = eachNote(path, prefix, func(n Reject) { found = found || wanted(n.Namespace, n.Key) })
	return found
}
