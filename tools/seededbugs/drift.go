package main

// driftBugs are mistakes in comparing both sides: whose word counts, and what a read may change.
func driftBugs() []bug {
	return []bug{
		{
			number: 31, name: "seen taken for confirmed", imitates: "what others changed is kept in place of what was confirmed, so that the next sync sends the file's old status over it",
			edits:  []edit{{"importer/update.go", "	case elsewhere || j.step.kept:\n", "	case elsewhere && j.step.kept:\n"}},
			checks: []check{{"importer", []string{"TestChangesByOthersAreSeen"}}},
		},
		{
			number: 32, name: "stale file ahead", imitates: "a file that still says what it said when the service's status was kept looks as if it had changed, and is sent the next night",
			edits:  []edit{{"importer/conflict.go", "	case b.Seen.Kept: // against what the file said then\n", "	case b.Seen.Kept && b.Status == \"\":\n"}},
			checks: []check{{"importer", []string{"TestChangedBy"}}},
		},
		{
			number: 33, name: "read that writes", imitates: "a reconciliation sends the row's status with its read, over what people changed in the console",
			edits: []edit{{
				"importer/update.go", "lead, err := c.patch(ctx, c.phases.taking, j, &leadapi.UpdateRequest{ExternalID: &external})",
				"lead, err := c.patch(ctx, c.phases.taking, j, &leadapi.UpdateRequest{ExternalID: &external, Status: &j.it.rec.Status})",
			}},
			checks: []check{{"importer", []string{"TestVerdicts"}}},
		},
		{
			number: 34, name: "any lead believed", imitates: "fault 69: a read that is answered with another lead counts as one of the lead that was meant",
			edits:  []edit{{"importer/update.go", "	case lead.ID != j.entry.LeadID:\n", "	case lead.ID == \"\":\n"}},
			checks: []check{{"importer", []string{"TestReadsThatShowSomethingElse"}}},
		},
		{
			number: 35, name: "last word of a status", imitates: "the pull file turns a status into the last of the CRM's words for it, and pull: is not asked",
			edits:  []edit{{"mapping/checks.go", "if _, has := r.m.pull[status]; known && !has {", "if known {"}},
			checks: []check{{"mapping", []string{"TestWordsOfTheWayBack"}}},
		},
	}
}
