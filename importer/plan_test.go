package importer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/spelling"
	"leadferry/leadapi"
	"leadferry/mapping"
)

func sumsOf(fields ...mapping.Field) []checkpoint.ContentDigest {
	return (&item{rec: mapping.Record{Content: fields}}).contentDigests(checkpoint.NewDigester(nil))
}

// planned is the planner of a run with these options.
func planned(run string, by Planning) *planner {
	return &planner{o: &Options{Task: Task{RunID: run}, Planning: by}, digests: checkpoint.NewDigester(nil)}
}

// planRow is the row of most cases; planLead the lead that is in step with it.
func planRow() mapping.Record {
	return mapping.Record{
		Key: "k", ExternalID: "x", Status: "contacted",
		Content: []mapping.Field{{Name: "name", Value: "Ann"}, {Name: "phone", Value: "1"}, {Name: "run", Value: "r", Volatile: true}},
	}
}

func planLead() checkpoint.Entry {
	return checkpoint.Entry{
		Key: "k", State: checkpoint.Created, LeadID: "lead-1", ExternalID: "x", Status: "contacted",
		Content: sumsOf(mapping.Field{Name: "name", Value: "Ann"}, mapping.Field{Name: "phone", Value: "1"}),
		Updated: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
	}
}

// mustPlan compares the step of a planner with want: an outcome; "create" or "read"; "link" or "hold" with the outcome
// that follows; or "send" with what is sent: S (status), X (ExternalID) and content keys.
func mustPlan(t *testing.T, plan func(*item) Step, it *item, want string) {
	t.Helper()
	step := plan(it)
	got := step.outcome.String()
	switch step.Action {
	case Create:
		got = "create"
	case Link:
		got = "link, " + got
	case Hold:
		got = "hold, " + got
	case Read:
		got = "read"
	case Update:
		names := step.names(func(c change) bool { return c.choice == sends })
		got = strings.NewReplacer("Status", "S", "ExternalID", "X").Replace(strings.Join(append([]string{"send"}, names...), " "))
	case Nothing:
		if step.outcome != Unchanged && step.text == "" {
			t.Error("no reason is given")
		}
	}
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestImportPlanner is the import planner's whole table: what is known of a key,
// and whether the row still carries the same data. Invariant 3; faults 83, 102
func TestImportPlanner(t *testing.T) {
	same, other := checkpoint.Digest{1}, checkpoint.Digest{2}
	linked := mapping.Record{Key: "k", ExternalID: "x"}
	tests := []struct {
		name  string
		by    Planning
		rec   mapping.Record
		known checkpoint.Entry
		lost  bool
		had   string
		want  string
	}{
		{name: "unknown", want: "create"},
		{name: "made, same data", known: checkpoint.Entry{State: checkpoint.Created, Digest: same}, want: "unchanged"},
		{name: "made, other data", known: checkpoint.Entry{State: checkpoint.Created, Digest: other}, want: "changed"},
		{name: "created, other data ignored", by: Planning{Changed: IgnoreChanged}, known: checkpoint.Entry{State: checkpoint.Created, Digest: other}, want: "unchanged"},
		{name: "partial", rec: linked, known: checkpoint.Entry{State: checkpoint.Partial, Digest: same, LeadID: "l"}, want: "link, created"},
		{name: "partial, other data", rec: linked, known: checkpoint.Entry{State: checkpoint.Partial, Digest: other, LeadID: "l"}, want: "link, changed"},
		{name: "partial, no link asked for any more", known: checkpoint.Entry{State: checkpoint.Partial, Digest: same, LeadID: "l"}, want: "unchanged"},
		{name: "rejected, same data", known: checkpoint.Entry{State: checkpoint.Rejected, Digest: same, Code: 422}, want: "rejected"},
		{name: "rejected, other", known: checkpoint.Entry{State: checkpoint.Rejected, Digest: other}, want: "create"},
		{name: "rejected, tried again", by: Planning{RetryRejected: true}, known: checkpoint.Entry{State: checkpoint.Rejected, Digest: same}, want: "create"},
		{name: "in doubt", known: checkpoint.Entry{State: checkpoint.InDoubt, Digest: same}, want: "in_doubt"},
		{name: "in doubt, other", known: checkpoint.Entry{State: checkpoint.InDoubt, Digest: other}, want: "in_doubt"},
		{name: "in doubt, resent", by: Planning{ResendInDoubt: true}, known: checkpoint.Entry{State: checkpoint.InDoubt, Digest: same}, want: "create"},
		{name: "in doubt since this run, resent", by: Planning{ResendInDoubt: true}, known: checkpoint.Entry{State: checkpoint.InDoubt, Digest: same, Run: "this"}, want: "in_doubt"},
		{name: "a person says that it was not made", known: checkpoint.Entry{State: checkpoint.NotMade, Digest: same}, want: "create"},
		{name: "unknown, may be missing", lost: true, want: "hold, in_doubt"},
		{name: "rejected, may be missing", lost: true, known: checkpoint.Entry{State: checkpoint.Rejected, Digest: same}, want: "rejected"},
		{name: "rejected, other data, may be missing", lost: true, known: checkpoint.Entry{State: checkpoint.Rejected, Digest: other}, want: "hold, in_doubt"},
		{name: "not made, may be missing", lost: true, known: checkpoint.Entry{State: checkpoint.NotMade}, want: "hold, in_doubt"},
		{name: "in doubt, may be missing, resent", by: Planning{ResendInDoubt: true}, lost: true, known: checkpoint.Entry{State: checkpoint.InDoubt}, want: "in_doubt"},
		{name: "the rejects say that it has a lead, and its key is new", had: "created", want: "conflict"},
		{name: "the rejects say that it has a lead, a person says that it has none", had: "created", known: checkpoint.Entry{State: checkpoint.NotMade}, want: "create"},
		{name: "the rejects say that it has a lead, rejected, other data", had: "created", known: checkpoint.Entry{State: checkpoint.Rejected, Digest: other}, want: "create"},
		{name: "held, resent", by: Planning{ResendInDoubt: true}, known: checkpoint.Entry{State: checkpoint.InDoubt, Reason: checkpoint.ReasonIncomplete}, want: "in_doubt"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			it := &item{row: source.Row{Noted: source.Noted{Outcome: test.had}}, rec: test.rec, digest: same, content: []checkpoint.ContentDigest{}, matched: matched{mayLack: test.lost}, result: result{entry: test.known}}
			mustPlan(t, planned("this", test.by).forImport, it, test.want)
		})
	}
}

