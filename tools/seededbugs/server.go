package main

// serverBugs are mistakes in the ledger that PostgreSQL keeps: each makes leads twice or loses one when a connection is cut, a
// worker is replaced, or a server is not what it was.
func serverBugs() []bug {
	const room = "checkpoint/postgres/"
	in := func(file, old, mistake string) []edit { return []edit{{room + file, old, mistake}} }
	by := func(tests ...string) []check { return []check{{"checkpoint/postgres", tests}} }
	return []bug{
		{
			number: 48, name: "a lost commit is sent again", imitates: "a commit whose answer was cut off counts as not made",
			edits:  in("guard.go", "\tmade = commits == number && number != s.commits\n", "\tmade = false\n"),
			checks: by("TestTheConnectionIsCutAtEveryMessage"),
		},
		{
			number: 49, name: "lost commits not noticed", imitates: "a standby without the last commits took over, and the worker goes on",
			edits:  in("guard.go", "err == nil && commits != number && commits != s.commits:", "err == nil && commits > number:"),
			checks: by("TestLostCommitsStopTheWorker"),
		},
		{
			number: 50, name: "claims for ever", imitates: "a worker that was asleep for an hour sends what it had claimed before",
			edits:  in("guard.go", "\treturn c.lost == nil && c.now() < c.good[key]-leaving, c.lost\n", "\treturn c.lost == nil && c.good[key] > 0, c.lost\n"),
			checks: by("TestAnOldClaimIsRenewed"),
		},
		{
			number: 51, name: "claims handed over", imitates: "a row that another worker may still send counts as free",
			edits:  in("rules.go", "\treturn w.busy[r.worker], nil\n", "\treturn false, nil\n"),
			checks: by("TestARunBesideAnother"),
		},
		{
			number: 52, name: "a quarter of an hour for all", imitates: "a request that may take an hour counts as over when its worker was silent for less",
			edits:  in("load.go", "greatest($2::bigint, holds_for + 60) * interval", "greatest($2::bigint, 60) * interval"),
			checks: by("TestARunBesideAnother"),
		},
		{
			number: 53, name: "late answers not told", imitates: "an answer that contradicts a decision passes in silence",
			edits:  in("rules.go", "\tcase e.State.HasLead() && (none ||", "\tcase e.State.HasLead() && (none && false ||"),
			checks: by("TestARunBesideAnother"),
		},
		{
			number: 54, name: "two runs at once", imitates: "a run beside another one that shows life",
			edits:  in("checks.go", "\tif err == nil {\n\t\treturn s.refuse(checkpoint.ErrLocked, \"the run \"", "\tif err == nil && host == \"\" {\n\t\treturn s.refuse(checkpoint.ErrLocked, \"the run \""),
			checks: by("TestARunBesideAnother"),
		},
		{
			number: 55, name: "fsync not asked for", imitates: "a server that loses what it acknowledged is taken",
			edits:  in("checks.go", "\tcase fsync != \"on\":\n", "\tcase fsync == \"\":\n"),
			checks: by("TestServersThatPromiseLessAreRefused"),
		},
		{
			number: 56, name: "an older copy taken", imitates: "a backup was restored, and the leads made since are made again",
			edits:  in("checks.go", "own > last {", "own > last && last < 0 {"),
			checks: by("TestARestoredLedgerIsRefused"),
		},
		{
			number: 57, name: "unverified servers", imitates: "a connection to another machine that anybody may have answered",
			edits:  in("connect.go", "\treturn ip != nil && ip.IsLoopback()\n", "\treturn ip == nil || ip.IsLoopback()\n"),
			checks: by("TestAddressesThatAreRefused"),
		},
	}
}
