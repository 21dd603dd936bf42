package importer

import (
	"context"
	"math"
	"strconv"
	"sync"
	"time"

	"leadferry/importer/report"
	"leadferry/leadapi"
)

// meter counts the requests of a run: by kind, by status, by duration. Its Observe
// is the client's observer and may be called by many goroutines.
type meter struct {
	mu       sync.Mutex
	kinds    map[string]int
	statuses map[int]int
	retries  int
	current  int
	peak     int
	buckets  [bucketCount]int
	measured int
	longest  time.Duration
}

// Durations are kept in buckets that grow by bucketStep, from 10 µs to beyond 15
// minutes, so that a percentile is right within 5 % at a fixed size.
const (
	bucketStep  = 1.1
	bucketUnit  = 10 * time.Microsecond
	bucketCount = 200
)

func newMeter() *meter {
	return &meter{kinds: map[string]int{}, statuses: map[int]int{}}
}

// Observe counts one call; calls of leads also go into the latencies.
func (m *meter) Observe(c leadapi.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Kind == "reach" {
		return // no request of a row
	}
	m.kinds[c.Kind]++
	if c.Status != 0 {
		m.statuses[c.Status]++
	}
	if c.Kind == "token" {
		return
	}
	m.measured++
	m.longest = max(m.longest, c.Duration)
	m.buckets[bucketOf(c.Duration)]++
}

func (m *meter) retried() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.retries++
}

// enter counts a lead request in flight until the returned function is called.
func (m *meter) enter() (leave func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current++
	m.peak = max(m.peak, m.current)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.current--
	}
}

// inFlight is how many lead requests are under way.
func (m *meter) inFlight() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current
}

func bucketOf(d time.Duration) int {
	if d <= bucketUnit {
		return 0
	}
	i := int(math.Log(float64(d)/float64(bucketUnit)) / math.Log(bucketStep))
	return min(i, bucketCount-1)
}

// report puts the requests into the run's figures.
func (m *meter) report(s *report.Summary) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Requests = report.Requests{
		Create: m.kinds["create"], Update: m.kinds["update"], Token: m.kinds["token"], Retries: m.retries,
		ByStatus: map[string]int{},
	}
	for status, n := range m.statuses {
		s.Requests.ByStatus[strconv.Itoa(status)] = n
	}
	s.LatencyMs = report.Latency{P50: m.percentile(0.5), P90: m.percentile(0.9), P95: m.percentile(0.95), P99: m.percentile(0.99), Max: millis(m.longest)}
	s.PeakInFlight = m.peak
}

// percentile is the duration in milliseconds below which share of the calls stayed.
func (m *meter) percentile(share float64) float64 {
	want, seen := int(math.Ceil(share*float64(m.measured))), 0
	for i, n := range m.buckets {
		if seen += n; n > 0 && seen >= want {
			upper := float64(bucketUnit) * math.Pow(bucketStep, float64(i+1))
			return millis(min(time.Duration(upper), m.longest))
		}
	}
	return 0
}

// millis rounds to a hundredth of a millisecond.
func millis(d time.Duration) float64 {
	return math.Round(float64(d)/float64(10*time.Microsecond)) / 100
}

// metered counts the lead requests in flight.
type metered struct {
	Sender
	meter *meter
}

func (m *metered) Create(ctx context.Context, r *leadapi.CreateRequest) (*leadapi.Created, error) {
	defer m.meter.enter()()
	return m.Sender.Create(ctx, r)
}

func (m *metered) Update(ctx context.Context, leadID string, r *leadapi.UpdateRequest) (*leadapi.Lead, error) {
	defer m.meter.enter()()
	return m.Sender.Update(ctx, leadID, r)
}
