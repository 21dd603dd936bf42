// Package report writes how the rows of a run ended: results, rejects, the summary, the text for people, and progress.
//
// A row's way ends here. The checkpoint holds the truth, and these files repeat it: if they are lost, running again
// writes them anew. Rows go to a Run as they end. What concerns the whole run is in its Summary: JSON, text, metrics.
//
// Promises: a file gets its name only when it is complete and synced; until then it is NAME.partial. Its folder is held
// open, symbolic links are not followed, and nothing is written to another user's pipe. Files are 0600 (metrics 0644),
// the run's folder 0700, with the files of one run. Texts from outside are cut, have no control characters and, in CSV,
// do not begin like a formula; keys, IDs and the row's own cells stay as they are. What cannot be written is an error.
package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// None as a path: it is not written. Summary may also be "-": the caller then writes it to standard output (WriteJSON).
const None = "none"

// Files says where a run leaves its files. Dir "" makes no folder. A file with the path "" goes into it, or nowhere.
type Files struct {
	Dir, Results, Rejects, Summary string
	Pull                           string // what the CRM should take over; only if named
	Reconciles                     bool   // a reconciliation is wanted
	Reconciliation                 string // where it goes
	Problems                       string // only if named; Annotations go to Annotate
	Annotate                       io.Writer
	ProblemValues                  bool // problems hold the values: people's data

	Columns    []string // of the results, besides those of every run: the rows' own
	Namespaced bool     // results hold the namespace of the keys

	Page func(io.Writer, *Summary) error // writes report.html into the folder; nil: there is none
}

// path returns where a file is: the path that a flag names, else in the folder; "" if it is not wanted.
func (f Files) path(named, name string) string {
	switch {
	case named == None, named == "" && f.Dir == "":
		return ""
	case named != "":
		return named
	}
	return filepath.Join(f.Dir, name)
}

// Run is the files of one run, for one goroutine at a time. After the first error of a file, every call returns it.
type Run struct {
	files   Files    // with full paths, "" for a file that is not wanted
	folder  *os.Root // the run's own; nil if there is none
	earlier []string // names of files that an earlier run left in that folder

	outputs                                      []*output // all that are open or complete
	results, reconciliation, pull, page, summary *output   // each nil: not wanted
	named                                        *output   // the file of --rejects until the first reject
	rejects                                      []*output // each holds rows of one header, or JSONL
	problems                                     *output   // nil: not wanted, or annotations go elsewhere
	annotated                                    int       // how many annotations were written
	err                                          error     // the first failure; nothing is written after it
}

// Writes reports whether any file about rows is written.
func (r *Run) Writes() bool { return len(r.outputs) > 0 || r.files.Problems != "" }

// OpenRun makes the folder and opens the files: a bad place is known before the first request. Call Finish afterwards.
func OpenRun(f Files) (*Run, error) {
	if slices.Contains([]string{f.Dir, f.Results, f.Rejects, f.Reconciliation, f.Pull}, "-") {
		return nil, errors.New("only the summary can go to standard output")
	}
	if f.Summary == "-" {
		f.Summary = None
	}
	f.Results, f.Summary = f.path(f.Results, resultsFile), f.path(f.Summary, summaryFile)
	r := &Run{files: f}
	if f.Dir != "" {
		var err error
		if r.folder, r.earlier, err = makeFolder(f.Dir); err != nil {
			return nil, fmt.Errorf("make the run's folder: %w", err)
		}
	}
	if r.open(); r.err != nil {
		for _, o := range r.outputs {
			_ = o.remove()
		}
		return nil, fmt.Errorf("open the run's files: %w", r.err)
	}
	return r, nil
}

func (r *Run) open() {
	f := &r.files
	r.results, r.named = r.create("results", f.Results), r.create("rejects", f.Rejects)
	if f.Reconciles {
		r.reconciliation = r.create("reconciliation", f.path(f.Reconciliation, reconciliationFile))
	}
	r.pull = r.create("pull", f.Pull)
	if f.Page != nil {
		r.page = r.create("page", f.path("", pageFile))
	}
	r.summary = r.create("summary", f.Summary)
	beginLines[Result](r, r.results, f.Columns...)
	beginLines[Compared](r, r.reconciliation)
	r.openProblems()
}

// create opens an output; kind is its name for people. It returns nil if path is "" or None, or after an error.
func (r *Run) create(kind, path string) (o *output) {
	if path == "" || path == None || r.err != nil {
		return nil
	}
	folder, dir := r.folder, filepath.Dir(path)
	if folder == nil || dir != filepath.Clean(r.files.Dir) {
		folder, r.err = os.OpenRoot(dir)
	}
	if r.err == nil {
		o, r.err = create(folder, path)
	}
	if r.err == nil {
		o.kind, r.outputs = kind, append(r.outputs, o)
	}
	return o
}

// Flush passes all lines to the operating system.
func (r *Run) Flush() error {
	for _, o := range r.outputs {
		if r.err == nil {
			r.err = o.buffer.Flush()
		}
	}
	return r.err
}

// Finish gives results and rejects their names, writes page and summary, and makes all of them durable. It notes in s
// where the files are. If rows could not be written, their files stay NAME.partial and s says that the run stopped.
// Finish removes an empty rejects file, and files of an earlier run in the folder that this run did not write again.
func (r *Run) Finish(s *Summary) error {
	defer r.close()
	r.Problems(s.Checks.problems())
	if s.Files = nil; r.Flush() == nil {
		r.err = r.commitRows(s)
	}
	if r.err != nil {
		s.Files = nil
		s.Stopped(Unwritten(r.err))
	}
	s.noteFile(r.summary) // the summary and the page list themselves, too
	s.noteFile(r.page)
	s.escape()
	r.complete(s, r.page, func(w io.Writer) error { return r.files.Page(w, s) })
	if r.complete(s, r.summary, s.WriteJSON) {
		s.SummaryPath = r.summary.path
	}
	return r.err
}

// complete writes a whole file, if it is wanted. If that fails, s says so and does not list the file.
func (r *Run) complete(s *Summary, o *output, write func(io.Writer) error) (done bool) {
	if o == nil {
		return false
	}
	if err := o.complete(write); err != nil {
		s.Files = slices.DeleteFunc(s.Files, func(f NamedFile) bool { return f.Path == o.path })
		if r.err == nil {
			r.err = fmt.Errorf("write %s: %w", o.path, err)
			s.Stopped(Unwritten(r.err))
		}
		return false
	}
	return true
}

func (r *Run) commitRows(s *Summary) error {
	for _, o := range r.outputs {
		var err error
		switch {
		case o == r.summary, o == r.page:
		case o == r.named: // it is empty; an old file of this name would be taken for this run's
			err = o.remove(o.name)
		case o == r.pull && o.lines == nil: // not written
			err = o.remove()
		default:
			err = o.commit()
			s.noteFile(o)
		}
		if err != nil {
			return err
		}
	}
	if err := r.removeOld(); err != nil {
		return fmt.Errorf("remove the files of an earlier run: %w", err)
	}
	s.witnessed = r.folder != nil && r.files.Results == filepath.Join(r.files.Dir, resultsFile)
	return nil
}

func (r *Run) close() {
	if r.folder != nil {
		r.folder.Close()
	}
	for _, o := range r.outputs {
		o.folder.Close()
	}
}
