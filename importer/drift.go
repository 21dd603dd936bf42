package importer

import (
	"bytes"
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/named"
	"leadferry/importer/report"
	"leadferry/internal/rowkey"
)

// drift is what a reconciliation counts, and which keys its rows named, by which leads are found
// that no row names.
type drift struct {
	seed     uint64
	picked   int // leads of the sample
	read     int // of them
	differ   int // of those
	verdicts [verdictCount]int
	statuses map[report.Transition]int // of the file, and on the service
	owners   map[report.Transition]int // of leads that moved from one to another
	named    *named.Keys
	others   bool // some of them may be no lead's
}

func newDrift(seed uint64) *drift {
	return &drift{seed: seed, statuses: map[report.Transition]int{}, owners: map[report.Transition]int{}, named: named.New()}
}

// mostMoves bounds what is told apart of statuses and owners: the service's words may be any.
const mostMoves = 1000

func countMove(in map[report.Transition]int, m report.Transition) {
	if len(in) >= mostMoves {
		if _, known := in[m]; !known {
			m = report.Transition{From: "others", To: "others"}
		}
	}
	in[m]++
}

// count adds a row.
func (d *drift) count(it *item, r *result) {
	f := &r.found
	d.verdicts[f.verdict]++
	switch f.verdict {
	case Same, FileAhead, ServiceAhead, BothChanged:
		countMove(d.statuses, report.Transition{From: it.rec.Status, To: f.service})
	default:
		return
	}
	if f.sampled {
		if d.read++; f.verdict != Same {
			d.differ++
		}
	}
	if f.owner != "" && r.entry.Organization != "" && f.owner != r.entry.Organization {
		countMove(d.owners, report.Transition{From: r.entry.Organization, To: f.owner})
	}
}

// name notes that a row names a lead, by its own key or another.
func (d *drift) name(own string, known *checkpoint.Entry) {
	if known.State.HasLead() {
		d.named.Add(known.Key)
	}
	if known.Key != own || !known.State.HasLead() {
		d.others = true
		d.named.Add(own)
	}
}

// tellAbsent hands over the leads of a namespace that no row has named, in the order of their
// keys.
func (d *drift) tellAbsent(ctx context.Context, l *checkpoint.Ledger, namespace string, tell func(*checkpoint.Entry) error) error {
	if !d.others && d.named.Count() >= l.Info().Leads {
		return nil // the rows named leads only, and as many as there are
	}
	each := func(f func(*checkpoint.Entry) error) error { return eachLead(ctx, l, namespace, f) }
	key := func(e *checkpoint.Entry) string { return e.Key }
	return named.Missing(d.named, each, key, func(e *checkpoint.Entry) error {
		d.verdicts[Absent]++
		return tell(e)
	})
}

// eachLead calls f with every lead of a namespace, in the order of their keys.
func eachLead(ctx context.Context, l *checkpoint.Ledger, namespace string, f func(*checkpoint.Entry) error) error {
	return l.Each(ctx, checkpoint.Filter{}, func(e checkpoint.Entry) error {
		before, _, slash := strings.Cut(e.Key, "/")
		own := slash && before != "" && rowkey.IsNamespace(before)
		if !e.State.HasLead() || own != (namespace != "") || own && before != namespace {
			return nil
		}
		return f(&e)
	})
}

// pick is a lead that may be of the sample, by a hash of the seed and its key.
type pick struct {
	hash [sha256.Size]byte
	key  string
}

// picks are a heap with the largest hash on top.
type picks []pick

