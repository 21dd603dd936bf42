// Package report writes what became of the rows of a run: results, rejects, the
// summary for scripts, the text for people, and the progress while it goes on.
//
// It stands at the end of a row's way. The checkpoint holds the truth and these
// files repeat it: when they are lost, running again writes them anew.
//
// Promises: a file bears its name only once it is complete and synced, until then
// NAME.partial stands beside it; the folder of each is held open, no symbolic link is
// followed to write one, and no pipe of another user is written to; all are 0600 (but for
// metrics, which another program reads: 0644), the run's folder is 0700 and holds the
// files of one run. Texts from outside are cut, shown without control characters and, in
// CSV, without a leading formula character; keys, IDs and the row's own cells stay as they
// are. What cannot be written is an error.
package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// None, in place of a path, means that the folder or file is not written. Summary
// may also be "-": it goes to standard output, which is the caller's
// (Summary.WriteJSON).
const None = "none"

// Files says where a run leaves its files. Dir "" or "none" makes no folder. A file
// whose path is "" lies in the folder, and is not written without one.
type Files struct {
	Dir, Results, Rejects, Summary string

	Columns []string // of the results beside those that all have: the rows' own
}

// Wanted reports whether any file or folder is.
func (f Files) Wanted() bool {
	return f.Dir != "" || f.Results != "" || f.Rejects != "" || f.Summary != ""
}

// Run is the files of one run. One goroutine at a time may use it.
type Run struct {
	files  Files
	folder *os.Root // the run's own; nil without one
	reused bool     // that folder is an earlier run's

	results *results // nil: not wanted
	rejects []*sheet
	named   *output // the file of --rejects until the first reject
	summary *output // nil: not wanted
	err     error   // the first failure; nothing is written after it
}

// OpenRun makes the folder and opens the files, so that a place that cannot be
// written to is known before the first request. Finish must follow.
func OpenRun(f Files) (*Run, error) {
	if f.Dir == None {
		f.Dir = ""
	}
	if f.Results == "-" || f.Rejects == "-" {
		return nil, errors.New("only the summary can go to standard output")
	}
	r := &Run{files: f}
	if f.Dir != "" {
		folder, err := makeFolder(f.Dir)
		if err != nil {
			return nil, fmt.Errorf("make the run's folder: %w", err)
		}
		r.folder, r.reused = folder, hasRun(folder)
	}
	if err := r.open(); err != nil {
		for _, o := range r.outputs() {
			o.discard()
		}
		return nil, fmt.Errorf("open the run's files: %w", err)
	}
	return r, nil
}

func (r *Run) open() error {
	results, err := r.create(r.ResultsPath())
	if err != nil {
		return err
	}
	if results != nil {
		if r.results, err = newResults(results, r.files.Columns); err != nil {
			return err
		}
	}
	if r.files.Rejects != None {
		if r.named, err = r.create(r.files.Rejects); err != nil {
			return err
		}
	}
	r.summary, err = r.create(r.SummaryPath())
	return err
}

// create opens an output; nil where path is "".
func (r *Run) create(path string) (*output, error) {
	if path == "" {
		return nil, nil
	}
	dir := filepath.Dir(path)
	if r.folder != nil && dir == filepath.Clean(r.files.Dir) {
		return create(r.folder, path)
	}
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return create(folder, path)
}

// rowFiles lists the files of rows that are open or complete.
func (r *Run) rowFiles() []*output {
	var outs []*output
	if r.results != nil {
		outs = append(outs, r.results.out)
	}
	for _, s := range r.rejects {
		outs = append(outs, s.out)
	}
	if r.named != nil {
		outs = append(outs, r.named)
	}
	return outs
}

func (r *Run) outputs() []*output {
	if r.summary == nil {
		return r.rowFiles()
	}
	return append(r.rowFiles(), r.summary)
}

// Dir is the run's folder, or "".
func (r *Run) Dir() string { return r.files.Dir }

// ResultsPath is where the results are written to, or "".
func (r *Run) ResultsPath() string { return r.path(r.files.Results, "results.csv") }

// SummaryPath is the file that the summary is written to, or "".
func (r *Run) SummaryPath() string {
	if r.files.Summary == "-" {
		return ""
	}
	return r.path(r.files.Summary, summaryFile)
}