// A run does not read what a person wrote beside a row in doubt, but a note counts these rows.
func TestAnswersInRejectsAreNoted(t *testing.T) {
	tally := newTally(1)
	for _, answered := range []bool{true, false, true} {
		tally.count(&item{row: source.Row{Noted: source.Noted{Answered: answered}}, result: result{ending: ending{outcome: InDoubt}}}, report.Place{})
	}
	if notes := strings.Join(tally.notes(), "\n"); !strings.Contains(notes, "holds an answer: 2.") {
		t.Errorf("%q", notes)
	}
}

// Each row shows when it was sent. Rows with the same cause are counted together.
func TestRowsInDoubtAreOneReasonWheneverTheyWereSent(t *testing.T) {
	at := func(minute int) checkpoint.Entry {
		return checkpoint.Entry{State: checkpoint.InDoubt, Reason: leadapi.ReasonTimeout, Updated: time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC)}
	}
	p := planned("", Planning{})
	for name, plan := range map[string]func(*item) Step{"import": p.forImport, "sync": p.forSync, "reconcile": p.forReconcile} {
		p.o.RunID = "this"
		one := plan(&item{rec: mapping.Record{Key: "k"}, matched: matched{by: checkpoint.ByKey}, result: result{entry: at(4)}})
		two := plan(&item{rec: mapping.Record{Key: "k"}, matched: matched{by: checkpoint.ByKey}, result: result{entry: at(5)}})
		if one.outcome != InDoubt || spelling.WithoutPlaces(one.text) != spelling.WithoutPlaces(two.text) || one.text == two.text {
			t.Errorf("%s: %+v and %+v", name, one, two)
		}
		if name == "reconcile" && one.found.verdict != Doubtful {
			t.Errorf("verdict %v", one.found.verdict)
		}
	}
}

