package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
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

// Run is the files of one run. Its methods may be called by several goroutines.
type Run struct {
	files   Files
	folders map[string]*os.Root // that files lie in, by path
	reused  bool                // the run's folder is an earlier one's

	mu       sync.Mutex
	results  *results // nil: not wanted
	rejects  []*sheet
	named    *output // the file of --rejects until the first reject
	summary  *output // nil: not wanted
	err      error   // the first failure; nothing is written after it
	finished bool

	quit  chan struct{}
	group sync.WaitGroup
}

// flushEvery bounds how long a line waits for its way to the disk.
const flushEvery = time.Second

var errFinished = errors.New("the run's files are closed already")

// OpenRun makes the folder and opens the files, so that a place that cannot be
// written to is known before the first request. Finish must follow.
func OpenRun(f Files) (*Run, error) {
	if f.Dir == None {
		f.Dir = ""
	}
	if f.Results == "-" || f.Rejects == "-" {
		return nil, errors.New("only the summary can go to standard output")
	}
	r := &Run{files: f, folders: map[string]*os.Root{}, quit: make(chan struct{})}
	if f.Dir != "" {
		folder, err := makeFolder(f.Dir)
		if err != nil {
			return nil, fmt.Errorf("make the run's folder: %w", err)
		}
		r.folders[f.Dir], r.reused = folder, hasRun(folder)
	}
	if err := r.open(); err != nil {
		r.discard()
		return nil, fmt.Errorf("open the run's files: %w", err)
	}
	r.group.Go(r.flushing)
	return r, nil
}

func (r *Run) open() (err error) {
	if path := r.ResultsPath(); path != "" {
		out, err := r.create(path)
		if err != nil {
			return err
		}
		if r.results, err = newResults(out, r.files.Columns); err != nil {
			return err
		}
	}
	if path := r.files.Rejects; path != "" && path != None {
		if r.named, err = r.create(path); err != nil {
			return err
		}
	}
	if path := r.SummaryPath(); path != "" {
		r.summary, err = r.create(path)
	}
	return err
}

// create opens an output in its folder, which stays open for all that lie there.
func (r *Run) create(path string) (*output, error) {
	folder, err := r.folder(path)
	if err != nil {
		return nil, err
	}
	return create(folder, path)
}

func (r *Run) folder(path string) (*os.Root, error) {
	dir := filepath.Dir(path)
	if r.files.Dir != "" && filepath.Clean(r.files.Dir) == dir {
		dir = r.files.Dir
	}
	if folder := r.folders[dir]; folder != nil {
		return folder, nil
	}
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	r.folders[dir] = folder
	return folder, nil
}

// outputs lists all files that are open or complete.
func (r *Run) outputs() []*output {
	var outs []*output
	if r.results != nil {
		outs = append(outs, r.results.out)
	}
	for _, s := range r.rejects {
		outs = append(outs, s.out)
	}
	for _, o := range []*output{r.named, r.summary} {
		if o != nil {
			outs = append(outs, o)
		}
	}
	return outs
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
	return r.path(r.files.Summary, "summary.json")
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

// Result writes the line of a row, within a second or 1,000 rows. An error is the
// first that any of the run's files met.
func (r *Run) Result(res Result) error {
	return r.locked(func() error {
		if r.results == nil {
			return nil
		}
		return r.results.add(&res)
	})
}

// Reject writes a row that needs attention, as it was read from in. Rows go to the
// file of their header; rows without Names have those of in.
func (r *Run) Reject(in Input, rej Reject) error {
	return r.locked(func() error {
		if rej.Names == nil {
			rej.Names = in.Names
		}
		s, err := r.sheet(in, rej.Names)
		if s == nil || err != nil {
			return err
		}
		return s.write(&rej)
	})
}

// locked runs one act of writing, unless an earlier one failed.
func (r *Run) locked(write func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return errFinished
	}
	if r.err == nil {
		r.err = write()
	}
	return r.err
}

// flushing hands what has gathered to the operating system once a second.
func (r *Run) flushing() {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.quit:
			return
		case <-tick.C:
			// The next call or Finish tells the error.
			_ = r.Flush()
		}
	}
}

// Flush hands all lines to the operating system. An error is the first that any of the
// run's files met.
func (r *Run) Flush() error { return r.locked(r.flush) }

func (r *Run) flush() error {
	if r.results != nil {
		if err := r.results.flush(); err != nil {
			return err
		}
	}
	for _, s := range r.rejects {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return nil
}
