package report

import (
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// faults are what needs attention beside rows.
func (c *Checks) faults() []string {
	if c == nil {
		return nil
	}
	var faults []string
	if t := &c.Tests; t.Failed > 0 {
		faults = append(faults, fmt.Sprintf("%s of %s of the mapping %s", humanize.Comma(int64(t.Failed)), english.Plural(t.Run, "test", ""), english.PluralWord(t.Failed, "fails", "fail")))
	}
	if len(c.CannotCreate) > 0 {
		faults = append(faults, "the mapping cannot make leads yet")
	}
	for _, f := range c.LostFiles {
		faults = append(faults, f.File+" could not be read to its end")
	}
	return faults
}

// fate is what would become of the good rows.
func (c *Checks) fate() string {
	if c != nil && c.Projected.Create+c.Projected.Update == 0 {
		return "good"
	}
	return "good, would be sent"
}

// The rules that an edit of the mapping settles for all rows at once.
const (
	ruleStatus = "status"
	ruleAssign = "assign"
)

// broken is how many rows break one of these rules.
func (c *Checks) broken(rules ...string) (rows int) {
	for _, r := range c.Rules {
		if slices.Contains(rules, r.Rule) {
			rows += r.Rows
		}
	}
	return rows
}

// byMapping says whether the mapping is all that there is to correct.
func (c *Checks) byMapping() bool {
	return c != nil && len(c.Rules) > 0 && !slices.ContainsFunc(c.Rules, func(r Rule) bool { return r.Rule != ruleStatus && r.Rule != ruleAssign })
}

// steps are what to do about the mapping and the files themselves.
func (c *Checks) steps(mapping string) []step {
	if c == nil {
		return nil
	}
	var steps []step
	add := func(wanted bool, format string, args ...any) {
		if wanted {
			steps = append(steps, step{text: fmt.Sprintf(format, args...)})
		}
	}
	add(len(c.CannotCreate) > 0, "Complete %s: what it lacks, only a person can decide.", mapping)
	add(c.Tests.Failed > 0, "Correct the mapping, or what its tests expect.")
	add(len(c.Statuses) > 0, "Name the statuses under lead.status.map in %s, or say with else what becomes of the others.", mapping)
	add(c.broken(ruleAssign) > 0, "Add an entry under assign in %s for the %s that none fits, or fill in what they lack.", mapping, english.Plural(c.broken(ruleAssign), "row", ""))
	add(len(c.LostFiles) > 0, "Get a whole copy of the files that could not be read to their end.")
	return steps
}