// TestSyncPlanner is the sync planner's table: how the lead was found, what is known of
// it, and what the row says. Invariant 3
func TestSyncPlanner(t *testing.T) {
	digest := func(rec mapping.Record) checkpoint.Digest {
		return (&item{rec: rec}).requestDigest(checkpoint.NewDigester(nil))
	}
	create, ignore, hold := Planning{Missing: MissingCreate}, Planning{Missing: MissingIgnore}, Planning{HoldReopen: true}
	type (
		row  = *mapping.Record
		lead = *checkpoint.Entry
	)
	const byKey = checkpoint.ByKey
	noRow, noLead := func(row) {}, func(lead) {}
	unknown := func(e lead) { *e = checkpoint.Entry{Key: "k"} }
	status := func(s string) func(lead) { return func(e lead) { e.Status = s } }
	doubt := func(e lead) { *e = checkpoint.Entry{Key: "k", State: checkpoint.InDoubt} }
	rejected := func(e lead) {
		// Older checkpoints hold the digests of what was refused.
		*e = checkpoint.Entry{Key: "k", State: checkpoint.Rejected, Code: 422, Digest: digest(planRow()), Status: "contacted", Content: planLead().Content}
	}
	noID := func(e lead) { e.LeadID = "" }
	refused := func(e lead) { e.Status, e.Refused, e.Code = "open", digest(planRow()), 422 }
	unsettled := func(run string) func(lead) { return func(e lead) { e.Unsettled, e.Sought = run, "onHold" } }
	tests := []struct {
		name  string
		by    Planning
		found checkpoint.Match
		row   func(row)
		lead  func(lead)
		want  string // outcome, or "send" and what
	}{
		{"in step", Planning{}, byKey, noRow, noLead, "unchanged"},
		{"in step, found by lead ID", Planning{}, checkpoint.ByLeadID, func(r row) { r.Key, r.LeadID = "other", "lead-1" }, noLead, "unchanged"},
		{"in step, found by ExternalID", Planning{}, checkpoint.ByExternalID, func(r row) { r.Key = "other" }, noLead, "unchanged"},
		{"volatile field alone", Planning{}, byKey, func(r row) { r.Content[2].Value = "other" }, noLead, "unchanged"},
		{"another status", Planning{}, byKey, func(r row) { r.Status = "inProgress" }, noLead, "send S"},
		{"no status in the row", Planning{}, byKey, func(r row) { r.Status = "" }, noLead, "unchanged"},
		{"no status was known", Planning{}, byKey, noRow, status(""), "send S"},
		{"status changed elsewhere", Planning{}, byKey, noRow, status("onHold"), "send S"},
		{"another ExternalID", Planning{}, byKey, func(r row) { r.ExternalID = "y" }, noLead, "read"},
		{"no ExternalID in the row", Planning{}, byKey, func(r row) { r.ExternalID = "" }, noLead, "unchanged"},
		{"one content key", Planning{}, byKey, func(r row) { r.Content[1].Value = "2" }, noLead, "send phone"},
		{"a new content key", Planning{}, byKey, func(r row) { r.Content[1].Name = "fax" }, noLead, "send fax"},
		{"a content key less", Planning{}, byKey, func(r row) { r.Content = r.Content[:1] }, noLead, "unchanged"},
		{"a cleared content key", Planning{}, byKey, func(r row) { r.Content[1].Value = "" }, noLead, "send phone"},
		{"a number for digits", Planning{}, byKey, func(r row) { r.Content[1].Literal = true }, noLead, "send phone"},
		{"rearranged", Planning{}, byKey, func(r row) { slices.Reverse(r.Content) }, noLead, "unchanged"},
		{"rearranged and changed", Planning{}, byKey, func(r row) { slices.Reverse(r.Content); r.Content[2].Value = "Bob" }, noLead, "send name"},
		{"all of it", Planning{}, byKey, noRow, func(e lead) { e.Status, e.ExternalID, e.Content = "open", "z", nil }, "read"},
		{"adopted: content not sent", Planning{}, byKey, noRow, func(e lead) { e.Content = nil }, "send name phone"},
		{"another organization cannot be updated", Planning{}, byKey, func(r row) { r.Organization, r.TypeKey = "o2", "t2" }, noLead, "unchanged"},
		{"partial: the link is missing", Planning{}, byKey, noRow, func(e lead) { e.State, e.ExternalID = checkpoint.Partial, "" }, "read"},
		{"partial, no link asked for", Planning{}, byKey, func(r row) { r.ExternalID = "" }, func(e lead) { e.State, e.ExternalID = checkpoint.Partial, "" }, "unchanged"},
		{"unsettled by an earlier run", Planning{}, byKey, noRow, unsettled("run-1"), "send S"},
		{"unsettled by this run", Planning{}, byKey, noRow, unsettled("run-2"), "pending"},
		{"unsettled by this run, nothing to send", Planning{}, byKey, func(r row) { *r = mapping.Record{Key: "k"} }, unsettled("run-2"), "unchanged"},
		{"refused before with the same data", Planning{}, byKey, noRow, refused, "rejected"},
		{"refused before, tried again", Planning{RetryRejected: true}, byKey, noRow, refused, "send S"},
		{"refused before with other data", Planning{}, byKey, func(r row) { r.Status = "onHold" }, refused, "send S"},
		{"refused before, but in step", Planning{}, byKey, noRow, func(e lead) { e.Refused = digest(planRow()) }, "unchanged"},
		{"ambiguous", Planning{}, checkpoint.Ambiguous, noRow, noLead, "conflict"},
		{"another lead than the key's", Planning{}, byKey, func(r row) { r.LeadID = "lead-2" }, noLead, "conflict"},
		{"the key's lead", Planning{}, byKey, func(r row) { r.LeadID = "lead-1" }, noLead, "unchanged"},
		{"unknown", Planning{}, checkpoint.NoMatch, noRow, unknown, "unmatched"},
		{"unknown, created", create, checkpoint.NoMatch, noRow, unknown, "create"},
		{"unknown, ignored", ignore, checkpoint.NoMatch, noRow, unknown, "skipped"},
		{"unknown, named by its ID", Planning{}, checkpoint.NoMatch, func(r row) { r.LeadID = "lead-9" }, unknown, "send S X name phone"},
		{"unknown, named by its ID, though missing ones are made", create, checkpoint.NoMatch, func(r row) { r.LeadID = "lead-9" }, unknown, "send S X name phone"},
		{"unknown, named by its ID, nothing to send", Planning{}, checkpoint.NoMatch, func(r row) { *r = mapping.Record{Key: "k", LeadID: "lead-9"} }, unknown, "unmatched"},
		{"rejected", Planning{}, checkpoint.NoMatch, noRow, rejected, "unmatched"},
		{"rejected, missing ones are made", create, checkpoint.NoMatch, noRow, rejected, "rejected"},
		{"rejected with other data, missing ones are made", create, checkpoint.NoMatch, func(r row) { r.Status = "open" }, rejected, "create"},
		{"rejected, named by its ID", Planning{}, checkpoint.NoMatch, func(r row) { r.LeadID = "lead-9" }, rejected, "send S X name phone"},
		{"in doubt", Planning{}, byKey, noRow, doubt, "in_doubt"},
		{"in doubt, named by its ID", Planning{}, byKey, func(r row) { r.LeadID = "lead-9" }, doubt, "in_doubt"},
		{"in doubt, missing ones are made", create, byKey, noRow, doubt, "in_doubt"},
		{"in doubt, resent", Planning{ResendInDoubt: true, Missing: MissingCreate}, byKey, noRow, doubt, "create"},
		{"in doubt, resent where nothing is made", Planning{ResendInDoubt: true}, byKey, noRow, doubt, "in_doubt"},
		{"forgotten", create, byKey, noRow, func(e lead) { *e = checkpoint.Entry{Key: "k", State: checkpoint.Forgotten} }, "skipped"},
		{"exists, its ID is not known", Planning{}, byKey, noRow, noID, "unmatched"},
		{"exists, the row knows its ID", Planning{}, byKey, func(r row) { r.LeadID, r.Status = "lead-9", "onHold" }, noID, "send S"},
		{"reopened", Planning{}, byKey, noRow, status("closedWon"), "send S"},
		{"reopened, held", hold, byKey, noRow, status("closedWon"), "conflict"},
		{"held, and a list has said what the status is", hold, byKey, noRow, status("Won"), "read"},
		{"held, the status is not known and cannot be read", Planning{HoldReopen: true, ReadByExternalID: true}, byKey, noRow, func(e lead) { e.Status, e.ExternalID = "", "" }, "conflict"},
		{"held, named by its ID", hold, checkpoint.NoMatch, func(r row) { r.LeadID = "lead-9" }, unknown, "read"},
		{"held, an update may have closed it", hold, byKey, noRow, func(e lead) { e.Status, e.Unsettled, e.Sought = "open", "run-1", "closedWon" }, "read"},
		{"closed again, held", hold, byKey, func(r row) { r.Status = "closedBoughtUsed" }, status("closedWon"), "send S"},
		{"closed, no status in the row, held", hold, byKey, func(r row) { r.Status, r.ExternalID = "", "y" }, status("closedWon"), "read"},
		{"still closed, other content, held", hold, byKey, func(r row) { r.Status, r.Content[0].Value = "closedWon", "Bob" }, status("closedWon"), "send name"},
		{"closing, held", hold, byKey, func(r row) { r.Status = "closedWon" }, noLead, "send S"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			it := &item{rec: planRow(), matched: matched{by: test.found}, result: result{entry: planLead()}}
			known := &it.entry
			test.row(&it.rec)
			test.lead(known)
			before := *known
			mustPlan(t, planned("run-2", test.by).forSync, it, test.want)
			if known.Status != before.Status || known.Unsettled != before.Unsettled {
				t.Error("the planner changed what is known")
			}
		})
	}
}

