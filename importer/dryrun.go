package importer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"leadferry/importer/findings"
	"leadferry/importer/report"
	"leadferry/internal/rowkey"
	"leadferry/internal/spelling"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// dryRun gathers what a run that sends nothing finds. Only the dispatcher writes it. Only repeats grows with the input.
type dryRun struct {
	options  *Options
	intake   *intake
	lacking  mapping.Errors // what the mapping lacks to make leads; nil: nothing
	updates  bool           // the mapping is only for sync: it makes no leads
	tests    int
	failed   []report.Problem // the mapping's tests that failed
	problems *findings.Kinds  // of rows, without the rows' own words
	words    *findings.Kinds  // texts that maps lack
	suspect  int              // rows with values that are left out or that else takes: problems for --strict
	shown    int              // requests shown
	projection
}

// projection is what a run would send.
type projection struct {
	repeats  *findings.Repeats
	repeated findings.Repeated // found at the end
	assigned map[string]int    // creates, by organization or locator
	links    bool              // creates ask for a link
	changes  int               // updates of leads that exist
	bare     int               // creates of rows that hold nothing but their key
}

func newDryRun(o *Options, in *intake) *dryRun {
	return &dryRun{
		options: o, intake: in, problems: findings.NewKinds(), words: findings.NewKinds(),
		projection: projection{repeats: findings.NewRepeats(), assigned: map[string]int{}},
	}
}

func (d *dryRun) read(it *item) {
	at := d.intake.place(it)
	for _, p := range it.faults {
		kind := findings.Kind{Rule: p.Rule, Column: p.Column, Text: p.Text}
		if it.row.Problem != nil {
			kind.Text = "" // the text says where in the row it cannot be read, so it differs in each row
		}
		d.problems.Add(at, kind, p.Text)
		if p.Value != "" {
			d.word("map", at, p)
		}
	}
	if it.faults != nil {
		return
	}
	for _, p := range it.rec.Caught {
		d.word("else", at, p)
	}
	if len(it.rec.Dropped)+len(it.rec.Caught) > 0 {
		d.suspect++
	}
}

// word counts a text that a map lacks. It may be anything, so only a terminal shows it.
func (d *dryRun) word(rule string, at report.Place, p mapping.Problem) {
	word := strings.Clone(spelling.Shorten(p.Word, 200))
	d.words.Add(at, findings.Kind{Rule: rule, Column: p.Value, Text: word}, word)
}

// plan counts what a run would do with a row, shows the first requests, and leaves a step that does nothing.
func (d *dryRun) plan(it *item, step *Step) {
	would, planned := *step, step.Action
	if step.Action = Nothing; planned.requests() {
		step.ending = ending{outcome: Pending}
	}
	if it.faults != nil || it.rec.Skip {
		return
	}
	if !planned.requests() || planned == Create && d.lacking != nil {
		planned = Nothing
	}
	fold := it.rec.Key
	if !d.options.CreateAlikes {
		fold = rowkey.Fold(fold)
	}
	ofKey := planned
	if planned == Update { // each row may change its lead
		ofKey = Nothing
		d.changes++
	}
	d.repeats.Add(it.rec.Key, fold, uint8(ofKey), it.input, d.intake.place(it))
	if planned == Create {
		if it.binding.OnlyKey(it.row.Cells, it.row.Header.Open) {
			d.bare++
		}
		report.CountLead(d.assigned, cmp.Or(it.rec.Organization, ForLocator+it.rec.Locator), "others")
		d.links = d.links || it.rec.ExternalID != ""
	}
	if planned != Nothing && d.shown < d.options.Show {
		d.shown++
		_, _ = d.options.Shown.Write(d.request(it, &would)) // Shown keeps them: it has no error yet
	}
}

func (d *dryRun) fails() bool {
	return len(d.failed) > 0 || d.lacking != nil && !d.updates ||
		d.options.Strict && len(d.intake.unused)+len(d.options.Mapping.Unconfirmed) > 0
}

// examine checks the mapping without any input: whether its tests pass, and whether it can make leads.
func (d *dryRun) examine() {
	m := d.options.Mapping
	errors.As(m.ForCreate(), &d.lacking)
	d.updates = m.HasLeadID() || len(d.lacking) == 3 // all that creates need: the mapping is for sync
	for _, t := range m.Tests {
		d.tests++
		if differences := t.Run(m, createBody); differences != nil {
			d.failed = append(d.failed, d.inMapping("test", t.Line, strings.Join(differences, "; ")))
		}
	}
}

// request returns the request that a step would send, for --show. Its path is relative to the leads or base URL.
func (d *dryRun) request(it *item, step *Step) []byte {
	// validate knows no target
	method, path, body := "POST", "/v1/"+cmp.Or(d.options.Target.TrunkID, "{trunkID}"), []byte(nil)
	if step.Action == Create {
		body = createBody(&it.rec)
	} else {
		send := step.chosen(sends)
		if step.Action == Link {
			send = []int{atExternal}
		}
		method, path = "PATCH", "/v3/lead/"+cmp.Or(it.entry.LeadID, it.rec.LeadID)
		body = updateRequest(&it.rec, send).AppendJSON(nil)
	}
	at := spelling.Escape(d.intake.paths[it.input])
	return fmt.Appendf(nil, "# %s:%d\n%s %s\n%s\n\n", at, it.row.Line, method, path, spelling.EscapeJSON(body))
}

