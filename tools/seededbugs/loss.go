package main

// lossBugs are mistakes in what is made of a checkpoint that is older, damaged or gone: each
// makes leads again that it has known once.
func lossBugs() []bug {
	return []bug{
		{
			number: 21, name: "run folders not heard", imitates: "fault 128: checkpoint and mark are restored as a whole from a backup, and nobody notices",
			edits: []edit{{
				"checkpoint/bolt/witness.go",
				"\tours := o.witnesses(func(w *checkpoint.Witness) bool { return w.ID == d.header.id.String() })\n\tslices.SortStableFunc(ours,",
				"\tours := o.witnesses(func(w *checkpoint.Witness) bool { return false && w.ID == d.header.id.String() })\n\tslices.SortStableFunc(ours,",
			}},
			checks: []check{{"internal/e2e", []string{"TestRestoredFolderMakesNothingTwice"}}},
		},
		{
			number: 22, name: "missing rows not held", imitates: "fault 128, invariant 9: what an incomplete checkpoint does not know counts as new",
			edits: []edit{{
				"checkpoint/store.go", "\treturn i.Incomplete && !e.State.HasLead()", "\treturn i.Incomplete && e.State == Unknown && e.Seq > 0 && !e.State.HasLead()",
			}},
			checks: []check{{"checkpoint/bolt", []string{"TestWhatAnIncompleteCheckpointMayLack"}}},
		},
		{
			number: 23, name: "loss not counted", imitates: "fault 19: what was deleted long ago stands in for what is lost, and a repaired checkpoint passes for complete",
			edits: []edit{{
				"checkpoint/bolt/salvage.go", "\tfound := s.have((*piece).sure)\n", "\tfound := uint64(len(s.records))\n",
			}},
			checks: []check{{"checkpoint/bolt", []string{"TestRepairKeepsOrCountsWhatAFileKnew"}}},
		},
	}
}
