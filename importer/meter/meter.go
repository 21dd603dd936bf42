// Package meter counts the requests of a run: by kind, by status, by duration, and over time. Its size is fixed, however long
// the run takes.
package meter

import (
	"math"
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
	timeline timeline
}

// New counts from now on.
func New() *Meter {
	return &Meter{kinds: map[string]int{}, statuses: map[int]int{}, timeline: newTimeline(time.Now())}
}

// Begin says when the run began, before there is anything to count.
func (m *Meter) Begin(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timeline = newTimeline(now)
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
		m.timeline.at(c.Began.Add(c.Duration)).requests.count(c.Duration)
	}
}

// Retried counts a further try.
func (m *Meter) Retried() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timeline.at(time.Now()).retries++
}

// Sample notes how many rows have ended by now, and whether requests wait.
func (m *Meter) Sample(ended int, paused bool) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timeline.sample(now, ended, paused)
}

// Report puts the requests into the run's figures.
func (m *Meter) Report(s *report.Summary) {
	m.mu.Lock()
	defer m.mu.Unlock()
	whole := m.timeline.whole()
	s.Requests = report.Requests{
		Create: m.kinds["create"], Update: m.kinds["update"], Token: m.kinds["token"], Retries: whole.retries,
		ByStatus: map[string]int{},
	}
	for status, n := range m.statuses {
		s.Requests.ByStatus[strconv.Itoa(status)] = n
	}
	all := &whole.requests
	s.LatencyMs = report.Latency{P50: all.percentile(0.5), P90: all.percentile(0.9), P95: all.percentile(0.95), P99: all.percentile(0.99), Max: millis(all.longest)}
	s.Timeline = m.timeline.report()
}

// How fine a timeline is: at most mostSpans spans of time, which begin at firstSpan each and
// become twice as long whenever there would be more.
const (
	mostSpans = report.MostBuckets
	firstSpan = 100 * time.Millisecond
)

// timeline is a run over time, of a fixed size however long the run takes. Meter holds its
// lock whenever it is used.
type timeline struct {
	began   time.Time
	width   time.Duration // of each span
	spans   []span        // without gaps
	sampled time.Time     // rows and pauses are counted up to here
	ended   int           // rows that had ended then
}

// span is what happened in one stretch of time.
type span struct {
	rows     int
	requests histogram // lead requests, by the time of their end
	retries  int
	paused   time.Duration
}

func newTimeline(began time.Time) timeline {
	return timeline{began: began, width: firstSpan, sampled: began}
}

// at is the span of a time. Times come as clocks of several goroutines have them: what is
// before the beginning counts as the beginning.
func (t *timeline) at(now time.Time) *span {
	i := max(0, int(now.Sub(t.began)/t.width))
	for ; i >= mostSpans; i /= 2 {
		t.fold()
	}
	for len(t.spans) <= i {
		t.spans = append(t.spans, span{})
	}
	return &t.spans[i]
}

// fold makes one span of each two.
func (t *timeline) fold() {
	half := t.spans[:0]
	for i := 0; i < len(t.spans); i += 2 {
		one := t.spans[i]
		if i+1 < len(t.spans) {
			one.add(&t.spans[i+1])
		}
		half = append(half, one)
	}
	t.spans, t.width = half, 2*t.width
}

func (s *span) add(o *span) {
	s.rows += o.rows
	s.retries += o.retries
	s.paused += o.paused
	s.requests.add(&o.requests)
}

// sample notes how many rows have ended by now, and whether requests wait. What came since the
// last time is spread evenly over it: rows that need no request are too many to look at the
// clock for each.
func (t *timeline) sample(now time.Time, ended int, paused bool) {
	from, rows := t.sampled, ended-t.ended
	took := now.Sub(from)
	t.ended = ended
	if last := t.at(now); took <= 0 {
		last.rows += rows
		return
	}
	t.sampled = now
	given := 0
	for from.Before(now) {
		next := t.began.Add(from.Sub(t.began).Truncate(t.width) + t.width)
		if next.After(now) {
			next = now
		}
		s := t.at(from)
		upTo := int(math.Round(float64(rows) * (1 - float64(now.Sub(next))/float64(took))))
		s.rows += upTo - given
		if given = upTo; paused {
			s.paused += next.Sub(from)
		}
		from = next
	}
}

// report is the timeline for the run's figures.
func (t *timeline) report() []report.Bucket {
	var list []report.Bucket
	for i := range t.spans {
		s := &t.spans[i]
		list = append(list, report.Bucket{
			Time: t.began.Add(time.Duration(i) * t.width), Rows: s.rows, Requests: s.requests.measured, Retries: s.retries,
			P50: s.requests.percentile(0.5), P95: s.requests.percentile(0.95), P99: s.requests.percentile(0.99),
			Paused: math.Round(s.paused.Seconds()*1000) / 1000,
		})
	}
	return list
}

// whole is what happened in all spans.
func (t *timeline) whole() (all span) {
	for i := range t.spans {
		all.add(&t.spans[i])
	}
	return all
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
