package importer

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/internal/rowkey"
	"leadferry/internal/spelling"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Reconciling says which leads reconcile reads.
type Reconciling struct {
	None   bool          // --remote none: no lead
	Fresh  time.Duration // not those confirmed or read within this time; 0: all
	Sample int           // only those of this many rows, drawn at random; 0: all
}

// Verdict is the result of the comparison, as files name it. "" is for rows that are not compared, like invalid ones.
type Verdict string

const (
	Same         Verdict = "same"
	FileAhead    Verdict = "file_ahead"    // the service is as last confirmed, the file is not
	ServiceAhead Verdict = "service_ahead" // the file is as last confirmed, the service is not
	BothChanged  Verdict = "both_changed"
	Unread       Verdict = "unread"    // its lead was not read, or could not be read
	NoLead       Verdict = "unmatched" // none is known
	Absent       Verdict = "absent"    // a lead that no row names
	Doubtful     Verdict = "in_doubt"  // nobody can tell whether its lead was made
)

// changedBy says who changed a lead that is not the same as its row.
var changedBy = map[Verdict]string{FileAhead: "file", ServiceAhead: "service", BothChanged: "both"}

// uncompared has the verdicts of rows whose lead is not known for certain, by how they end.
var uncompared = map[Outcome]Verdict{Conflict: NoLead, Unmatched: NoLead, InDoubt: Doubtful}

func (v Verdict) compared() bool { return v == Same || changedBy[v] != "" }

// comparison is what the comparison of a row showed, in addition to what is known of its lead.
type comparison struct {
	verdict Verdict
	service string    // the status that the service shows, or was seen to show; "": it shows none
	pulled  bool      // the CRM should take over the service's status
	changed time.Time // when the lead was last changed, as the service says; or zero
	keys    string    // the names of the content keys that differ
}

// forReconcile decides which leads to read: all, or those of drawn rows. Others are compared with what was seen before.
func (p *planner) forReconcile(it *item) Step {
	if step, cannot := withoutLead(it); cannot {
		return step.as(uncompared[step.outcome])
	}
	known, how := &it.entry, &p.o.Reconciling
	// whether the service itself has shown what the lead holds, not only an adopted list, and nothing that is not kept
	shown := !known.Seen.Content &&
		(known.Seen.Status != "" || known.Digest != checkpoint.Digest{} || known.Synced || len(known.Content) > 0)
	switch {
	case how.Sample > 0 && !it.second: // drawn rows are decided again after all rows were read
		step := ends(Skipped, "its lead is not in the sample").as(Unread)
		if p.readable(known) {
			step.Action = Draw
		}
		return step
	case how.None, how.Fresh > 0 && shown && cmp.Or(known.Seen.At, known.ConfirmedAt()).After(p.since):
		return p.verdictOf(it, nil)
	case !p.readable(known):
		return ends(Unmatched, "its lead cannot be read: no ExternalID of it is known").as(Unread)
	}
	step := Step{Action: Read}.as(Unread)
	if kept := known.Seen.Status; kept != "" { // counts if the read fails
		step.found.pulled = decide(statusOf(known, it.rec.Status, nil), p.rules.ForStatus(kept)).choice == keeps
	}
	return step
}

func (s Step) as(v Verdict) Step {
	s.found.verdict = v
	return s
}

// verdictOf says whether the file or others changed a lead, without conflict rules. lead nil: what was seen counts.
func (p *planner) verdictOf(it *item, lead *leadapi.Lead) Step {
	known := &it.entry
	cs := (&planner{digests: p.digests}).compare(it, known, lead, true)
	s := Step{changes: cs, ending: ending{outcome: Conflict}}
	f := &s.found
	if f.service = shownStatus(known, lead); cs.chosen(asks) != nil {
		s.text = listed(byOthers, cs.named(asks, changedTo(known, f.service)))
	}
	rule, status := p.rules.ForStatus(f.service), cs.of(atStatus)
	f.pulled = status.byService && (rule == mapping.RuleService || rule == mapping.RuleReport && !status.byFile)
	keys := cs.names(func(c change) bool { return c.at >= 0 && c.changed() })
	if f.keys = strings.Join(keys, ", "); lead != nil {
		f.changed = lead.UpdatedAt
	}
	content := lead == nil && known.Seen.Content
	service := content || slices.ContainsFunc(cs, func(c change) bool { return c.byService })
	switch file := cs.byFile(); {
	case file && service:
		f.verdict = BothChanged
	case service:
		f.verdict = ServiceAhead
	case file:
		f.verdict, s.text = FileAhead, "the file has changed since"
	default:
		f.verdict, s.outcome = Same, Unchanged
	}
	if cs.of(atExternal).choice == sends {
		s.say("its ExternalID is not the one that is linked")
	}
	if content {
		s.say(byOthers + "content, as a read has shown")
	}
	return s
}

// drift counts the verdicts of a reconciliation, and notes the keys that its rows name: a lead that none names is absent.
type drift struct {
	most     int     // rows of the sample; 0: all are read
	drawn    []*item // the sample so far; a row ends as its ending says if another takes its place
	met      int     // rows that might be drawn
	verdicts map[Verdict]int
	named    map[bool]*rowkey.Set // true: known leads, false: others; nil: nothing says which leads a file should name
}

