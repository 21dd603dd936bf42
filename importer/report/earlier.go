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

// mostRead is the largest summary that is read, in bytes. Summaries of leadferry have at most a tenth of it.
const mostRead = 16 << 20

// Read reads the summary of a finished run; path is its folder or the summary itself. A file that is no summary, or
// that this version does not understand, is an error. Texts of the summary may be harmful: escape them.
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

// Newest reads the summaries of the user's newest runs in the parents, at most most; with sudo also its caller's.
func Newest(parents []string, most int) []*Summary {
	written := map[string]time.Time{} // by path of the summary
	for _, parent := range parents {
		entries, _ := os.ReadDir(parent) // none if it cannot be read
		for _, e := range entries {
			path := filepath.Join(parent, e.Name(), summaryFile)
			if info, err := os.Lstat(path); err == nil && e.IsDir() && info.Mode().IsRegular() && disk.Mine(info) {
				written[path] = info.ModTime()
			}
		}
	}
	newest := slices.SortedFunc(maps.Keys(written), func(a, b string) int { // names of folders begin with the time
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

// LastRejects are the rejects of the last finished run of the same command, mapping and target, each by a hash.
type LastRejects struct {
	At    time.Time // when that run began
	seed  maphash.Seed
	since map[uint64]string
}

const (
	mostRuns = 200     // summaries to look at
	mostOld  = 200_000 // rows to compare; further rows count as new
)

// ReadBefore looks for it in the run's own folder, beside it and in RunsFolder; nil: there is none that can be read.
func ReadBefore(own string, like *Summary) *LastRejects {
	all := Newest([]string{RunsFolder, filepath.Dir(filepath.Clean(own))}, mostRuns)
	if s, err := Read(filepath.Join(own, summaryFile)); err == nil {
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
			path = f.Path // named by a flag
		}
		if eachNote(path, notePrefix, b.add) != nil {
			return nil
		}
	}
	return b
}

// Since returns since when a row has needed attention for the same reason; "": since now.
func (b *LastRejects) Since(rej *Reject) string {
	if b == nil {
		return ""
	}
	return b.since[b.hash(rej.shown())]
}

// answered matches what all texts about a refusal have in common: later runs do not have the service's words.
var answered = spelling.Form(`HTTP [0-9]{3}`)

// hash identifies a case by key, outcome and reason. A row without a key is identified by its line.
func (b *LastRejects) hash(n Reject) uint64 {
	if n.Key == "" {
		n.Key = "\x00" + strconv.Itoa(n.Line)
	}
	if n.Outcome == "rejected" {
		n.Error = answered().FindString(n.Error)
	}
	return maphash.String(b.seed, strings.Join([]string{n.Namespace, n.Key, n.Outcome, n.Error}, "\x00"))
}

// add takes a row of rejects. A person may have edited its times.
func (b *LastRejects) add(rej Reject) {
	if _, err := time.Parse(time.RFC3339, rej.Since); err != nil {
		rej.Since = b.At.UTC().Format(time.RFC3339)
	}
	if len(b.since) < mostOld {
		b.since[b.hash(rej)] = rej.Since
	}
}

// eachNote calls f for the rows of a file of a run, as the run left it or as a person saved it again. In CSV, it reads
// the columns that begin with prefix, such as those of rejects.
func eachNote(path, prefix string, f func(Reject)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<16)
	if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = in.Discard(len(mark)) // it was read before
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
	head, _ := in.Peek(in.Size()) // as many bytes as there are
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

// Holds reports whether a results, reconciliation or rejects file of a run has a row whose key is wanted.
func Holds(path string, wanted func(namespace, key string) bool) (found bool) {
	prefix := ""
	if RunFile(filepath.Base(path)) == "rejects" {
		prefix = notePrefix
	}
	// A file that cannot be read has none.
	_ = eachNote(path, prefix, func(n Reject) { found = found || wanted(n.Namespace, n.Key) })
	return found
}