func (d *dryRun) inMapping(rule string, line int, text string) report.Problem {
	return report.Problem{File: d.options.MappingFile.Path, Line: line, Rule: rule, Text: text}
}

func (d *dryRun) found() *report.Checks {
	most := report.MostExamples
	if d.options.Strict && d.options.Files.Problems != "" {
		most = 10_000
	}
	d.repeated = d.repeats.Found(most)
	same, alike := &d.repeated.Same, &d.repeated.Alike
	assigned := map[report.Organization]int{}
	for to, leads := range d.assigned {
		if !leadapi.ValidID(strings.TrimPrefix(to, ForLocator)) { // perhaps a cell of a wrong column: people's data
			to = "a text that is no ID"
		}
		assigned[report.Organization{ID: to}] += leads
	}
	would := d.repeated.Planned
	projected := report.Projected{Create: would[Create], Update: would[Link] + d.changes}
	if d.links { // all creates ask for a link, or none does
		projected.Update += projected.Create
	}
	c := &report.Checks{
		Rules: d.problems.List(), Found: slices.Clone(d.failed), Repeats: same.Rows,
		LookAlikes: alike.Rows, Assignments: report.Organizations(assigned), Projected: projected, Tests: d.tests,
	}
	if !d.updates {
		for _, l := range d.lacking {
			c.Found = append(c.Found,
				report.Problem{File: l.File, Line: l.Line, Rule: "mapping", Text: l.Text, Hint: l.Hint})
		}
	}
	guesses := d.options.Mapping.Unconfirmed
	for _, g := range guesses {
		c.Found = append(c.Found, d.inMapping("guess", g.Line, g.Text))
	}
	for _, name := range d.intake.unused {
		p := d.inMapping("unused", 0, "no part of the mapping uses the column")
		p.Column = name
		c.Found = append(c.Found, p)
	}
	what := map[string]string{"map": "no entry for ", "else": "only else takes "}
	for _, word := range d.words.List() { // those of most rows first; then by column
		text := `"` + word.Error + `"`
		if word.Error == findings.Others {
			text = "other texts"
		}
		p := d.inMapping(word.Rule, 0, what[word.Rule]+text+", first at "+word.Examples[0].String())
		p.Column, p.Rows = word.Column, word.Rows
		c.Quoting = append(c.Quoting, p)
	}
	slices.SortStableFunc(c.Quoting, func(a, b report.Problem) int { return strings.Compare(a.Column, b.Column) })
	if d.options.Strict {
		c.Strict = same.Rows + alike.Rows + d.suspect + len(d.intake.unused) + len(guesses)
		c.Quoting = append(c.Quoting, d.occurrences("repeated", "the key is already at ", same)...)
		c.Quoting = append(c.Quoting, d.occurrences("look_alike", "the key looks like the one at ", alike)...)
	}
	return c
}

func (d *dryRun) notes() (n spelling.Texts) {
	composed, same, alike := d.options.Mapping.Composed(), &d.repeated.Same, &d.repeated.Alike
	n.Add(d.options.Show > 0 && d.shown == 0, "No request is shown: no row would be sent.")
	n.Add(d.tests > 0 && len(d.failed) == 0, "The tests of the mapping pass: %d.", d.tests)
	n.Add(d.lacking != nil && d.updates, "The mapping is for sync only. Import also needs assign, lead.type_key and "+
		"lead.type_label.")
	n.Add(len(composed) > 0, "Objects and lists are sent whole: in a sync, members of %s that come out empty vanish "+
		"from the service.", spelling.List(composed, mostListed, nil))
	n.Add(d.bare > 0, "Rows that hold nothing but their key: %d. Each would make a lead with no other data.", d.bare)
	n.Add(same.Rows > 0, "Rows whose key is also in an earlier row: %d. Rows of one key are one lead, in file order. "+
		"If their data differ, keep one row: else --changed update changes the lead at every run. %s", same.Rows,
		d.examples(same))
	n.Add(alike.Rows > 0, "Rows whose key looks like an earlier one, as 12 like 00012: %d. An import holds them as "+
		"conflicts, unless --look-alikes create is given. %s", alike.Rows, d.examples(alike))
	return n
}

func (d *dryRun) examples(a *findings.Occurrences) string {
	var list []string
	for _, r := range a.First[:min(len(a.First), report.MostExamples)] {
		list = append(list, fmt.Sprintf("%s (first at %s)", r.At, r.First))
	}
	return "For example " + strings.Join(list, ", ") + "."
}

func (d *dryRun) occurrences(rule, text string, a *findings.Occurrences) (list []report.Problem) {
	for _, r := range a.First {
		list = append(list, report.Problem{
			File: r.At.File, Line: r.At.Line, Row: r.At.Row, Rule: rule, Text: text + r.First.String(),
		})
	}
	if more := a.Rows - len(a.First); more > 0 {
		list = append(list, d.inMapping(rule, 0, "and "+english.Plural(more, "row", "")+" more"))
	}
	return list
}