// The step depends on --changed and on what syncs have done since.
func TestWhatAnImportDoesWithLeadsThatExist(t *testing.T) {
	same := (&item{rec: planRow()}).requestDigest(checkpoint.NewDigester(nil))
	other := checkpoint.Digest{9}
	update, ignore := Planning{Changed: UpdateChanged}, Planning{Changed: IgnoreChanged}
	for _, test := range []struct {
		name string
		by   Planning
		lead func(*checkpoint.Entry)
		want string
	}{
		{"adopted", Planning{}, func(*checkpoint.Entry) {}, "unchanged"},
		{"adopted, updated", update, func(e *checkpoint.Entry) { e.Content = nil }, "send name phone"},
		{"synced to the same", Planning{}, func(e *checkpoint.Entry) { e.Digest, e.Synced = other, true }, "unchanged"},
		{"synced to something else", Planning{}, func(e *checkpoint.Entry) { e.Digest, e.Synced, e.Status = other, true, "onHold" }, "changed"},
		{"synced, the row is as it was", Planning{}, func(e *checkpoint.Entry) { e.Digest, e.Synced, e.Status = same, true, "onHold" }, "unchanged"},
		{"synced, not settled", Planning{}, func(e *checkpoint.Entry) { e.Digest, e.Synced, e.Unsettled = other, true, "r" }, "changed"},
		{"never synced, fields alike", Planning{}, func(e *checkpoint.Entry) { e.Digest = other }, "changed"},
		{"ignored", ignore, func(e *checkpoint.Entry) { e.Digest, e.Status = other, "open" }, "unchanged"},
		{"same data", update, func(e *checkpoint.Entry) { e.Digest, e.Status = same, "onHold" }, "unchanged"},
		{"same data, but what was sent last was not taken", update, func(e *checkpoint.Entry) {
			e.Digest, e.Synced, e.Reason, e.Content = same, true, reasonNotConfirmed, e.Content[1:]
		}, "send name"},
		{"same data, but what was sent last was not taken, only reported", Planning{}, func(e *checkpoint.Entry) {
			e.Digest, e.Synced, e.Reason, e.Content = same, true, reasonNotConfirmed, e.Content[1:]
		}, "changed"},
		{"same data, not settled", update, func(e *checkpoint.Entry) { e.Digest, e.Unsettled, e.Sought = same, "r", "open" }, "send S"},
		{"other data", update, func(e *checkpoint.Entry) { e.Digest, e.Status = other, "open" }, "send S"},
		{"other data that cannot be updated", update, func(e *checkpoint.Entry) { e.Digest = other }, "unchanged"},
		{"other data, no ID", update, func(e *checkpoint.Entry) { e.Digest, e.LeadID = other, "" }, "changed"},
		{"other data, refused before", update, func(e *checkpoint.Entry) { e.Digest, e.Status, e.Refused = other, "open", same }, "rejected"},
		{"partial, other data", update, func(e *checkpoint.Entry) {
			e.Digest, e.State, e.ExternalID, e.Status = other, checkpoint.Partial, "", "open"
		}, "read"},
		{"partial, same data", update, func(e *checkpoint.Entry) { e.Digest, e.State, e.ExternalID = same, checkpoint.Partial, "" }, "link, created"},
		{"partial, refused before", update, func(e *checkpoint.Entry) {
			e.Digest, e.State, e.ExternalID, e.Refused = other, checkpoint.Partial, "", same
		}, "rejected"},
		{"forgotten", update, func(e *checkpoint.Entry) { *e = checkpoint.Entry{Key: "k", State: checkpoint.Forgotten} }, "skipped"},
	} {
		t.Run(test.name, func(t *testing.T) {
			it := &item{rec: planRow(), matched: matched{by: checkpoint.ByKey}, result: result{entry: planLead()}}
			test.lead(&it.entry)
			mustPlan(t, planned("run-2", test.by).forImport, it, test.want)
		})
	}
}
