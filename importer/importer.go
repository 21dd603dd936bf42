// Package importer carries rows from files into the lead service, once each. It is the
// middle of leadferry and the only package that knows the order of steps. Import, Sync, Reconcile
// and Validate are one engine with different planners. A row's way, each box a type:
//
//	files ─▶ [intake: read ─▶ map, digest]        one goroutine reads, several make Records
//	              │ batches
//	         [lookups]                             one goroutine: what the checkpoint knows of each row
//	              │ batches, looked up
//	         [scheduler]                           one goroutine: plans, keeps order, counts
//	              │ [planner]     the row's one Step: create, link, update, hold, or nothing
//	              │ [leadQueues]  rows of one lead wait for one another
//	              │ todo
//	         [carrier] …                           four goroutines for each place in flight, each with
//	              │ claim ─▶ send ─▶ settle        one row, to its end; delivery says when each request
//	              │       ─▶ link ─▶ settle        leaves, and sends it again where it may
//	              │ done
//	         [scheduler]
//	              │ [account]     the tally counts and knows the limits: why the run stops
//	         [recorder] ─▶ results, rejects        one goroutine; the summary comes last
//
// The rooms below know no rows on their way: source reads files, delivery sends requests, meter counts them, findings
// gathers what a dry run tells, named leads that no row names, and report writes files.
//
// Promises:
//
//   - No create leaves before its intent is durable, no update before the checkpoint has
//     marked its lead, and no outcome is shown before it is durable.
//   - A create which may have been applied is never sent again by itself.
//   - A row which may be known already is held, not sent: its key looks like a known one, or
//     the checkpoint is incomplete.
//   - An update counts only when the lead that comes back shows it.
//   - Rows of one lead go one after another, in file order.
//   - The outcomes add up to the rows read.
package importer

import (
	"context"
	"errors"

	"leadferry/importer/report"
)

// Import creates the leads of the inputs' rows and links their ExternalIDs. It
// returns the run's summary, also when the run ended early; an error means that
// nothing was sent. With DryRun it plans against the checkpoint and sends and
// writes nothing.
func Import(ctx context.Context, o Options) (*report.Summary, error) {
	if err := o.Mapping.ForCreate(); err != nil {
		return nil, err
	}
	return newImport(o).carryOut(ctx)
}

func newImport(o Options) *run { return newRun(o, creating(&o)) }

func creating(o *Options) importPlanner {
	return importPlanner{
		retryRejected: o.RetryRejected, resendDoubt: o.ResendInDoubt, conflicts: newConflicts(o),
		changed: o.Changed,
	}
}

// Sync brings Status, ExternalID and Content of leads that are known in step with the
// inputs' rows, by updates of what differs from what was last confirmed. Rows find
// their lead by key, by the lead's ID, or by ExternalID. It returns as Import does.
func Sync(ctx context.Context, o Options) (*report.Summary, error) {
	if o.Missing == MissingCreate {
		if err := o.Mapping.ForCreate(); err != nil {
			return nil, err
		}
	}
	if o.Mapping.KeyFrom() == "row" && !o.Mapping.HasLeadID() {
		return nil, errNoIdentity
	}
	o.Require = o.Require || !o.Mapping.HasLeadID()
	return newSync(o).carryOut(ctx)
}

func newSync(o Options) *run {
	r := newRun(o, syncPlanner{importPlanner: creating(&o), missing: o.Missing})
	r.matches, r.intake.fields = true, true
	return r
}

var errNoIdentity = errors.New("the mapping has neither key nor external_id nor lead_id, so a changed row finds no lead\n" +
	"hint: name the column that makes a row the same row on the next run: key: \"{column}\"")

// Validate reads, maps and checks every row of every input, runs the mapping's tests
// and sends nothing. It needs neither service nor checkpoint, and ends before the
// inputs do for an interruption only.
func Validate(ctx context.Context, o Options) (*report.Summary, error) {
	r := newRun(o, validatePlanner{})
	r.intake.keepGoing = true
	if err := r.intake.bind(); err != nil {
		return nil, err
	}
	r.dry = newDryRun(&r.Options, r.intake)
	r.dry.examine()
	return r.perform(ctx)
}
