package report

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/dustin/go-humanize/english"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"leadferry/checkpoint"
)

// leftBy returns the figures that a worker of a fleet left in the ledger: its final summary, or those so far.
func leftBy(w *checkpoint.Member) (s *Summary, err error) {
	s = &Summary{Outcome: Running}
	if len(w.Summary) > 0 {
		err = json.Unmarshal(w.Summary, s, jsontext.AllowInvalidUTF8(true))
	}
	if s.Outcome == Running && len(w.Rows) > 0 {
		s.Rows = RowCounts{}
		err = errors.Join(err, json.Unmarshal(w.Rows, &s.Rows))
	}
	if err != nil {
		return nil, fmt.Errorf("read the figures of the worker of shard %d: %w", w.Shard, err)
	}
	return s, nil
}

// Fleet returns the summary of a fleet, as if it were one run; in describes its ledger. Rows come from each shard's
// newest worker, requests from all workers. A killed worker left only its rows. Percentiles are those of the slowest
// worker. There is no timeline. Fleet fails if a worker's figures cannot be read.
func Fleet(name string, in checkpoint.Info, shards int, members []checkpoint.Member) (*Summary, error) {
	all := &Summary{RunID: name, Fleet: name, Requests: Requests{ByStatus: map[string]int{}}, InService: &InService{}}
	all.Target, all.Checkpoint.Path, all.settled = Target(in.Target), in.Path, in.InDoubt == 0
	organizations, moves := map[Organization]int{}, map[Transition]int{}
	ended := make([]bool, shards)
	for i := range members {
		w := &members[i]
		own, err := leftBy(w)
		if err != nil {
			return nil, err
		}
		if i == 0 || w.Started.Before(all.StartedAt) {
			all.StartedAt = w.Started
		}
		if w.Last.After(all.FinishedAt) {
			all.FinishedAt = w.Last
		}
		all.addWork(own)
		for _, o := range own.Organizations {
			organizations[Organization{ID: o.ID, Location: o.Location}] += o.Leads
		}
		for _, t := range own.Transitions {
			moves[Transition{From: t.From, To: t.To}] += t.Leads
		}
		if w.Newest && w.Shard < shards { // the newest worker of a shard knows how all its rows ended
			all.addRows(own)
			ended[w.Shard] = own.Outcome != Running
		}
	}
	all.Organizations, all.Transitions = Organizations(organizations), Transitions(moves)
	slices.SortFunc(all.Errors, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Error, b.Error))
	})
	slices.SortFunc(all.InDoubt, func(a, b Doubt) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	all.InDoubt = all.InDoubt[:min(len(all.InDoubt), MostDoubts)]
	if all.DurationS = max(all.FinishedAt.Sub(all.StartedAt).Seconds(), 0); all.DurationS > 0 {
		all.ThroughputRowsPerS = float64(all.Rows.Read) / all.DurationS
	}
	if all.Standing = in.InDoubt; slices.Contains(ended, false) { // nobody knows how many rows a killed worker left
		all.InService = nil
	}
	all.endAsOne(ended)
	return all, nil
}

// MostDoubts limits the rows in doubt that a summary lists; MostExamples limits the places of a Reason.
const MostDoubts, MostExamples = 200, 3

// addWork adds the requests of a worker, and takes over what all workers have in common: command, mapping, inputs.
func (s *Summary) addWork(w *Summary) {
	addUp(&s.Requests, w.Requests)
	for status, n := range w.Requests.ByStatus {
		s.Requests.ByStatus[status] += n
	}
	addUp(&s.LatencyMs, w.LatencyMs)
	s.PeakInFlight += w.PeakInFlight
	if w.Command == "" { // the worker has left no figures yet
		return
	}
	if s.Command == "" {
		s.Command, s.Version, s.Mapping = w.Command, w.Version, w.Mapping
		place := s.Checkpoint.Path
		s.Checkpoint, s.Inputs = w.Checkpoint, slices.Clone(w.Inputs)
		s.Checkpoint.Path = place
		each(s.Inputs, func(in *Input) { in.Rows, in.Unread = 0, false })
	}
	s.Checkpoint.New = s.Checkpoint.New || w.Checkpoint.New
	s.Checkpoint.Sequence = max(s.Checkpoint.Sequence, w.Checkpoint.Sequence)
	s.Checkpoint.Leads = min(s.Checkpoint.Leads, w.Checkpoint.Leads)
}

// addRows adds the rows of a shard and how they ended.
func (s *Summary) addRows(w *Summary) {
	addUp(&s.Rows, w.Rows)
	for i, in := range w.Inputs[:min(len(w.Inputs), len(s.Inputs))] {
		s.Inputs[i].Rows += in.Rows
		s.Inputs[i].SHA256 = cmp.Or(s.Inputs[i].SHA256, in.SHA256) // only a worker that read all of it knows the hash
		s.Inputs[i].Unread = s.Inputs[i].Unread || in.Unread
	}
	s.StopReason = cmp.Or(s.StopReason, w.StopReason)
	s.ExitCode = WorseExitCode(s.ExitCode, w.ExitCode)
	s.DroppedValues += w.DroppedValues
	if w.InService != nil {
		addUp(s.InService, *w.InService)
	}
	s.InDoubt = append(s.InDoubt, w.InDoubt...)
	for _, e := range w.Errors {
		i := slices.IndexFunc(s.Errors, func(r Reason) bool { return r.Outcome == e.Outcome && r.Error == e.Error })
		if i < 0 {
			s.Errors = append(s.Errors, e)
			continue
		}
		one := &s.Errors[i]
		one.Rows, one.Examples = one.Rows+e.Rows, append(one.Examples, e.Examples...)
		one.Examples = one.Examples[:min(len(one.Examples), MostExamples)]
	}
}

// addUp adds a worker's counts to those of all workers. Of fractions, which are times, it keeps the longest.
func addUp[T any](all *T, own T) {
	to, from := reflect.ValueOf(all).Elem(), reflect.ValueOf(own)
	for i := range to.NumField() {
		switch f := to.Field(i); {
		case f.CanInt():
			f.SetInt(f.Int() + from.Field(i).Int())
		case f.CanFloat():
			f.SetFloat(max(f.Float(), from.Field(i).Float()))
		}
	}
}

// endAsOne sets how the fleet ended, as one run. A shard has ended if its newest worker ended and was not killed.
func (s *Summary) endAsOne(ended []bool) {
	var missing []string
	for shard, end := range ended {
		if !end {
			missing = append(missing, fmt.Sprint(shard))
		}
	}
	if len(missing) > 0 {
		s.ExitCode = WorseExitCode(s.ExitCode, CodeStopped)
		s.StopReason = cmp.Or(s.StopReason, "these shards have not ended: "+
			english.WordSeries(missing[:min(len(missing), 10)], "and"))
		s.Hint = "see leadferry checkpoint workers" + s.at() + ": wait for their workers, or start dead ones again"
	}
	switch {
	case s.StopReason != "" && s.ExitCode == CodeInterrupted && len(missing) == 0:
		s.Outcome = "interrupted"
	case s.StopReason != "":
		s.Outcome = "stopped"
	case s.ExitCode != 0 || s.Attention() > 0:
		s.Outcome = "attention"
	default:
		s.Outcome = "complete"
	}
}
