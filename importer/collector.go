package importer

import (
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/internal/rowkey"
)

// collector counts the rows of a run and how each ended. The engine's lock guards it.
type collector struct {
	tally    *tally
	dry      *dryRun // of a run that sends nothing; else nil
	drift    *drift  // of a reconciliation; else nil
	pulls    *pulls  // nil: no pull file is wanted
	recorder sink

	options *Options
	before  *report.Before  // what needed attention in the run before
	began   time.Time       // of the run
	warned  bool            // of a key that looks like an e-mail address
	unkept  []report.Unkept // as many as may be claimed at a time at most
	ended   result          // of the row in end: a copy for each row would be garbage
}

// sink takes each row after its outcome is durable.
type sink interface {
	add(it *item, r *result) error // keeps it, not r
}

// read counts a row, and notes the lead that it names, if that is known.
func (c *collector) read(it *item, known *checkpoint.Entry) {
	if c.drift != nil {
		c.drift.name(it.rec.Key, known)
	}
	c.tally.read(it)
	switch {
	case c.dry != nil:
		c.dry.read(it)
	case it.fault == nil && !c.warned && isAddress(it.rec.Key):
		c.warned = true
		at := c.tally.place(spotOf(it))
		c.options.Log.Warn(addressWarning, "file", at.File, "line", at.Line)
	}
}

// foresee ends a row of a run that sends nothing. It returns why the run ends, or nil.
func (c *collector) foresee(it *item, step *Step, known *checkpoint.Entry) *Stop {
	if step.Action.sends() {
		return c.add(it, &c.dry.pending)
	}
	return c.end(it, result{ending: ending{outcome: step.outcome, text: step.text, kind: step.kind}, entry: *known})
}

// end ends a row that no lane carried.
func (c *collector) end(it *item, r result) *Stop {
	c.ended = r
	return c.add(it, &c.ended)
}

// add records a row's outcome and returns why the run ends, or nil. The recorder comes last: it may give the row's
// memory to another row.
func (c *collector) add(it *item, r *result) *Stop {
	if c.drift != nil {
		c.drift.count(it, r)
	}
	if c.pulls != nil {
		c.pulls.add(it, r)
	}
	if r.outcome.toRejects() && c.dry == nil {
		rej := rejectOf(it, r)
		at, old := c.before.Since(&rej)
		if r.since = at; !old || r.outcome.staysNew() {
			c.tally.news++
		}
		if !old {
			r.since = c.began
		}
	}
	if r.unkept {
		namespace, key := rowkey.Split(it.rec.Key)
		c.unkept = append(c.unkept, report.Unkept{
			Key: key, Namespace: namespace, LeadID: r.entry.LeadID,
			RunID: c.options.RunID,
		})
	}
	why := c.tally.count(it, r)
	if c.dry != nil {
		why = nil
	}
	if err := c.recorder.add(it, r); err != nil && why == nil {
		why = filesFailed(err)
	}
	return why
}
