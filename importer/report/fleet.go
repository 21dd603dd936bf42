package report

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/dustin/go-humanize/english"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"leadferry/checkpoint"
)

// leftBy is what a worker of a fleet has left in the ledger: its summary in the end, or its rows and figures so far.
func leftBy(w *checkpoint.Member) (*Summary, error) {
	s, soFar := &Summary{Outcome: Running}, RowCounts{}
	var err error
	if len(w.Rows) > 0 {
		err = json.Unmarshal(w.Rows, &soFar)
	}
	if len(w.Summary) > 0 && err == nil {
		err = json.Unmarshal(w.Summary, s, jsontext.AllowInvalidUTF8(true))
	}
	if err != nil {
		return nil, fmt.Errorf("read what the worker of shard %d has told: %w", w.Shard, err)
	}
	if s.Outcome == Running {
		s.Rows = soFar
	}
	return s, nil
}

// Fleet is the summary of a fleet, as if it had been one run: rows of each shard by its newest worker, requests of
// all. Of those that were killed, it lacks the requests of their last seconds; percentiles are those of the slowest
// worker. It has no timeline. An error says what cannot be read of what a worker left.
func Fleet(name string, shards int, members []checkpoint.Member) (*Summary, error) {
	s := &Summary{RunID: name, Fleet: name, Requests: Requests{ByStatus: map[string]int{}}}
	m := merger{
		Summary: s, organizations: map[Organization]int{}, transitions: map[Transition]int{},
		errors: map[[2]string]*Reason{},
	}
	newest := make([]*Summary, shards) // of several workers that had one shard, the newest knows how all its rows ended
	for i := range members {
		w := &members[i]
		own, err := leftBy(w)
		if err != nil {
			return nil, err
		}
		if s.StartedAt.IsZero() || w.Started.Before(s.StartedAt) {
			s.StartedAt = w.Started
		}
		if w.Last.After(s.FinishedAt) {
			s.FinishedAt = w.Last
		}
		m.work(own)
		if w.Newest && w.Shard < shards {
			newest[w.Shard] = own
		}
	}
	for shard, own := range newest {
		if own != nil {
			m.rows(own)
		}
		if own == nil || own.Outcome == Running {
			m.missing = append(m.missing, fmt.Sprint(shard))
		}
	}
	m.finish()
	return s, nil
}

type merger struct {
	*Summary
	organizations map[Organization]int
	transitions   map[Transition]int
	errors        map[[2]string]*Reason
	missing       []string // shards that no worker has begun, or whose last one did not come to its end
	codes         []int    // of newest workers that came to their end
}

func (m *merger) work(w *Summary) {
	addUp(&m.Requests, w.Requests)
	for status, n := range w.Requests.ByStatus {
		m.Requests.ByStatus[status] += n
	}
	addUp(&m.LatencyMs, w.LatencyMs)
	m.PeakInFlight += w.PeakInFlight
	for _, o := range w.Organizations {
		m.organizations[Organization{ID: o.ID, Location: o.Location}] += o.Leads
	}
	for _, t := range w.Transitions {
		m.transitions[Transition{From: t.From, To: t.To}] += t.Leads
	}
	m.Checkpoint.New = m.Checkpoint.New || w.Checkpoint.New
	m.Checkpoint.Sequence = max(m.Checkpoint.Sequence, w.Checkpoint.Sequence)
}

func (m *merger) rows(s *Summary) {
	addUp(&m.Rows, s.Rows)
	if s.Command == "" { // it has told no figures yet
		return
	}
	if s.Outcome != Running {
		m.codes = append(m.codes, s.ExitCode)
	}
	if m.Command == "" {
		m.Command, m.Version, m.Mapping, m.Target = s.Command, s.Version, s.Mapping, s.Target
		m.Checkpoint.Path, m.Checkpoint.Leads = s.Checkpoint.Path, s.Checkpoint.Leads
	}
	m.Checkpoint.Leads = min(m.Checkpoint.Leads, s.Checkpoint.Leads)
	m.Checkpoint.ID = cmp.Or(m.Checkpoint.ID, s.Checkpoint.ID)
	for i, in := range s.Inputs {
		if i == len(m.Inputs) {
			m.Inputs = append(m.Inputs, Input{})
		}
		rows := m.Inputs[i].Rows + in.Rows
		if m.Inputs[i].Format == "" || m.Inputs[i].SHA256 == "" { // of none, or of a worker that has not read all
			m.Inputs[i] = in
		}
		m.Inputs[i].Rows = rows
	}
	m.StopReason = cmp.Or(m.StopReason, s.StopReason)
	m.DroppedValues += s.DroppedValues
	if s.InService != nil {
		if m.InService == nil {
			m.InService = new(InService)
		}
		addUp(m.InService, *s.InService)
	}
	m.InDoubt = append(m.InDoubt, s.InDoubt...)
	for _, e := range s.Errors {
		key := [2]string{e.Outcome, e.Error}
		if m.errors[key] == nil {
			m.errors[key] = &Reason{Outcome: e.Outcome, Error: e.Error}
		}
		m.errors[key].Rows += e.Rows
		m.errors[key].Examples = append(m.errors[key].Examples, e.Examples...)
	}
}

// addUp adds the whole numbers of a worker's figures to those of all. Times are the longest.
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

// Bounds of lists in a summary.
const (
	mostDoubts   = 200
	mostExamples = 3
	mostReasons  = 1000
)

// finish puts lists into order, and says how the whole ended.
func (m *merger) finish() {
	m.Organizations, m.Transitions = Organizations(m.organizations), Transitions(m.transitions)
	inFile := func(a, b Place) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) }
	for _, e := range m.errors {
		slices.SortFunc(e.Examples, inFile)
		e.Examples = e.Examples[:min(len(e.Examples), mostExamples)]
		m.Errors = append(m.Errors, *e)
	}
	slices.SortFunc(m.Errors, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Error, b.Error))
	})
	m.Errors = m.Errors[:min(len(m.Errors), mostReasons)]
	slices.SortFunc(m.InDoubt, func(a, b Doubt) int { return inFile(a.Place, b.Place) })
	m.InDoubt = m.InDoubt[:min(len(m.InDoubt), mostDoubts)]
	m.DurationS = max(m.FinishedAt.Sub(m.StartedAt).Seconds(), 0)
	if m.DurationS > 0 {
		m.ThroughputRowsPerS = float64(m.Rows.Read) / m.DurationS
	}
	m.verdict()
}

// verdict is how the fleet ended as if it had been one run: the first that applies of 130, 4, 3, 5 and 1.
func (m *merger) verdict() {
	if len(m.missing) > 0 {
		m.codes = append(m.codes, 3)
		few := m.missing[:min(len(m.missing), 10)]
		m.StopReason = cmp.Or(m.StopReason, fmt.Sprintf("%s not come to an end: %s",
			english.Plural(len(m.missing), "shard has", "shards have"), english.WordSeries(few, "and")))
		m.Hint = "wait for their workers, or start them again where they have died: leadferry checkpoint workers " +
			"lists them"
	}
	for _, code := range []int{1, 5, 3, 4, 130} {
		if slices.Contains(m.codes, code) {
			m.ExitCode = code
		}
	}
	switch {
	case m.StopReason != "" && m.ExitCode == 130 && len(m.missing) == 0:
		m.Outcome = "interrupted"
	case m.StopReason != "":
		m.Outcome = "stopped"
	case m.ExitCode != 0 || m.Rows.attention(false) > 0:
		m.Outcome = "attention"
	default:
		m.Outcome = "complete"
	}
}