func (p picks) Len() int           { return len(p) }
func (p picks) Less(i, j int) bool { return bytes.Compare(p[i].hash[:], p[j].hash[:]) > 0 }
func (p picks) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *picks) Push(x any)        { *p = append(*p, x.(pick)) }
func (p *picks) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// sample picks n leads of a namespace that can be read, at random by the seed: one and the same
// as long as the checkpoint knows the same leads.
func (d *drift) sample(ctx context.Context, l *checkpoint.Ledger, namespace string, n int) (map[string]struct{}, error) {
	var best picks
	seed := binary.BigEndian.AppendUint64(nil, d.seed)
	err := eachLead(ctx, l, namespace, func(e *checkpoint.Entry) error {
		if e.ExternalID == "" || e.LeadID == "" {
			return nil
		}
		p := pick{sha256.Sum256(append(seed[:8:8], e.Key...)), e.Key}
		switch {
		case len(best) < n:
			heap.Push(&best, p)
		case bytes.Compare(p.hash[:], best[0].hash[:]) < 0:
			best[0] = p
			heap.Fix(&best, 0)
		}
		return nil
	})
	keys := make(map[string]struct{}, len(best))
	for _, p := range best {
		keys[p.key] = struct{}{}
	}
	d.picked = len(keys)
	return keys, err
}

// wilson is the 95 % interval of a share of which hits of n were found.
func wilson(hits, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959964
	p, count := float64(hits)/float64(n), float64(n)
	middle, width := p+z*z/(2*count), z*math.Sqrt(p*(1-p)/count+z*z/(4*count*count))
	return max(0, (middle-width)/(1+z*z/count)), min(1, (middle+width)/(1+z*z/count))
}

// report puts what was counted into the run's figures.
func (d *drift) report(s *report.Summary) {
	rec := &report.Reconciliation{Statuses: report.Transitions(d.statuses), Owners: report.Transitions(d.owners)}
	for v := Same; v < verdictCount; v++ {
		rec.Verdicts = append(rec.Verdicts, report.VerdictCount{Verdict: v.String(), Leads: d.verdicts[v]})
	}
	if d.picked > 0 {
		low, high := wilson(d.differ, d.read)
		rec.Sample = &report.Sample{Seed: d.seed, Picked: d.picked, Read: d.read, Differ: d.differ, Low: low, High: high}
		if d.read > 0 {
			rec.Sample.Share = float64(d.differ) / float64(d.read)
		}
	}
	s.Reconciliation = rec
}

// prepareReconciliation picks the sample and says what the run will cost.
func (r *run) prepareReconciliation(ctx context.Context) error {
	p, reads := r.planner.(*reconcilePlanner), r.ledger.Info().Leads
	if n := r.Reconciling.Sample; n > 0 {
		var err error
		if p.sampled, err = r.drift.sample(ctx, r.ledger, r.Mapping.Namespace(), n); err != nil {
			return err
		}
		reads = len(p.sampled)
	}
	switch {
	case !p.reads:
		r.cost = "No lead is read: the rows are compared with what the checkpoint knows."
		return nil
	case r.Limit > 0:
		reads = min(reads, r.Limit)
	}
	r.cost = fmt.Sprintf("Up to %d leads are read, by one request each", reads)
	if r.Rate > 0 {
		r.cost += fmt.Sprintf(": %s at --rate %g", time.Duration(float64(reads)/r.Rate*float64(time.Second)).Round(time.Second), r.Rate)
	}
	r.cost += "."
	if r.Reconciling.Sample > 0 {
		r.cost += fmt.Sprintf(" The sample is that of --seed %d.", r.drift.seed)
	}
	return nil
}

// findAbsent adds the leads that no row has named, where all rows were read.
func (r *run) findAbsent(ctx context.Context, rec *recorder) {
	if r.drift == nil {
		return
	}
	defer r.drift.named.Close()
	if r.stopped != nil || r.Limit > 0 {
		return
	}
	err := r.drift.tellAbsent(ctx, r.ledger, r.Mapping.Namespace(), func(e *checkpoint.Entry) error {
		if rec == nil {
			return nil
		}
		return rec.absent(e)
	})
	switch fault := (*absentError)(nil); {
	case err == nil:
	case errors.As(err, &fault):
		r.stopped = filesFailed(fault.error)
	case ctx.Err() != nil:
		r.stopped = interrupted()
	default:
		r.stopped = ledgerFailed(err)
	}
}

// absentError is one of the run's files, not of the checkpoint.
type absentError struct{ error }