// draw offers a row to the sample (reservoir sampling: all have the same chance). It returns the row left out, or nil.
func (d *drift) draw(one *item) *item {
	one.second = true // if it stays in the sample
	d.met++
	if len(d.drawn) < d.most {
		d.drawn = append(d.drawn, one)
		return nil
	}
	if i := rand.IntN(d.met); i < d.most {
		d.drawn[i], one = one, d.drawn[i]
	}
	return one
}

func (d *drift) report(s *report.Summary, rewrites bool) {
	rec := &report.Reconciliation{Rewrites: rewrites}
	for _, v := range []Verdict{Same, FileAhead, ServiceAhead, BothChanged, Unread, NoLead, Absent, Doubtful} {
		if v != Absent || d.named != nil {
			rec.Verdicts = append(rec.Verdicts, report.VerdictCount{Verdict: string(v), Leads: d.verdicts[v]})
		}
	}
	if picked := min(d.met, d.most); picked > 0 {
		differ := d.verdicts[FileAhead] + d.verdicts[ServiceAhead] + d.verdicts[BothChanged]
		rec.Sample = report.NewSample(picked, d.verdicts[Same]+differ, differ)
	}
	s.Reconciliation = rec
}

// prepareReconciliation finds out whether leads that no row names can be listed as absent. With a namespace, those of
// the namespace can. Without one, all can, if the ledger made leads only from files of this kind.
func (r *run) prepareReconciliation(ctx context.Context) (err error) {
	lists := r.Mapping.Namespace() != ""
	if !lists {
		lists, err = checkpoint.OnlyOf(ctx, r.ledger, r.inputShapes())
	}
	if lists {
		r.drift.named = map[bool]*rowkey.Set{true: rowkey.NewSet(r.ledger.Info().Leads), false: rowkey.NewSet(0)}
	}
	return err
}

// findAbsent adds the leads that no row has named, after all rows were read.
func (r *run) findAbsent(ctx context.Context, w *writer) {
	d := r.drift
	if d == nil || d.named == nil || r.stopped != nil || r.Limit > 0 ||
		d.named[true].Close() == max(r.opened.Leads, r.ledger.Info().Leads) { // all leads were named
		return
	}
	d.named[false].Close()
	err := checkpoint.Each(ctx, r.ledger, checkpoint.Filter{}, func(e checkpoint.Entry) error {
		namespace, _ := rowkey.Split(e.Key)
		named := namespace != r.Mapping.Namespace() || d.named[true].Has(e.Key) || d.named[false].Has(e.Key)
		if e.State.HasLead() && !named {
			d.verdicts[Absent]++
			w.absent(&e)
		}
		return nil
	})
	switch {
	case err != nil && ctx.Err() != nil:
		r.stopped = interrupted()
	case err != nil:
		r.stopped = ledgerFailed(err)
	}
}

// pulls gathers what the CRM should take over: leads whose status the service has changed and keeps. The last row of a
// lead decides, so the file is written after all rows have ended. Each of these leads takes about 300 bytes of memory.
type pulls struct {
	mapping *mapping.Mapping
	ahead   map[string]report.Pulled // by lead ID, with the service's statuses
	lines   []report.Pulled          // of the file, by ExternalID; filled by finish
	unnamed map[string]bool          // statuses for which the mapping has no word
	lacking int                      // leads that are left out for that reason
}

func (p *pulls) add(it *item) {
	e, f := &it.entry, &it.found
	switch {
	case e.LeadID == "" || it.outcome == Pending || it.rec.Skip: // nothing new is known of the lead
	case f.pulled || it.remarks[serviceKept]:
		p.ahead[e.LeadID] = report.Pulled{
			ExternalID: strings.Clone(cmp.Or(it.rec.ExternalID, e.ConfirmedLink())), LeadID: e.LeadID,
			Status:         cmp.Or(f.service, e.Seen.Status),
			UpdatedAt:      spelling.Time(cmp.Or(f.changed, e.Seen.At), spelling.Milliseconds),
			OrganizationID: cmp.Or(e.Seen.Organization, e.Organization),
		}
	case it.outcome != Failed:
		delete(p.ahead, e.LeadID)
	}
}

// finish makes the lines of the file, with statuses in the CRM's words. Leads whose status has no word are left out,
// and counted unless the mapping leaves them out on purpose.
func (p *pulls) finish() {
	for _, line := range p.ahead {
		word, known := p.mapping.PullWord(line.Status)
		switch {
		case line.Status == "":
			p.lines = append(p.lines, line)
		case !known:
			p.unnamed[spelling.Escape(line.Status)] = true
			p.lacking++
		case word != "":
			line.Status = word
			p.lines = append(p.lines, line)
		}
	}
	slices.SortFunc(p.lines, func(a, b report.Pulled) int {
		return cmp.Or(cmp.Compare(a.ExternalID, b.ExternalID), cmp.Compare(a.LeadID, b.LeadID))
	})
}
