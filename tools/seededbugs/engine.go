package main

// engineBugs are mistakes in the engine: what is sent when, and what is sent again.
func engineBugs() []bug {
	return []bug{
		{
			number: 1, name: "intent after send", imitates: "fault 2: a create leaves before its intent is durable",
			edits: []edit{{
				"importer/carrier.go",
				`	if err := c.ledger.Claim(c.phases.taking, in); err != nil {
		c.notBegun(j, err)
		return
	}
`,
				`	go func() { _ = c.ledger.Claim(c.phases.taking, in) }()
`,
			}},
			checks: []check{{"importer", []string{"TestNoCreateLeavesBeforeItsIntentIsDurable"}}},
		},
		{
			number: 2, name: "batch of claims > slots", imitates: "fault 1: a death leaves a whole batch in doubt, not 2 × concurrency",
			edits:  []edit{{"importer/run.go", "Slots: slotsPerPlace * o.Concurrency", "Slots: batchRows + slotsPerPlace*o.Concurrency"}},
			checks: []check{{"importer", []string{"TestClaimsAreBoundedAndWithdrawn"}}},
		},
		{
			number: 3, name: "retry on EOF", imitates: "m8, fault 37: a connection that broke is taken for a request that was not applied",
			edits: []edit{{
				"importer/delivery/retrier.go", "the others need not wait\n\t\treturn final, e",
				"the others need not wait\n\t\tif e.Reason == leadapi.ReasonNoAnswer {\n\t\t\treturn retrying, e\n\t\t}\n\t\treturn final, e",
			}},
			checks: []check{{"importer/delivery", []string{"TestDeliver"}}},
		},
		{
			number: 11, name: "order by completion", imitates: "faults 79, 80: rows of one key do not wait for one another",
			edits: []edit{
				{"importer/leadqueue.go", "func (q *leadQueues) find(ns *leadNames) *leadQueue {\n", "func (q *leadQueues) find(ns *leadNames) *leadQueue {\n\tif len(q.byName) >= 0 {\n\t\treturn nil\n\t}\n"},
				{"importer/leadqueue.go", "if l.active--; l.active > 0 {", "if l == nil {\n\t\treturn\n\t}\n\tif l.active--; l.active > 0 {"},
			},
			checks: []check{{"importer", []string{"TestRowsOfOneKeyGoOneAfterAnother"}}},
		},
		{
			number: 14, name: "results before commit", imitates: "invariant 1: a row is shown as done before the checkpoint has it",
			edits: []edit{{
				"importer/carrier.go",
				"	stored, err := c.ledger.Settle(context.Background(), j.entry)\n",
				`	stored, err := j.entry, error(nil)
	go func(e checkpoint.Entry) { _, _ = c.ledger.Settle(context.Background(), e) }(j.entry)
`,
			}},
			checks: []check{{"importer", []string{"TestNoResultIsShownBeforeItsOutcomeIsDurable"}}},
		},
		{
			number: 15, name: "Retry-After ignored", imitates: "faults 61, 64: the run waits as long as it likes, not as long as it is told",
			edits:  []edit{{"importer/delivery/retrier.go", "return max(e.RetryAfter, leastThrottle)", "return max(backoff, leastThrottle)"}},
			checks: []check{{"importer/delivery", []string{"TestDeliverWaitsAsTold"}}},
		},
		{
			number: 16, name: "500 retried", imitates: "fault 63: a create is sent again that the service may have stored before it failed",
			edits:  []edit{{"importer/delivery/retrier.go", "repeatable && Transient(e.Status)", "(repeatable || e.Status == http.StatusInternalServerError) && Transient(e.Status)"}},
			checks: []check{{"importer/delivery", []string{"TestDeliver"}}},
		},
		{
			number: 17, name: "201 without id retried", imitates: "m9, faults 38, 51: a create is sent again that was accepted, for its answer had no lead ID",
			edits:  []edit{{"importer/delivery/retrier.go", "repeatable && Transient(e.Status)", "e.Reason == leadapi.ReasonNoLeadID || repeatable && Transient(e.Status)"}},
			checks: []check{{"importer/delivery", []string{"TestACreateThatMayHaveBeenAppliedIsSentOnce"}}},
		},
		{
			number: 19, name: "partial taken for done", imitates: "a lead that was made and not linked is never linked by the next run",
			edits:  []edit{{"importer/plan.go", "return p.planLink(c)", "return p.planKnown(c)"}},
			checks: []check{{"importer", []string{"TestImportPlanner"}}},
		},
		{
			number: 20, name: "stop that drops answers", imitates: "fault 4: the first signal ends requests that are under way, so that they are in doubt",
			edits:  []edit{{"importer/delivery/retrier.go", "err = call(ctx, misdirected > 0)", "err = call(leaving, misdirected > 0)"}},
			checks: []check{{"internal/e2e", []string{"TestCleanStop"}}},
		},
	}
}
