package main

// fleetBugs are mistakes in fleets of workers, in the ledger that they share, and in inputs at addresses.
func fleetBugs() []bug {
	const store, fenced = "checkpoint/postgres", "TestTheNewestWorkerOfAShardFencesTheOthers"
	return []bug{
		{
			number: 36, name: "nobody is fenced", imitates: "a worker that was replaced goes on beside the newer one",
			edits:  []edit{{store + "/fleet.go", "AND shard = $3 AND worker < $4 AND fenced IS NULL AND ended IS NULL`", "AND shard = $3 AND worker < $4 AND fenced IS NULL AND ended IS NULL AND false`"}},
			checks: []check{{store, []string{fenced}}},
		},
		{
			number: 37, name: "the fenced claim", imitates: "a worker is told that it is fenced, and may claim all the same",
			edits:  []edit{{store + "/write.sql", "WHERE (me.live OR NOT g.claim) AND", "WHERE"}},
			checks: []check{{store, []string{fenced}}},
		},
		{
			number: 38, name: "late answers lost", imitates: "what a fenced worker was answered is not taken any more, so that leads are lost",
			edits:  []edit{{store + "/write.sql", "WHERE (me.live OR NOT g.claim) AND", "WHERE me.live AND"}},
			checks: []check{{store, []string{fenced}}},
		},
		{
			number: 39, name: "any terms", imitates: "a worker with another mapping or another number of shards joins the fleet",
			edits:  []edit{{store + "/fleet.go", `how := terms.Differs(&first); how != ""`, `how := terms.Differs(&first); how == "never"`}},
			checks: []check{{store, []string{"TestWorkersAgree"}}},
		},
		{
			number: 40, name: "creates for each", imitates: "each worker makes as many leads as all of them may",
			edits:  []edit{{store + "/fleet.go", "granted := min(claims, max(left+back, 0))", "granted := claims"}},
			checks: []check{{store, []string{"TestCreatesAreTheFleets"}}},
		},
		{
			number: 41, name: "the whole ledger read", imitates: "a plan that was made while the ledger was empty reads all of it for each commit",
			edits:  []edit{{store + "/find.sql", "WHERE r.ledger = $1 AND r.key = w.key OFFSET 0) l", "WHERE r.ledger = $1 AND r.key = w.key) l"}},
			checks: []check{{store, []string{"TestPlansLookEachKeyUp"}}},
		},
		{
			number: 42, name: "shards by row", imitates: "rows of one key fall to several workers",
			edits:  []edit{{"importer/fleet.go", "case it.fault != nil || it.rec.Skip:", "case it.fault != nil || it.row.Number > 0:"}},
			checks: []check{{"importer", []string{"TestShardsAreTheInput"}}},
		},
		{
			number: 43, name: "look-alikes apart", imitates: "12 and 00012 fall to two workers, neither of which knows what the other does",
			edits:  []edit{{"importer/fleet.go", "xxhash.Sum64String(rowkey.Fold(it.rec.Key))", "xxhash.Sum64String(rowkey.Effective(\"\", it.rec.Key))"}},
			checks: []check{{"importer", []string{"TestRowsOfALeadFallToOneWorker"}}},
		},
		{
			number: 44, name: "waits kept to oneself", imitates: "one worker waits as the service asks, and the others go on",
			edits:  []edit{{"importer/delivery/breaker.go", "\t\tb.Asked(d)\n", "\t\tb.Asked(0)\n"}},
			checks: []check{{"importer", []string{"TestWaitsAreTheFleets"}}},
		},
		{
			number: 45, name: "a rate for each", imitates: "each worker sends as fast as all of them may",
			edits:  []edit{{"importer/delivery/machines.go", "piece{time.Now().Add(after), n}", "piece{time.Now(), n}"}},
			checks: []check{{"importer", []string{"TestTheRateIsTheFleets"}}},
		},
		{
			number: 46, name: "half a file", imitates: "a connection that breaks is taken for the end of the file",
			edits:  []edit{{"internal/fetch/fetch.go", "case f.at == f.size, errors.Is(err, io.EOF) && f.size < 0:", "case f.at == f.size, f.at > 0:"}},
			checks: []check{{"internal/fetch", []string{"TestBrokenConnectionsAreGoneOnWith"}}},
		},
		{
			number: 47, name: "two files in one", imitates: "the rest of a file is read from another version of it",
			edits:  []edit{{"internal/fetch/answer.go", "	case f.another(now):\n", "	case f.another(now) && now.tag == \"never\":\n"}},
			checks: []check{{"internal/fetch", []string{"TestOtherVersionsAreRefused"}}},
		},
	}
}
