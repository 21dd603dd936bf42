package report

import (
	"maps"
	"slices"
	"strings"
)

// metricsNamespace begins the name of every gauge.
const metricsNamespace = "leadferry"

// gauge is one metric with its points, which its own labels tell apart.
type gauge struct {
	name   string // without the namespace
	help   string
	labels []string
	points []point
}

// point is one value, with a text for each of the gauge's labels.
type point struct {
	labels []string
	value  float64
}

func single(name, help string, value float64) gauge {
	return gauge{name: name, help: help, points: []point{{value: value}}}
}

// gauges are the figures of a run that has ended.
func (s *Summary) gauges() []gauge {
	gauges := []gauge{
		single("run_duration_seconds", "How long the run took.", s.DurationS),
		s.rowGauge(),
		{
			name: "run_requests", help: "Requests of the run by kind, further tries included.", labels: []string{"kind"},
			points: []point{
				{[]string{"create"}, float64(s.Requests.Create)},
				{[]string{"update"}, float64(s.Requests.Update)},
				{[]string{"token"}, float64(s.Requests.Token)},
			},
		},
		single("run_retries", "Further tries among the requests of the run.", float64(s.Requests.Retries)),
		s.responseGauge(),
	}
	if s.Requests.Create+s.Requests.Update > 0 {
		gauges = append(gauges, s.latencyGauge())
	}
	return append(gauges, s.transitionGauge())
}

// rowGauge has every outcome, also those of no row, so that each series goes on
// from run to run.
func (s *Summary) rowGauge() gauge {
	g := gauge{name: "run_rows", help: "Rows of the run by outcome; they add up to the rows read.", labels: []string{"outcome"}}
	for _, o := range s.Rows.outcomes() {
		g.points = append(g.points, point{[]string{o.name}, float64(o.rows)})
	}
	return g
}

func (s *Summary) responseGauge() gauge {
	g := gauge{name: "run_responses", help: "Answers of the service by HTTP status code.", labels: []string{"code"}}
	for _, code := range slices.Sorted(maps.Keys(s.Requests.ByStatus)) {
		g.points = append(g.points, point{[]string{code}, float64(s.Requests.ByStatus[code])})
	}
	return g
}

// latencyGauge is no summary in the sense of Prometheus: the sum is not known.
func (s *Summary) latencyGauge() gauge {
	l := s.LatencyMs
	g := gauge{name: "run_request_duration_seconds", help: "How long lead requests took: percentiles and the longest.", labels: []string{"stat"}}
	for _, p := range []struct {
		stat string
		ms   float64
	}{{"p50", l.P50}, {"p90", l.P90}, {"p99", l.P99}, {"max", l.Max}} {
		g.points = append(g.points, point{[]string{p.stat}, p.ms / 1000})
	}
	return g
}

// transitionGauge takes statuses as the service wrote them, so it sees to it that
// they are texts and that none comes twice.
func (s *Summary) transitionGauge() gauge {
	g := gauge{name: "run_transitions", help: "Leads whose status the run changed.", labels: []string{"from", "to"}}
	leads := map[[2]string]int{}
	for _, t := range s.Transitions {
		leads[[2]string{status(t.From), status(t.To)}] += t.Leads
	}
	for _, pair := range slices.SortedFunc(maps.Keys(leads), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		g.points = append(g.points, point{pair[:], float64(leads[pair])})
	}
	return g
}

// status is one word of the service's, or "other": a label is no place for texts.
func status(word string) string {
	letter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	if len(word) > 40 || strings.ContainsFunc(word, func(r rune) bool { return !letter(r) }) {
		return "other"
	}
	return word
}
