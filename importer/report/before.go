package report

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"leadferry/internal/spelling"
)

// Before is what needed attention in the last finished run of the same command, mapping and target: the rows of its
// rejects, by a hash of key, outcome and reason.
type Before struct {
	At    time.Time // when that run began
	seed  maphash.Seed
	since map[uint64]time.Time
}

const (
	mostRuns = 200     // summaries that are looked at
	mostOld  = 200_000 // rows that are compared; further ones count as new
)

// ReadBefore finds that run among the folders in parents, and in the run's own folder, which it may use again; nil
// where none is at hand, or its rejects are gone.
func ReadBefore(parents []string, own string, like *Summary) *Before {
	runs := Newest(parents, mostRuns)
	if s, err := Read(filepath.Join(own, summaryFile)); own != "" && err == nil {
		runs = append(runs, s)
	}
	runs = slices.DeleteFunc(runs, func(s *Summary) bool {
		finished := s.Outcome == "complete" || s.Outcome == "attention"
		same := s.Mapping.Path == like.Mapping.Path || s.Mapping.SHA256 == like.Mapping.SHA256
		return !finished || s.DryRun || !same || s.Command != like.Command || s.Target != like.Target ||
			s.Fleet != like.Fleet || s.Shard != like.Shard
	})
	if len(runs) == 0 {
		return nil
	}
	last := slices.MaxFunc(runs, func(a, b *Summary) int { return a.FinishedAt.Compare(b.FinishedAt) })
	b := &Before{At: last.StartedAt, seed: maphash.MakeSeed(), since: map[uint64]time.Time{}}
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

// Since says since when a row has needed attention, for the same reason; false: since now.
func (b *Before) Since(rej *Reject) (at time.Time, old bool) {
	if b == nil {
		return at, false
	}
	at, old = b.since[b.hash(rej.shown())]
	return at, old
}

// answered is what is the same in every text about a refusal: later runs do not have the service's words.
var answered = spelling.Form(`HTTP [0-9]{3}`)

// hash is of what makes a row the same case; one without a key is known by its line.
func (b *Before) hash(n Reject) uint64 {
	if n.Key == "" {
		n.Key = "\x00" + strconv.Itoa(n.Line)
	}
	if n.Outcome == "rejected" {
		n.Error = answered().FindString(n.Error)
	}
	return maphash.String(b.seed, strings.Join([]string{n.Namespace, n.Key, n.Outcome, n.Error}, "\x00"))
}

// add takes a row of rejects.
func (b *Before) add(rej Reject) {
	if rej.Since.IsZero() {
		rej.Since = b.At
	}
	if len(b.since) < mostOld {
		b.since[b.hash(rej)] = rej.Since
	}
}

// eachNote calls f for the rows of a file of a run, as the run has left it or as a person has saved it again. In CSV
// its columns begin with prefix, as those of rejects do.
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
		if json.Unmarshal(bytes.TrimSpace(line), &row) == nil || row.Note.Key != "" { // its times may have been edited
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
	head, _ := in.Peek(in.Size()) // as much as there is
	_, behind, found := bytes.Cut(head, []byte(prefix+"line"))
	if !found || len(behind) == 0 {
		return fmt.Errorf("it lacks the column %sline", prefix)
	}
	r := csv.NewReader(in)
	r.Comma, _ = utf8.DecodeRune(bytes.TrimPrefix(behind, []byte(`"`)))
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	names, err := r.Read()
	for err == nil {
		var row []string
		if row, err = r.Read(); err != nil {
			break
		}
		cell := func(name string) string {
			if i := slices.Index(names, prefix+name); i >= 0 && i < len(row) {
				return row[i]
			}
			return ""
		}
		line, _ := strconv.Atoi(cell("line"))
		since, _ := time.Parse(time.RFC3339, cell("since"))
		f(Reject{
			Line: line, Key: cell("key"), Namespace: cell("namespace"), Outcome: cell("outcome"), Since: since,
			Error: strings.TrimPrefix(cell("error"), "'"),
		})
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Holds reports whether a results, reconciliation or rejects file of a run has a row whose key is wanted.
func Holds(path string, wanted func(namespace, key string) bool) (found bool) {
	prefix := ""
	if RunFile(filepath.Base(path)) == "rejects" {
		prefix = notePrefix
	}
	// What cannot be read holds nothing that anybody could name.
	_ = eachNote(path, prefix, func(n Reject) { found = found || wanted(n.Namespace, n.Key) })
	return found
}
