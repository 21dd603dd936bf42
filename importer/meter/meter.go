// Package meter counts the requests of a run: by kind, by status, by duration, and over time. Its size is fixed, however long
// the run takes.
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

// Meter counts the requests of a run. Its Observe is the client's observer; any number of goroutines may call any of it.
type Meter struct {
	mu       sync.Mutex
	kinds    map[string]int
	statuses map[int]int

	// The run over time, in spans that all have the same width.
	began   time.Time
	width   time.Duration
	spans   []span    // without gaps
	sampled time.Time // rows and pauses are counted up to here
	ended   int       // rows that had ended then
}

// How fine the time is: at most mostSpans spans, which begin at firstSpan each and become twice as long whenever there would be
// more.
const (
	mostSpans = report.MostBuckets
	firstSpan = 100 * time.Millisecond
)

// span is what happened in one stretch of time.
type span struct {
	rows     int
	requests histogram // lead requests, by the time of their end
	retries  int
	paused   time.Duration
}

// New counts from now on.
func New() *Meter {
	m := &Meter{kinds: map[string]int{}, statuses: map[int]int{}, width: firstSpan}
	m.Begin(time.Now())
	return m
}

// Begin says when the run began, before there is anything to count.
func (m *Meter) Begin(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began, m.sampled = now, now
}

// Observe counts one call; calls of leads also go into the latencies.
func (m *Meter) Observe(c leadapi.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Kind == "reach" {
		return // no request of a row
	}
	m.kinds[c.Kind]++
	if c.Status != 0 {
		m.statuses[c.Status]++
	}
	if c.Kind != "token" {
		m.at(c.Began.Add(c.Duration)).requests.count(c.Duration)
	}
}

// Retried counts a further try.
func (m *Meter) Retried() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at(time.Now()).retries++
}

// Sample notes how many rows have ended by now, and whether requests wait: rows that need no request are too many to look at the
// clock for each. What came since the last time counts for the moment; waiting counts for each span that it took.
func (m *Meter) Sample(ended int, paused bool) { m.sample(time.Now(), ended, paused) }

func (m *Meter) sample(now time.Time, ended int, paused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := m.sampled
	m.at(now).rows += ended - m.ended
	m.ended, m.sampled = ended, now
	for paused && from.Before(now) {
		end := m.began.Add(from.Sub(m.began).Truncate(m.width) + m.width)
		if end.After(now) {
			end = now
		}
		m.at(from).paused += end.Sub(from)
		from = end
	}
}

// at is the span of a time. Times come as clocks of several goroutines have them: what is
// before the beginning counts as the beginning.
func (m *Meter) at(now time.Time) *span {
	i := max(0, int(now.Sub(m.began)/m.width))
	for ; i >= mostSpans; i /= 2 { // of each two spans one is made
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

// sum is what happened in several spans.
func sum(spans []span) (all span) {
	for i := range spans {
		s := &spans[i]
		all.rows, all.retries, all.paused = all.rows+s.rows, all.retries+s.retries, all.paused+s.paused
		all.requests.add(&s.requests)
	}
	return all
}

// Report puts the requests into the run's figures.
func (m *Meter) Report(s *report.Summary) {
	m.mu.Lock()
	defer m.mu.Unlock()
	whole := sum(m.spans)
	s.Requests = report.Requests{
		Create: m.kinds["create"], Update: m.kinds["update"], Token: m.kinds["token"], Retries: whole.retries,
		ByStatus: map[string]int{},
	}
	for status, n := range m.statuses {
		s.Requests.ByStatus[strconv.Itoa(status)] = n
	}
	all := &whole.requests
	s.LatencyMs = report.Latency{P50: all.percentile(0.5), P90: all.percentile(0.9), P95: all.percentile(0.95), P99: all.percentile(0.99), Max: millis(all.longest)}
	s.Timeline = nil
	for i := range m.spans {
		one := &m.spans[i]
		s.Timeline = append(s.Timeline, report.Bucket{
			Time: m.began.Add(time.Duration(i) * m.width), Rows: one.rows, Requests: one.requests.measured, Retries: one.retries,
			P50: one.requests.percentile(0.5), P95: one.requests.percentile(0.95), P99: one.requests.percentile(0.99),
			Paused: math.Round(one.paused.Seconds()*1000) / 1000,
		})
	}
}

// histogram is how long calls took. Durations are kept in buckets that grow by bucketStep,
// from 10 µs to beyond 15 minutes, so that a percentile is right within 5 % at a fixed size.
type histogram struct {
	buckets  [bucketCount]uint32
	measured int
	longest  time.Duration
}

const (
	bucketStep  = 1.1
	bucketUnit  = 10 * time.Microsecond
	bucketCount = 200
)

func (h *histogram) count(d time.Duration) {
	h.measured++
	h.longest = max(h.longest, d)
	h.buckets[bucketOf(d)]++
}

func (h *histogram) add(o *histogram) {
	h.measured += o.measured
	h.longest = max(h.longest, o.longest)
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
}

func bucketOf(d time.Duration) int {
	if d <= bucketUnit {
		return 0
	}
	i := int(math.Log(float64(d)/float64(bucketUnit)) / math.Log(bucketStep))
	return min(i, bucketCount-1)
}

// percentile is the duration in milliseconds below which share of the calls stayed.
func (h *histogram) percentile(share float64) float64 {
	want, seen := int(math.Ceil(share*float64(h.measured))), 0
	for i, n := range h.buckets {
		if seen += int(n); n > 0 && seen >= want {
			upper := float64(bucketUnit) * math.Pow(bucketStep, float64(i+1))
			return millis(min(time.Duration(upper), h.longest))
		}
	}
	return 0
}

// millis rounds to a hundredth of a millisecond.
func millis(d time.Duration) float64 {
	return math.Round(float64(d)/float64(10*time.Microsecond)) / 100
}
