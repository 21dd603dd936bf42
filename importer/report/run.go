// Package report writes how the rows of a run ended: results, rejects, the summary, the text for people, and progress.
//
// A row's way ends here. The checkpoint holds the truth, and these files repeat it: if they are lost, another run
// writes them again. A Run takes rows as they end. A Summary holds the figures of the whole run: JSON, text, metrics.
//
// Promises: a file gets its name only when it is complete and synced; until then it is NAME.partial. Its folder is held
// open, symbolic links are not followed, and nothing is written to another user's pipe. Files have mode 0600 (metrics
// 0644). The run's folder has mode 0700 and holds files of one run. Texts from outside are cut and escaped and, in CSV,
// do not begin like a formula. Keys, IDs and the row's own cells stay as they are. A failed write is an error.
package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// None is the path of a file that is not written. Files.Summary may also be "-": the caller then calls WriteJSON.
const None = "none"

// Files says where a run writes its files. A file with the path "" goes into Dir. Without Dir, it is not written.
type Files struct {
	Dir, Results, Rejects, Summary string
	Pull                           string // statuses for the CRM; "": not written
	Reconciles                     bool   // a reconciliation is wanted
	Reconciliation                 string // its path
	Problems                       string // a path, or Annotations: to Annotate; "": not written
	Annotate                       io.Writer
	ProblemValues                  bool // problems hold the values of cells, which are people's data

	Columns    []string // the rows' own columns, which the results have after their usual ones
	Namespaced bool     // results hold the namespace of the keys

	Page func(io.Writer, *Summary) error // writes report.html; nil: it is not written
}

// path returns the path of a file: the one that a flag names, else the name in Dir; "" or None if it is not wanted.
func (f Files) path(named, name string) string {
	if named != "" || f.Dir == "" {
		return named
	}
	return filepath.Join(f.Dir, name)
}

// Run is the files of one run, for one goroutine at a time. After the first error of a file, every call returns it.
type Run struct {
	files   Files    // with full paths, "" or None for a file that is not wanted
	folder  *os.Root // the run's own; nil if there is none
	earlier []string // names of files that an earlier run left in that folder

	outputs                                      []*output // all that are open or complete
	results, reconciliation, pull, page, summary *output   // nil if not wanted
	unusedRejects                                *output   // the file of --rejects; nil after the first reject
	rejects                                      []*output // each holds rows of one header, or JSONL
	problems                                     *output   // nil: not wanted, or annotations go elsewhere
	annotated                                    int       // how many annotations were written
	err                                          error     // the first failure; nothing is written after it
}

// Writes reports whether any file about rows is written.
func (r *Run) Writes() bool { return len(r.outputs) > 0 || r.files.Problems != "" }

// OpenRun makes the folder and opens the files: a bad path fails before the first request. Call Finish afterwards.
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
		if r.folder, r.earlier, r.err = makeFolder(f.Dir); r.err != nil {
			return nil, fmt.Errorf("make the run's folder: %w", r.err)
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
	r.results, r.unusedRejects = r.create("results", f.Results), r.create("rejects", f.Rejects)
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
// Finish removes an empty rejects file, and files that an earlier run left in the folder and this run did not replace.
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

// complete writes a whole file, if it is wanted. If the write fails, s says so and does not list the file.
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
		case o == r.unusedRejects: // people would take an old file of this name for this run's
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
