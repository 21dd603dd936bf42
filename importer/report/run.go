// Package report writes what became of the rows of a run: results, rejects, the
// summary for scripts, the text for people, and the progress while it goes on.
//
// It is at the end of a row's way. The checkpoint holds the truth and these
// files repeat it: when they are lost, running again writes them anew. Rows go to a Run as
// they end; what the run as a whole has to say is in its Summary, which is written as
// JSON, as text for people and as metrics.
//
// Promises: a file bears its name only once it is complete and synced, until then
// NAME.partial is beside it; the folder of each is held open, no symbolic link is
// followed to write one, and no pipe of another user is written to; all are 0600 (except
// metrics, which another program reads: 0644), the run's folder is 0700 and holds the
// files of one run. Texts from outside are cut, shown without control characters and, in
// CSV, without a leading formula character; keys, IDs and the row's own cells stay as they
// are. What cannot be written is an error.
package report

import (
	"errors"
	"fmt"
	"io"
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

// Folder is the run's folder, or "".
func (f Files) Folder() string {
	if f.Dir == None {
		return ""
	}
	return f.Dir
}

// Wanted reports whether any file or folder is.
func (f Files) Wanted() bool {
	return f.Dir != "" || f.Results != "" || f.Rejects != "" || f.Summary != "" || f.Problems != "" || f.Pull != "" ||
		f.Reconciliation != ""
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

// Run is the files of one run. One goroutine at a time may use it.
type Run struct {
	files  Files    // paths where there is one, "" where a file is not wanted
	folder *os.Root // the run's own; nil without one
	reused bool     // that folder is an earlier run's

	outputs                                      []*output // all that are open or complete
	results, reconciliation, pull, page, summary *output   // each nil: not wanted
	named                                        *output   // the file of --rejects until the first reject
	pulled                                       int       // lines of pull
	rejects                                      []*rejectsFile
	problems                                     func([]Problem) error // nil: not wanted
	err                                          error                 // the first failure; nothing is written after it
}

// OpenRun makes the folder and opens the files, so that a place that cannot be
// written to is known before the first request. Finish must follow.
func OpenRun(f Files) (*Run, error) {
	if slices.Contains([]string{f.Dir, f.Results, f.Rejects, f.Reconciliation, f.Pull}, "-") {
		return nil, errors.New("only the summary can go to standard output")
	}
	if f.Dir == None {
		f.Dir = ""
	}
	if f.Summary == "-" {
		f.Summary = None
	}
	f.Results, f.Summary = f.path(f.Results, resultsFile), f.path(f.Summary, summaryFile)
	r := &Run{files: f}
	if f.Dir != "" {
		folder, err := makeFolder(f.Dir)
		if err != nil {
			return nil, fmt.Errorf("make the run's folder: %w", err)
		}
		r.folder, r.reused = folder, hasRun(folder)
	}
	if err := r.open(); err != nil {
		for _, o := range r.outputs {
			o.discard()
		}
		return nil, fmt.Errorf("open the run's files: %w", err)
	}
	return r, nil
}

func (r *Run) open() (err error) {
	f, page, reconciliation := &r.files, "", ""
	if f.Page != nil {
		page = f.path("", pageFile)
	}
	if f.Reconciles {
		reconciliation = f.path(f.Reconciliation, reconciliationFile)
	}
	for _, o := range []struct {
		to   **output
		path string
	}{
		{&r.results, f.Results},
		{&r.named, f.Rejects},
		{&r.reconciliation, reconciliation},
		{&r.pull, f.Pull},
		{&r.page, page},
		{&r.summary, f.Summary},
	} {
		if *o.to, err = r.create(o.path); err != nil {
			return err
		}
	}
	return errors.Join(beginLines[Result](r.results, f.Namespaced, f.Columns),
		beginLines[Compared](r.reconciliation, false, nil), r.openProblems())
}

// create opens an output; nil where path is "" or None.
func (r *Run) create(path string) (*output, error) {
	if path == "" || path == None {
		return nil, nil
	}
	folder, dir := r.folder, filepath.Dir(path)
	if folder == nil || dir != filepath.Clean(r.files.Dir) {
		var err error
		if folder, err = os.OpenRoot(dir); err != nil {
			return nil, err
		}
	}
	o, err := create(folder, path)
	if err == nil {
		r.outputs = append(r.outputs, o)
	}
	return o, err
}

// TakesRows reports whether any of the files tells of single rows.
func (r *Run) TakesRows() bool {
	return r.results != nil || r.problems != nil || r.reconciliation != nil || r.named != nil || r.files.Dir != ""
}

// Reject writes a row that needs attention, as it was read from in. Rows go to the
// file of their header.
func (r *Run) Reject(in Input, rej Reject) error {
	if r.err != nil {
		return r.err
	}
	var s *rejectsFile
	if s, r.err = r.rejectsFor(in, rej.Names); s != nil && r.err == nil {
		r.err = s.write(&rej)
	}
	return r.err
}

// Flush hands all lines to the operating system. An error is the first that any of the
// run's files met.
func (r *Run) Flush() error {
	for _, o := range r.outputs {
		if r.err == nil {
			r.err = o.flush()
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
	if r.Problems(s.Checks.problems(s.Mapping.Path)) == nil {
		r.err = r.commitRows(s)
	}
	if r.err != nil {
		s.Stopped(Unwritten(r.err))
	}
	for _, commit := range []func(*Summary) error{r.commitPage, r.commitSummary} {
		if err := commit(s); err != nil {
			s.Stopped(Unwritten(err))
			r.err = errors.Join(r.err, err)
		}
	}
	return r.err
}

func (r *Run) commitRows(s *Summary) error {
	if err := r.Flush(); err != nil {
		return fmt.Errorf("write results and rejects: %w", err)
	}
	for _, o := range r.outputs {
		switch o {
		case r.summary, r.page:
		case r.named: // what an earlier run left there would be taken for this one's
			if err := o.remove(); err != nil {
				return fmt.Errorf("remove the rejects file of an earlier run: %w", err)
			}
		default:
			end := o.commit
			if o == r.pull && o.lines == nil { // not written
				end = o.discard
			}
			if err := end(); err != nil {
				return fmt.Errorf("complete results and rejects: %w", err)
			}
		}
	}
	if err := r.removeOld(); err != nil {
		return fmt.Errorf("remove the files of an earlier run: %w", err)
	}
	s.ResultsPath = r.files.Results
	if r.pull != nil && r.pull.lines != nil {
		s.PullPath, s.Pulled = r.files.Pull, r.pulled
	}
	if r.reconciliation != nil && s.Reconciliation != nil {
		s.Reconciliation.Path = r.reconciliation.path
	}
	for _, file := range r.rejects {
		s.RejectsPaths = append(s.RejectsPaths, file.out.path)
	}
	return nil
}

// commitPage writes the page, which names the summary that comes after it.
func (r *Run) commitPage(s *Summary) error {
	if r.page == nil {
		return nil
	}
	s.SummaryPath, s.PagePath = r.files.Summary, r.page.path
	s.escape()
	err := r.page.complete(func(w io.Writer) error { return r.files.Page(w, s) })
	if err != nil {
		s.PagePath = ""
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func (r *Run) commitSummary(s *Summary) error {
	if r.summary == nil {
		return nil
	}
	s.SummaryPath, s.run = r.files.Summary, r // which the summary itself says
	if err := r.summary.complete(s.WriteJSON); err != nil {
		s.SummaryPath, s.run = "", nil
		return fmt.Errorf("write the summary: %w", err)
	}
	return nil
}

func (r *Run) amend(s *Summary) (err error) {
	if r.page != nil && r.page.partial != "" {
		if r.page, err = create(r.page.folder, r.page.path); err == nil {
			err = r.commitPage(s)
		}
		if err != nil {
			return err
		}
	}
	if r.summary.partial == "" {
		return nil // a pipe has had it
	}
	if r.summary, err = create(r.summary.folder, r.summary.path); err != nil {
		return err
	}
	return r.commitSummary(s)
}

func (r *Run) close() (err error) {
	if r.folder != nil {
		err = r.folder.Close()
	}
	for _, o := range r.outputs {
		err = errors.Join(err, o.folder.Close())
	}
	return err
}
