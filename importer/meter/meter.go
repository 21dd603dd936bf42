// Package meter counts the requests of a run: by kind, by status, by duration, and over time. Its size is fixed, however long
// the run takes.
package meter

import (
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
	retries  int
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
	m.retries++
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
	s.Requests = report.Requests{
		Create: m.kinds["create"], Update: m.kinds["update"], Token: m.kinds["token"], Retries: m.retries,
		ByStatus: map[string]int{},
	}
	for status, n := range m.statuses {
		s.Requests.ByStatus[strconv.Itoa(status)] = n
	}
	all := m.timeline.calls()
	s.LatencyMs = report.Latency{P50: all.percentile(0.5), P90: all.percentile(0.9), P95: all.percentile(0.95), P99: all.percentile(0.99), Max: millis(all.longest)}
	s.Timeline = m.timeline.report()
}
