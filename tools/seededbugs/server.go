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
			edits:  in("reconnect.go", "\tmade = n.commits == number && number != s.commits\n", "\tmade = false\n"),
			checks: by("TestTheConnectionIsCutAtEveryMessage"),
		},
		{
			number: 49, name: "lost commits not noticed", imitates: "a standby without the last commits took over, and the worker goes on",
			edits:  in("reconnect.go", "err == nil && n.commits != number && n.commits != s.commits:", "err == nil && n.commits > number:"),
			checks: by("TestLostCommitsStopTheWorker"),
		},
		{
			number: 50, name: "claims for ever", imitates: "a worker that was asleep for an hour sends what it had claimed before",
			edits:  in("guard.go", "\treturn c.lost == nil && c.now() < c.good[key]-leaving, c.lost\n", "\treturn c.lost == nil && c.good[key] > 0, c.lost\n"),
			checks: by("TestAnOldClaimIsRenewed"),
		},
		{
			number: 51, name: "claims handed over", imitates: "a row that another worker may still send counts as free",
			edits:  in("working.go", "\treturn w.busy[r.worker], nil\n", "\treturn false, nil\n"),
			checks: by("TestARunBesideAnother"),
		},
		{
			number: 52, name: "a quarter of an hour for all", imitates: "a request that may take an hour counts as over when its worker was silent for less",
			edits:  in("working.go", "greatest($2::bigint, holds_for + 60) * interval", "greatest($2::bigint, 60) * interval"),
			checks: by("TestARunBesideAnother"),
		},
		{
			number: 53, name: "late answers not told", imitates: "an answer that contradicts a decision passes in silence",
			edits:  in("working.go", "\tcase e.State.HasLead() && (none ||", "\tcase e.State.HasLead() && (none && false ||"),
			checks: by("TestARunBesideAnother"),
		},
		{
			number: 54, name: "two runs at once", imitates: "a run beside another one that shows life",
			edits:  in("checks.go", "\tif err == nil {\n\t\treturn s.refuse(checkpoint.ErrLocked, \"the run \"", "\tif err == nil && host == \"\" {\n\t\treturn s.refuse(checkpoint.ErrLocked, \"the run \""),
			checks: by("TestARunBesideAnother"),
		},
		{
			number: 55, name: "fsync not asked for", imitates: "a server that loses what it acknowledged is taken",
			edits:  in("server/promises.go", "\tcase fsync != \"on\":\n", "\tcase fsync == \"\":\n"),
			checks: by("TestServersThatPromiseLessAreRefused"),
		},
		{
			number: 56, name: "an older copy taken", imitates: "a backup was restored, and the leads made since are made again",
			edits:  in("checks.go", "own > last {", "own > last && last < 0 {"),
			checks: by("TestARestoredLedgerIsRefused"),
		},
		{
			number: 57, name: "unverified servers", imitates: "a connection to another machine that anybody may have answered",
			edits:  in("server/address.go", "\treturn ip != nil && ip.IsLoopback()\n", "\treturn ip == nil || ip.IsLoopback()\n"),
			checks: by("TestAddressesThatAreRefused"),
		},
		{
			number: 58, name: "a cancelled wait", imitates: "a wait for a standby that somebody cancelled counts as a durable commit",
			edits:  in("reconnect.go", "\tif text := at.Warned(); text != \"\" {\n", "\tif text := at.Warned(); text == \"never\" {\n"),
			checks: by("TestAWaitForAStandbyThatIsCancelled", "TestTwoServersAtOnce"),
		},
		{
			number: 59, name: "a commit that comes late", imitates: "a commit is looked for while the process that may still make it lives, and is made twice",
			edits:  in("server/session.go", "\t\tcase err != nil || left == 0:\n", "\t\tcase err != nil || left >= 0:\n"),
			checks: by("TestACommitThatComesLate"),
		},
		{
			number: 60, name: "a loss kept to oneself", imitates: "one worker finds that the ledger has lost commits, and the others go on",
			edits:  in("reconnect.go", "\t\t\treturn err\n\t\t}\n\t\treturn s.stopAll(ctx, tx)\n", "\t\t\treturn err\n\t\t}\n\t\treturn nil\n"),
			checks: by("TestOneLossStopsAllWorkers"),
		},
		{
			number: 61, name: "a history that branched", imitates: "a standby takes over that nobody waited for, and who has lost nothing itself goes on",
			edits:  in("reconnect.go", "n.timeline != s.timeline && s.standby != waitedFor:", "n.timeline < s.timeline && s.standby != waitedFor:"),
			checks: by("TestAStandbyThatWasNeverToTakeOver"),
		},
		{
			number: 62, name: "a ledger that is gone", imitates: "the schema was dropped, and the ledger is begun anew without a word",
			edits:  in("checks.go", "\t\tif !s.o.Anew || !s.fresh {\n", "\t\tif !s.o.Anew && !s.fresh {\n"),
			checks: by("TestALedgerThatIsGone"),
		},
		{
			number: 63, name: "another ledger in its place", imitates: "a ledger is put in the place of the one that a run uses, and the run takes another worker's row for its own",
			edits:  in("write.go", "\tcase s.commits + 1:\n", "\tcase max(commits, 1):\n"),
			checks: by("TestALedgerThatWasReplacedInMidRun"),
		},
		{
			number: 64, name: "the second lead forgotten", imitates: "a late answer takes the place of the lead that was made when the row was sent again",
			edits:  in("working.go", " || none && r.state() != checkpoint.NotMade\n", "\n"),
			checks: by("TestAnAnswerThatComesAfterAResend"),
		},
		{
			number: 65, name: "commits of others", imitates: "a run that ended before the others counts as one whose commits were lost",
			edits:  in("status.go", "\ti.Sequence = cmp.Or(s.seq.Load(), i.Sequence)", "\ti.Sequence = cmp.Or(max(s.seq.Load(), i.Sequence))"),
			checks: by("TestAWorkersOwnCommitsAreItsWitness"),
		},
		{
			number: 66, name: "a newer schema", imitates: "an older program writes into what a newer one has made",
			edits:  in("schema.go", "\tcase have > len(migrations):\n", "\tcase have > 1000:\n"),
			checks: by("TestANewerSchemaIsRefused"),
		},
		{
			number: 67, name: "old servers", imitates: "a server is taken that is older than what the ledger was made for",
			edits:  in("server/promises.go", "\tif major(version) < oldest {\n", "\tif major(version) < 1 {\n"),
			checks: by("TestServersThatAreSomethingElse"),
		},
		{
			number: 68, name: "a quarter of an hour for nobody", imitates: "--in-doubt resend: a row whose worker may be at work counts as one that was not sent",
			edits:  []edit{{"importer/carrier.go", "\tif j.elsewhere && errors.Is(err, checkpoint.ErrHeld) {\n", "\tif j.elsewhere && errors.Is(err, checkpoint.ErrBlocked) {\n"}},
			checks: []check{{"internal/e2e", []string{"TestFleetLateAnswerAfterAResend"}}},
		},
		{
			number: 69, name: "a wait that ends without a word", imitates: "a commit counts as waited for though somebody has taken back that standbys are waited for",
			edits:  in("reconnect.go", "\tif again {\n", "\tif again && err != nil {\n"),
			checks: by("TestAStandbyIsWaitedForNoMoreWhileACommitWaits"),
		},
	}
}
