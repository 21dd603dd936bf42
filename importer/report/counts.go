package report

// RowCounts are the rows of a run by outcome; Read is their sum.
type RowCounts struct {
	Read      int `json:"read"`
	Created   int `json:"created"`
	Updated   int `json:"updated"`
	Unchanged int `json:"unchanged"`
	Changed   int `json:"changed"`
	Skipped   int `json:"skipped"`
	Invalid   int `json:"invalid"`
	Rejected  int `json:"rejected"`
	Failed    int `json:"failed"`
	Partial   int `json:"partial"`
	InDoubt   int `json:"in_doubt"`
	Unmatched int `json:"unmatched"`
	Conflict  int `json:"conflict"`
	Pending   int `json:"pending"`
}

// ByName gives the counts by their JSON names, read and zeros included.
func (c RowCounts) ByName() map[string]int {
	m := map[string]int{"read": c.Read}
	for _, o := range c.outcomes() {
		m[o.name] = o.rows
	}
	return m
}

// outcome is a count with what it means to a person.
type outcome struct {
	name    string
	rows    int
	meaning string
}

// outcomes lists all counts in the order of INTERFACE.md, "What becomes of a row".
func (c RowCounts) outcomes() []outcome {
	return []outcome{
		{"created", c.Created, "the lead exists, with all that was asked for"},
		{"updated", c.Updated, "changed fields were sent and confirmed"},
		{"unchanged", c.Unchanged, "the lead exists, there was nothing to send"},
		{"changed", c.Changed, "the row has other data now than were sent"},
		{"skipped", c.Skipped, "left out on purpose"},
		{"invalid", c.Invalid, "fails a check, was not sent"},
		{"rejected", c.Rejected, "the service refused it for good"},
		{"failed", c.Failed, "did not get through, will be sent again"},
		{"partial", c.Partial, "created, its ExternalID is not linked yet"},
		{"in_doubt", c.InDoubt, "nobody can tell if a lead was made"},
		{"unmatched", c.Unmatched, "no lead is known for the row"},
		{"conflict", c.Conflict, "held for a person to decide, nothing was sent"},
		{"pending", c.Pending, "was not sent before the run stopped"},
	}
}

// attention is how many rows want a person's eye. Pending rows do not when sending
// was never meant.
func (c RowCounts) attention(dryRun bool) int {
	n := c.Changed + c.Invalid + c.Rejected + c.Failed + c.Partial + c.InDoubt + c.Unmatched + c.Conflict
	if !dryRun {
		n += c.Pending
	}
	return n
}
