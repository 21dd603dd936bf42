// Package report writes what became of the rows of a run: results, rejects, the
// summary for scripts, the text for people, and the progress while it goes on.
//
// It is at the end of a row's way. The checkpoint holds the truth and these files repeat it: when they are lost,
// running again writes them anew. Rows go to a Run as they end; what the run as a whole has to say is in its Summary,
// which is written as JSON, as text for people and as metrics.
//
// Promises: a file bears its name only once it is complete and synced, until then NAME.partial is beside it; the folder
// of each is held open, no symbolic link is followed to write one, and no pipe of another user is written to; all are
// 0600 (except metrics, which another program reads: 0644), the run's folder is 0700 and holds the files of one run.
// Texts from outside are cut, shown without control characters and, in CSV, without a leading formula character; keys,
// IDs and the row's own cells stay as they are. What cannot be written is an error.
package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// None, in place of a path, means that the folder or file is not written. Summary may also be "-": it goes to standard
// output, which is the caller's (Summary.WriteJSON).
const None = "none"

// Files says where a run leaves its files. Dir "" makes no folder. A file
// whose path is "" lies in the folder, and is not written without one.
type Files struct {
	Dir, Results, Rejects, Summary string
	Pull                           string // what the CRM should take over; in no folder by itself
	Reconciles                     bool   // a reconciliation is wanted
	Reconciliation                 string // where it goes
	Problems                       string // in no folder by itself; Annotations go to Annotate
	Annotate                       io.Writer
	ProblemValues                  bool // problems carry the values: people's data

	Columns    []string // of the results beside those that all have: the rows' own
	Namespaced bool     // results name the namespace of the keys

	Page func(io.Writer, *Summary) error // writes report.html into the folder; nil: there is none
}

// path is where a file lies that a flag names, or else in the folder; "" where it is not wanted.
func (f Files) path(named, name string) string {
	switch {
	case named == None, named == "" && f.Dir == "":
		return ""
	case named != "":
		return named
	}
	return filepath.Join(f.Dir, name)
}

// Run is the files of one run. One goroutine at a time may use it. The first error that any of them meets is that of
// every later call.
type Run struct {
	files   Files    // paths where there is one, "" where a file is not wanted
	folder  *os.Root // the run's own; nil without one
	earlier []string // names of what an earlier run left in that folder

	outputs                                      []*output // all that are open or complete
	results, reconciliation, pull, page, summary *output   // each nil: not wanted
	named                                        *output   // the file of --rejects until the first reject
	rejects                                      []*output // each holds rows of one header, or JSONL
	problems                                     *output   // nil: not wanted, or annotations are
	annotated                                    int       // annotations that were written
	err                                          error     // the first failure; nothing is written after it
}

// Writes reports whether anything of rows is written.
func (r *Run) Writes() bool { return len(r.outputs) > 0 || r.files.Problems != "" }

// OpenRun makes the folder and opens the files, so that a place that cannot be
// written to is known before the first request. Finish must follow.
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

// create opens an output of a kind, by which people know it; nil where path is "" or None, or after an error.
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

// Flush hands all lines to the operating system.
func (r *Run) Flush() error {
	for _, o := range r.outputs {
		if r.err == nil {
			r.err = o.buffer.Flush()
		}
	}
	return r.err
}

// Finish gives results and rejects their names, writes page and summary, and makes all of it durable; it also tells s
// where the files lie. When rows could not be written, their files keep the name NAME.partial and s says that the run
// stopped. A rejects file that nothing went into is not left behind, nor what an earlier run left in the folder and
// this one has not written again.
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
	s.left(r.summary) // of which it tells itself, as does the page
	s.left(r.page)
	s.escape()
	r.complete(s, r.page, func(w io.Writer) error { return r.files.Page(w, s) })
	if r.complete(s, r.summary, s.WriteJSON) {
		s.SummaryPath = r.summary.path
	}
	return r.err
}

// complete writes a file as a whole, if it is wanted. What cannot be written is told, and was not left.
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
		case o == r.named: // nothing went into it; what an earlier run left there would be taken for this one's
			err = o.remove(o.name)
		case o == r.pull && o.lines == nil: // not written
			err = o.remove()
		default:
			err = o.commit()
			s.left(o)
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
