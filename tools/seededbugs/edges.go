package main

// edgeBugs are mistakes where people, files and answers touch the core, which keeps its promise by then.
func edgeBugs() []bug {
	return []bug{
		{
			number: 24, name: "empty cell taken for none", imitates: "fault 127: the list of the rows in doubt, handed back as it was exported, frees them all",
			edits:  []edit{{"internal/cli/checkpointcmd/resolve.go", "\t\tcase d.LeadID == \"\":\n\t\t\treturn nil\n", ""}},
			checks: []check{{"internal/e2e", []string{"TestPrintedCommandsArePastedAsTheyStand"}}},
		},
		{
			number: 25, name: "wanted ExternalID not looked for", imitates: "faults 127, 131: a sync makes leads again that are in doubt or not linked yet",
			edits:  []edit{{"checkpoint/bolt/find.go", "[]*bbolt.Cursor{f.links, f.wanted}", "[]*bbolt.Cursor{f.links}"}},
			checks: []check{{"checkpoint/bolt", []string{"TestStore"}}},
		},
		{
			number: 26, name: "outputs compared by name", imitates: "fault 129: an output replaces the checkpoint, which the path of a link names",
			edits: []edit{{
				"internal/cli/outputs.go", "\tif p.file != nil && q.file != nil {\n\t\treturn os.SameFile(p.file, q.file)\n\t}\n\tsame :=", "\tsame :=",
			}},
			checks: []check{{"internal/e2e", []string{"TestScripts/outputs"}}},
		},
		{
			number: 27, name: "reading on from inside quotes", imitates: "m25, fault 132: a file that was cut, or a long letter, gives one lead a line of the letter",
			edits: []edit{{
				"importer/source/delimited/record.go", "\t\t\tr.ended = r.unclosed(err, size)\n\t\t\treturn 0, nil\n",
				"\t\t\tline, _ := r.in.Line(0)\n\t\t\treturn len(line), &rows.Problem{Code: \"quote\", Text: \"a quote is not closed\"}\n",
			}},
			checks: []check{{"importer/source", []string{"TestNoRowBeginsInsideQuotes"}}},
		},
		{
			number: 28, name: "refused run leaves a checkpoint", imitates: "fault 136: a run that sent nothing leaves a memory of no leads, with which --require-checkpoint is content ever after",
			edits:  []edit{{"importer/run.go", "defer l.Drop()", "defer l.Close()"}},
			checks: []check{{"internal/e2e", []string{"TestARefusedRunLeavesNoCheckpoint"}}},
		},
		{
			number: 29, name: "creates go on after a doubt", imitates: "fault 138: as many rows in doubt as are in flight, again and again, before the run stops",
			edits:  []edit{{"importer/delivery/machines.go", "c.state, c.doubts, c.first = singly, 1, p.since", "c.doubts, c.first = c.doubts+1, p.since"}},
			checks: []check{{"importer/delivery", []string{"TestAfterADoubtNothingLeavesBesideTheNext"}}},
		},
		{
			number: 30, name: "--rate behind the gate", imitates: "fault 139: requests that have passed wait for --rate, and leave while the service asks to wait",
			edits: []edit{
				{"importer/delivery/breaker.go", "\tif d := b.pace.take(now); d > 0 {\n\t\treturn Pass{}, hurdle{wait: d, paced: true, changed: b.changed}, nil\n\t}\n", ""},
				{
					"importer/delivery/breaker.go", "\t\tif err == nil && h.wait == 0 {\n\t\t\treturn p, nil\n",
					"\t\tif err == nil && h.wait == 0 {\n\t\t\tif b.pace.limiter != nil {\n\t\t\t\t_ = b.pace.limiter.Wait(stopping)\n\t\t\t}\n\t\t\treturn p, nil\n",
				},
				{"importer/delivery/breaker.go", "\tif !b.opens.IsZero() && time.Now().Before(b.opens) {\n\t\treturn false\n\t}\n", ""},
			},
			checks: []check{{"internal/e2e", []string{"TestNothingLeavesWhileTheServiceAsksToWait"}}},
		},
	}
}
