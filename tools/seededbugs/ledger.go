package main

// ledgerBugs are mistakes in the checkpoint, and in what makes a row the same row on the next run.
func ledgerBugs() []bug {
	return []bug{
		{
			number: 6, name: "size-0 file accepted", imitates: "m17, fault 17: a checkpoint that lost its content counts as a new one, and all rows are sent again",
			edits: []edit{{
				"checkpoint/bolt/lock.go", "\topen := func() (err error) { d.file, err = openOwn(d.path, flag); return err }\n",
				`	if info, err := os.Stat(d.path); err == nil && info.Size() == 0 && !o.ReadOnly {
		if err := fill(d.path, newHeader(t, o.Now()), lacking{}); err != nil {
			return err
		}
	}
	open := func() (err error) { d.file, err = openOwn(d.path, flag); return err }
`,
			}},
			checks: []check{{"checkpoint/bolt", []string{"TestOpenRefuses"}}},
		},
		{
			number: 7, name: "commit error ignored", imitates: "m21, m22, fault 13: a change counts as durable whose commit failed",
			edits: []edit{{
				"checkpoint/bolt/commit.go", "\tif err != nil {\n\t\treturn d.fail(fmt.Errorf(",
				"\tif err != nil && kind != \"other\" {\n\t\treturn nil\n\t}\n\tif err != nil {\n\t\treturn d.fail(fmt.Errorf(",
			}},
			checks: []check{{"checkpoint/bolt", []string{"TestFailedCommitStopsEverything"}}},
		},
		{
			number: 12, name: "row number for key", imitates: "fault 103: a row that is moved is another row, and is sent again",
			edits:  []edit{{"mapping/record.go", "r.key = b.rowKey(cells)", "r.key = \"row-\" + (&part{kind: line}).in(&r, nil, \"\")"}},
			checks: []check{{"mapping", []string{"TestTheDefaultKeyDoesNotHangOnThePlace"}}},
		},
		{
			number: 13, name: "BOM kept", imitates: "m26, fault 91: the first column's name begins with a byte order mark, so that no mapping finds it",
			edits:  []edit{{"importer/source/lines/window.go", "w.Pass(len(rows.ByteOrderMark))", "return line, nil"}},
			checks: []check{{"importer/source", []string{"TestAByteOrderMarkIsNoPartOfTheText"}}},
		},
	}
}
