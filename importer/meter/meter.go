// Package meter counts the requests of a run by kind, by status, by duration and over time. Its size is fixed.
package meter

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"leadferry/importer/report"
	"leadferry/leadapi"
)

// Meter counts the requests of a run: Observe is the client's observer. Any number of goroutines may use it.
type Meter struct {
	mu       sync.Mutex
	kinds    map[string]int
	statuses map[int]int

	// The run over time, in spans of equal width without gaps.
	began   time.Time
	width   time.Duration
	spans   []span
	sampled time.Time // rows and pauses are counted up to here
	ended   int       // rows that had ended then
}

// firstSpan is the first width of spans, which doubles whenever there would be more than report.MostBuckets of them.
const firstSpan = 500 * time.Millisecond

// span is what happened in one period. It counts the durations of lead requests in steps that grow by stepGrowth, from
// firstStep to more than 15 minutes. So a percentile is at most 10 % too high, at a fixed size.
type span struct {
	rows, retries int
	paused        time.Duration
	requests      int // counted when they end
	longest       time.Duration
	steps         [mostSteps]uint32
}

const (
	stepGrowth = 1.1
	firstStep  = 10 * time.Microsecond
	mostSteps  = 200
)

// New makes a Meter that counts from now on.
func New(now time.Time) *Meter {
	return &Meter{kinds: map[string]int{}, statuses: map[int]int{}, width: firstSpan, began: now, sampled: now}
}

// Observe counts one call. Creates and updates also count for the latencies.
func (m *Meter) Observe(c leadapi.Call) {
	if c.Sent == 0 || c.Kind == "reach" {
		return // nothing was sent, or it is no request of a row
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kinds[c.Kind]++
	if c.Status != 0 {
		m.statuses[c.Status]++
	}
	if c.Kind != "token" {
		m.at(c.Began.Add(c.Duration)).count(c.Duration)
	}
}

// Retried counts a request that is sent again.
func (m *Meter) Retried() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at(time.Now()).retries++
}

// Sample notes how many rows have ended by now, and whether requests wait. It counts both from the last Sample on.
func (m *Meter) Sample(now time.Time, ended int, paused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.at(now)
	if s.rows += ended - m.ended; paused {
		s.paused += now.Sub(m.sampled)
	}
	m.ended, m.sampled = ended, now
}

// at returns the span of a time. Clocks of several goroutines may disagree: a time before began counts as began.
func (m *Meter) at(now time.Time) *span {
	i := max(0, int(now.Sub(m.began)/m.width))
	for ; i >= report.MostBuckets; i /= 2 { // each two spans become one
		half := m.spans[:0]
		for two := range slices.Chunk(m.spans, 2) {
			half = append(half, sum(two))
		}
		m.spans, m.width = half, 2*m.width
	}
	for len(m.spans) <= i {
		m.spans = append(m.spans, span{})
	}
	return &m.spans[i]
}

func sum(spans []span) (all span) {
	for i := range spans {
		s := &spans[i]
		all.rows, all.retries, all.paused = all.rows+s.rows, all.retries+s.retries, all.paused+s.paused
		all.requests, all.longest = all.requests+s.requests, max(all.longest, s.longest)
		for i, n := range s.steps {
			all.steps[i] += n
		}
	}
	return all
}

func (s *span) count(d time.Duration) {
	step := math.Log(float64(max(d, firstStep))/float64(firstStep)) / math.Log(stepGrowth)
	s.steps[min(int(step), mostSteps-1)]++
	s.requests, s.longest = s.requests+1, max(s.longest, d)
}

// percentile returns, in milliseconds, the duration that this share (0 to 1) of the requests did not exceed.
func (s *span) percentile(share float64) float64 {
	want, seen := int(math.Ceil(share*float64(s.requests))), 0
	for i, n := range s.steps {
		if seen += int(n); n > 0 && seen >= want {
			upper := float64(firstStep) * math.Pow(stepGrowth, float64(i+1))
			return millis(min(time.Duration(upper), s.longest))
		}
	}
	return 0
}

func millis(d time.Duration) float64 {
	return math.Round(float64(d)/float64(10*time.Microsecond)) / 100
}

// Report puts requests, latencies and timeline into the run's summary.
func (m *Meter) Report(s *report.Summary) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := sum(m.spans)
	s.Requests = report.Requests{
		Create: m.kinds["create"], Update: m.kinds["update"], Token: m.kinds["token"], Retries: all.retries,
		ByStatus: map[string]int{},
	}
	for status, n := range m.statuses {
		s.Requests.ByStatus[strconv.Itoa(status)] = n
	}
	p := all.percentile
	s.LatencyMs = report.Latency{P50: p(0.5), P90: p(0.9), P95: p(0.95), P99: p(0.99), Max: millis(all.longest)}
	s.Timeline = nil
	for i := range m.spans {
		one := &m.spans[i]
		s.Timeline = append(s.Timeline, report.Bucket{
			Time: m.began.Add(time.Duration(i) * m.width), Rows: one.rows, Requests: one.requests, Retries: one.retries,
			P50: one.percentile(0.5), P95: one.percentile(0.95), P99: one.percentile(0.99),
			Paused: math.Round(one.paused.Seconds()*1000) / 1000,
		})
	}
}