// rejectsPaths lists the rejects files: one for each header of CSV inputs, one for
// all JSONL inputs.
func (r *Run) rejectsPaths() []string {
	var paths []string
	for _, s := range r.rejects {
		paths = append(paths, s.out.path)
	}
	return paths
}

func (r *Run) path(named, name string) string {
	switch {
	case named == None, named == "" && r.files.Dir == "":
		return ""
	case named != "":
		return named
	}
	return filepath.Join(r.files.Dir, name)
}

// Result writes the line of a row. An error is the first that any of the run's files met.
func (r *Run) Result(res Result) error {
	if r.err == nil && r.results != nil {
		r.err = r.results.add(res)
	}
	return r.err
}

// Reject writes a row that needs attention, as it was read from in. Rows go to the
// file of their header.
func (r *Run) Reject(in Input, rej Reject) error {
	if r.err != nil {
		return r.err
	}
	var s *sheet
	if s, r.err = r.sheet(in, rej.Names); s != nil && r.err == nil {
		r.err = s.write(&rej)
	}
	return r.err
}

// Flush hands all lines to the operating system. An error is the first that any of the
// run's files met.
func (r *Run) Flush() error {
	if r.results != nil && r.err == nil {
		r.err = r.results.flush()
	}
	for _, s := range r.rejects {
		if r.err == nil {
			r.err = s.flush()
		}
	}
	return r.err
}

// Finish gives results and rejects their names, writes the summary, and makes all
// of it durable; it also tells s where the files lie. When rows could not be
// written, their files keep the name NAME.partial and s says that the run stopped.
// A rejects file that nothing went into is not left behind, nor what an earlier run left
// in the folder and this one has not written again.
func (r *Run) Finish(s *Summary) error {
	if r.err == nil {
		r.err = r.commitRows(s)
	}
	if r.err != nil {
		s.fail(r.err)
	}
	if err := r.commitSummary(s); err != nil {
		err = fmt.Errorf("write the summary: %w", err)
		s.fail(err)
		r.err = errors.Join(r.err, err)
	}
	return r.err
}

// commitRows completes results and rejects.
func (r *Run) commitRows(s *Summary) error {
	if err := r.Flush(); err != nil {
		return fmt.Errorf("write results and rejects: %w", err)
	}
	if err := r.dropNamed(); err != nil {
		return fmt.Errorf("remove the rejects file of an earlier run: %w", err)
	}
	for _, o := range r.rowFiles() {
		if err := o.commit(); err != nil {
			return fmt.Errorf("complete results and rejects: %w", err)
		}
	}
	if err := r.removeOld(); err != nil {
		return fmt.Errorf("remove the files of an earlier run: %w", err)
	}
	s.ResultsPath, s.RejectsPaths = r.ResultsPath(), r.rejectsPaths()
	return nil
}

// dropNamed removes the file that --rejects named when there were no rejects: what
// an earlier run left there would be taken for this one's.
func (r *Run) dropNamed() error {
	out := r.named
	if out == nil {
		return nil
	}
	r.named = nil
	if err := out.discard(); err != nil || out.partial == "" {
		return err
	}
	if err := out.folder.Remove(out.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (r *Run) commitSummary(s *Summary) error {
	if r.summary == nil {
		return nil
	}
	if err := s.WriteJSON(r.summary); err != nil {
		return err
	}
	if err := r.summary.commit(); err != nil {
		return err
	}
	s.SummaryPath, s.run = r.SummaryPath(), r
	return nil
}

// amend writes a summary once more.
func (r *Run) amend(s *Summary) (err error) {
	if r.summary.partial == "" {
		return nil // a pipe has had it
	}
	if r.summary, err = create(r.summary.folder, r.summary.path); err != nil {
		return err
	}
	return r.commitSummary(s)
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
		if e.IsDir() || RunFile(e.Name()) == "" || r.wrote(e.Name()) {
			continue
		}
		if err := r.folder.Remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// wrote reports whether a file in the run's folder is an output of this run, which may
// lie there by another path.
func (r *Run) wrote(name string) bool {
	there, err := r.folder.Lstat(name)
	return err == nil && slices.ContainsFunc(r.outputs(), func(o *output) bool { return o.is(there) })
}
