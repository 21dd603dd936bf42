package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"leadferry/checkpoint"
)

// worker is a member of a fleet with what it has left in the ledger. Of several that had one shard, the newest knows what became
// of all its rows.
type worker struct {
	*checkpoint.Member
	rows    RowCounts // of the shard as far as it has come
	summary *Summary  // as it told it last; nil: it has not yet
}

// ended says whether it came to its end.
func (w *worker) ended() bool { return w.summary != nil && w.summary.Outcome != Running }

// read takes the rows, and the figures so far or in the end, from their JSON.
func (w *worker) read() error {
	if len(w.Rows) > 0 {
		if err := json.Unmarshal(w.Rows, &w.rows); err != nil {
			return fmt.Errorf("read the counts of the worker of shard %d: %w", w.Shard, err)
		}
	}
	if len(w.Summary) == 0 {
		return nil
	}
	w.summary = new(Summary)
	if err := json.Unmarshal(w.Summary, w.summary, jsontext.AllowInvalidUTF8(true)); err != nil {
		return fmt.Errorf("read the summary of the worker of shard %d: %w", w.Shard, err)
	}
	if w.ended() {
		w.rows = w.summary.Rows
	}
	return nil
}

// Fleet is the summary of a fleet, as if it had been one run: rows of each shard by its newest worker, requests of all.
// Of those that were killed, it lacks the requests of their last seconds; percentiles are those of the slowest worker. An error says what cannot be read of what a worker left.
func Fleet(name string, shards int, members []checkpoint.Member) (*Summary, error) {
	s := &Summary{RunID: name, Fleet: name, Requests: Requests{ByStatus: map[string]int{}}}
	m := merger{Summary: s, organizations: map[Organization]int{}, transitions: map[Transition]int{}, errors: map[[2]string]*Reason{}}
	heard := make([]bool, shards)
	for i := range members {
		w := worker{Member: &members[i]}
		if err := w.read(); err != nil {
			return nil, err
		}
		if s.StartedAt.IsZero() || w.Started.Before(s.StartedAt) {
			s.StartedAt = w.Started
		}
		if w.Last.After(s.FinishedAt) {
			s.FinishedAt = w.Last
		}
		if w.summary != nil {
			m.work(w.summary)
		}
		if w.Newest && w.Shard < shards {
			heard[w.Shard] = true
			m.rows(&w)
		}
	}
	for shard, is := range heard {
		if !is {
			m.missing = append(m.missing, shard)
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
	buckets       []Bucket // of all workers
	missing       []int    // shards that no worker has begun, or whose last one did not come to its end
	stops         []string // why newest workers stopped
	codes         []int    // of newest workers that came to their end
}

func (m *merger) work(w *Summary) {
	m.Requests.Create += w.Requests.Create
	m.Requests.Update += w.Requests.Update
	m.Requests.Token += w.Requests.Token
	m.Requests.Retries += w.Requests.Retries
	for status, n := range w.Requests.ByStatus {
		m.Requests.ByStatus[status] += n
	}
	all, own := &m.LatencyMs, w.LatencyMs
	*all = Latency{max(all.P50, own.P50), max(all.P90, own.P90), max(all.P95, own.P95), max(all.P99, own.P99), max(all.Max, own.Max)}
	m.PeakInFlight += w.PeakInFlight
	m.buckets = append(m.buckets, w.Timeline...)
	for _, o := range w.Organizations {
		m.organizations[Organization{ID: o.ID, Location: o.Location}] += o.Leads
	}
	for _, t := range w.Transitions {
		m.transitions[Transition{From: t.From, To: t.To}] += t.Leads
	}
	m.Checkpoint.New = m.Checkpoint.New || w.Checkpoint.New
	m.Checkpoint.Sequence = max(m.Checkpoint.Sequence, w.Checkpoint.Sequence)
}

func (m *merger) rows(w *worker) {
	m.Rows.add(&w.rows)
	s := w.summary
	if !w.ended() {
		m.missing = append(m.missing, w.Shard)
	} else {
		m.codes = append(m.codes, s.ExitCode)
	}
	if s == nil {
		return
	}
	if s.StopReason != "" && !slices.Contains(m.stops, s.StopReason) {
		m.stops = append(m.stops, s.StopReason)
	}
	if m.Command == "" {
		m.Command, m.Version, m.Mapping, m.Target = s.Command, s.Version, s.Mapping, s.Target
		m.Checkpoint.Path, m.Checkpoint.Leads = s.Checkpoint.Path, s.Checkpoint.Leads
		m.Inputs = slices.Clone(s.Inputs)
	} else {
		m.Checkpoint.Leads = min(m.Checkpoint.Leads, s.Checkpoint.Leads)
		for i := range min(len(m.Inputs), len(s.Inputs)) {
			rows := m.Inputs[i].Rows + s.Inputs[i].Rows
			if m.Inputs[i].Format == "" || m.Inputs[i].SHA256 == "" { // of a worker that has not read all
				m.Inputs[i] = s.Inputs[i]
			}
			m.Inputs[i].Rows = rows
		}
	}
	m.Checkpoint.ID = cmp.Or(m.Checkpoint.ID, s.Checkpoint.ID)
	m.DroppedValues += s.DroppedValues
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

func (c *RowCounts) add(o *RowCounts) {
	to, from := c.all(), o.all()
	for i := range to {
		*to[i] += *from[i]
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
	slices.SortFunc(m.Errors, func(a, b Reason) int { return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Error, b.Error)) })
	m.Errors = m.Errors[:min(len(m.Errors), mostReasons)]
	slices.SortFunc(m.InDoubt, func(a, b Doubt) int { return inFile(a.Place, b.Place) })
	m.InDoubt = m.InDoubt[:min(len(m.InDoubt), mostDoubts)]
	m.DurationS = max(m.FinishedAt.Sub(m.StartedAt).Seconds(), 0)
	if m.DurationS > 0 {
		m.ThroughputRowsPerS = float64(m.Rows.Read) / m.DurationS
	}
	m.timeline()
	m.verdict()
}

// timeline puts what all workers did into buckets of the fleet's own time. A wait holds for all of them.
func (m *merger) timeline() {
	if len(m.buckets) == 0 || m.DurationS <= 0 {
		return
	}
	width := m.FinishedAt.Sub(m.StartedAt) / MostBuckets
	m.Timeline = make([]Bucket, MostBuckets)
	for i := range m.Timeline {
		m.Timeline[i].Time = m.StartedAt.Add(time.Duration(i) * width)
	}
	for _, b := range m.buckets {
		to := &m.Timeline[min(max(int(b.Time.Sub(m.StartedAt)/max(width, 1)), 0), MostBuckets-1)]
		to.P50, to.P95, to.P99 = max(to.P50, b.P50), max(to.P95, b.P95), max(to.P99, b.P99)
		to.Rows, to.Requests, to.Retries, to.Paused = to.Rows+b.Rows, to.Requests+b.Requests, to.Retries+b.Retries, max(to.Paused, b.Paused)
	}
}

// verdict is how the fleet ended as if it had been one run: the first that applies of 130, 4, 3, 5 and 1.
func (m *merger) verdict() {
	slices.Sort(m.missing)
	m.ExitCode, m.Outcome = 0, "complete"
	for _, code := range []int{130, 4, 3, 5, 1} {
		if slices.Contains(m.codes, code) {
			m.ExitCode = code
			break
		}
	}
	if m.ExitCode != 0 || m.Rows.attention(false) > 0 {
		m.Outcome = "attention"
	}
	if len(m.stops) > 0 {
		m.Outcome, m.StopReason = "stopped", m.stops[0]
		if m.ExitCode == 130 {
			m.Outcome = "interrupted"
		}
	}
	if len(m.missing) == 0 {
		return
	}
	if m.ExitCode != 130 && m.ExitCode != 4 {
		m.ExitCode = 3
	}
	text := english.Plural(len(m.missing), "shard has", "shards have")
	var names []string
	for _, shard := range m.missing[:min(len(m.missing), 10)] {
		names = append(names, fmt.Sprint(shard))
	}
	m.Outcome = "stopped"
	m.StopReason = cmp.Or(m.StopReason, fmt.Sprintf("%s not come to an end: %s", text, english.WordSeries(names, "and")))
	m.Hint = "wait for their workers, or start them again where they have died: leadferry checkpoint workers lists them"
}
