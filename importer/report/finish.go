package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Finish gives results and rejects their names, writes the summary, and makes all
// of it durable; it also tells s where the files lie. When rows could not be
// written, their files keep the name NAME.partial and s says that the run stopped.
// A rejects file that nothing went into is not left behind, nor what an earlier run left
// in the folder and this one has not written again. Calling Finish again does nothing and
// returns the same error.
func (r *Run) Finish(s *Summary) error {
	defer r.group.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return r.err
	}
	r.finished = true
	close(r.quit)

	if r.err == nil {
		r.err = r.commitRows(s)
	}
	if r.err != nil {
		r.closeRows()
		s.fail(r.err)
	}
	if err := r.commitSummary(s); err != nil {
		err = fmt.Errorf("write the summary: %w", err)
		s.fail(err)
		r.err = errors.Join(r.err, err)
	}
	return r.err
}

func (r *Run) amend(s *Summary) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.summary.partial == "" {
		return nil // a pipe has had it
	}
	again, err := create(r.summary.folder, r.summary.path)
	if err != nil {
		return err
	}
	r.summary = again
	return r.commitSummary(s)
}

// commitRows completes results and rejects.
func (r *Run) commitRows(s *Summary) error {
	if err := r.flush(); err != nil {
		return fmt.Errorf("write results and rejects: %w", err)
	}
	if err := r.dropNamed(); err != nil {
		return fmt.Errorf("remove the rejects file of an earlier run: %w", err)
	}
	outs := slices.DeleteFunc(r.outputs(), func(o *output) bool { return o == r.summary })
	if err := commit(outs...); err != nil {
		return fmt.Errorf("complete results and rejects: %w", err)
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
	err := s.WriteJSON(r.summary)
	if err == nil {
		err = commit(r.summary)
	}
	if err != nil {
		r.summary.file.Close()
		return err
	}
	s.SummaryPath, s.run = r.SummaryPath(), r
	return nil
}

// commit gives the files their names and makes the names durable.
func commit(outs ...*output) error {
	folders := map[*os.Root]bool{}
	for _, o := range outs {
		if err := o.commit(); err != nil {
			return err
		}
		if o.partial != "" {
			folders[o.folder] = true
		}
	}
	for folder := range folders {
		if err := syncFolder(folder); err != nil {
			return err
		}
	}
	return nil
}

// closeRows closes what is open after a failure, whose error is known already.
func (r *Run) closeRows() {
	for _, o := range r.outputs() {
		if o != r.summary {
			o.file.Close()
		}
	}
}

// discard leaves nothing of files that could not all be opened.
func (r *Run) discard() {
	for _, o := range r.outputs() {
		o.discard()
	}
	for _, folder := range r.folders {
		folder.Close()
	}
}
