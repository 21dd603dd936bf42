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
	"leadferry/mapping"
)

// dryRun gathers what a run that sends nothing (validate, --dry-run) finds, beside how each row ended. The dispatcher
// alone writes it. Only the repeats grow with the input.
type dryRun struct {
	options *Options
	intake  *intake
	proof
	problems *findings.Kinds[mapping.Problem]   // without the rows' own words
	texts    map[mapping.Problem]string         // of the first row of a kind that cannot be read
	words    *findings.Kinds[report.Problem]    // texts that maps lack
	assigned *findings.Kinds[report.Assignment] // of creates
	dropped  findings.Rows                      // rows with values that on_invalid left out
	suspect  findings.Rows                      // rows with either: problems for --strict
	repeats  *findings.Repeats
	repeated findings.Repeated // found at the end

	planned [actionCount]int // steps that would be taken
	linked  int              // creates among them that ask for a link
	shown   int              // requests shown
}

// proof is what is known of a mapping without any input.
type proof struct {
	lacking mapping.Errors // what it needs to make leads; nil: nothing
	updates bool           // it makes none on purpose
	tests   int
	failed  []report.Problem // of the tests
}

func newDryRun(o *Options, in *intake) *dryRun {
	return &dryRun{
		options: o, intake: in, repeats: findings.NewRepeats(),
		problems: findings.NewKinds(maxKinds, func(mapping.Problem) mapping.Problem {
			return mapping.Problem{Rule: "other", Text: "fails a check that is none of those listed"}
		}),
		texts: map[mapping.Problem]string{},
		words: findings.NewKinds(maxKinds, func(w report.Problem) report.Problem { return report.Problem{Rule: w.Rule} }),
		assigned: findings.NewKinds(maxAssigned, func(report.Assignment) report.Assignment {
			return report.Assignment{Others: true}
		}),
	}
}

func (d *dryRun) read(it *item) {
	at := spotOf(it)
	for _, p := range it.faults {
		d.problem(at, p, it.row.Problem != nil)
		if p.Value != "" {
			d.word("map", at, p)
		}
	}
	if it.faults != nil {
		return
	}
	if len(it.rec.Dropped) > 0 {
		d.dropped.Add(at)
		d.suspect.Add(at)
	}
	for _, p := range it.rec.Caught {
		d.word("else", at, p)
		d.suspect.Add(at)
	}
}

// problem counts a row by what is wrong with it. Texts of rows that cannot be read are one kind if they differ in their
// numbers only, which are offsets and counts; the first one is shown.
func (d *dryRun) problem(at findings.Spot, p mapping.Problem, unreadable bool) {
	kind := p
	if kind.Word, kind.Value = "", ""; unreadable {
		kind.Text = numbers().ReplaceAllString(p.Text, "…")
		if _, known := d.texts[kind]; !known && len(d.texts) < maxKinds {
			d.texts[kind] = p.Text
		}
	}
	d.problems.Add(at, kind)
}

// word counts a text that a map lacks. Only a terminal shows it, because it may be anything.
func (d *dryRun) word(rule string, at findings.Spot, p mapping.Problem) {
	const longWord = 200 // characters
	word := strings.Clone(report.Shorten(p.Word, longWord))
	d.words.Add(at, report.Problem{Rule: rule, Column: p.Value, Text: word})
}

// plan counts what a run would do with a row, shows the first requests, and leaves a step that does nothing. It returns
// why the run ends, or nil.
func (d *dryRun) plan(it *item, step *Step) *Stop {
	would, planned := *step, step.Action
	if step.Action = Nothing; planned.sends() {
		step.ending = ending{outcome: Pending}
	}
	if it.faults != nil || it.rec.Skip {
		return nil
	}
	if !planned.sends() || planned == Create && d.lacking != nil {
		planned = Nothing
	}
	fold := it.rec.Key
	if !d.options.CreateAlikes {
		fold = rowkey.Fold(fold)
	}
	d.repeats.Add(it.rec.Key, fold, uint8(planned), spotOf(it))
	if d.planned[planned]++; planned == Create {
		to := report.Assignment{OrganizationID: it.rec.Organization}
		if to.OrganizationID == "" {
			to = report.Assignment{LocatorID: it.rec.Locator, Entry: it.rec.Entry}
		}
		d.assigned.Add(spotOf(it), to)
		if it.rec.ExternalID != "" {
			d.linked++
		}
	}
	if planned == Nothing || d.shown >= d.options.Show || d.options.Shown == nil {
		return nil
	}
	d.shown++
	if _, err := d.options.Shown.Write(d.request(it, &would)); err != nil {
		return stopFor(fmt.Sprintf("standard output could not be written: %v", err), "")
	}
	return nil
}

// fails reports whether anything else than rows needs attention.
func (d *dryRun) fails() bool {
	return len(d.failed) > 0 || d.lacking != nil && !d.updates ||
		d.options.Strict && len(d.intake.unused)+len(d.options.Mapping.Unconfirmed) > 0
}

// examine checks the mapping without any input: whether its tests pass, and whether it can make leads.
func (d *dryRun) examine() {
	m := d.options.Mapping
	errors.As(m.ForCreate(), &d.lacking)
	d.updates = m.HasLeadID() || len(d.lacking) == ofCreates
	for _, t := range m.Tests {
		d.tests++
		if differences := prove(m, &t); differences != nil {
			d.failed = append(d.failed, d.inMapping("test", t.Line, strings.Join(differences, "; ")))
		}
	}
}

// prove maps the row of a test and compares the request, without fields that hold a file's name, a line or a run.
func prove(m *mapping.Mapping, t *mapping.Test) []string {
	b, err := m.Bind("the test", mapping.Columns{Names: t.Names, Own: len(t.Names), Open: true})
	if err != nil {
		return []string{err.Error()}
	}
	var rec mapping.Record
	if ps := b.Map(t.Cells, mapping.Env{}, &rec); ps != nil {
		return []string{"the row is invalid: " + sentence(ps)}
	}
	if rec.Skip {
		return []string{"the row is left out by skip_if"}
	}
	rec.Content = slices.DeleteFunc(rec.Content, func(f mapping.Field) bool { return f.Volatile })
	return t.Compare(createRequest(&rec).AppendJSON(nil))
}

// ofCreates is how many parts of a mapping only creates need. A mapping without all of them is for sync alone.
const ofCreates = 3

// request is the request that a step would send, for --show. Its path is below the leads or base URL.
func (d *dryRun) request(it *item, step *Step) []byte {
	// validate knows no target
	method, path, body := "POST", "/v1/"+cmp.Or(d.options.Target.TrunkID, "{trunkID}"), []byte(nil)
	if step.Action == Create {
		body = createRequest(&it.rec).AppendJSON(nil)
	} else {
		send := step.to(sends)
		if step.Action == Link {
			send = []int{atExternal}
		}
		method, path = "PATCH", "/v3/lead/"+cmp.Or(it.entry.LeadID, it.rec.LeadID)
		body = updateRequest(&it.rec, send).AppendJSON(nil)
	}
	at := report.Escape(d.intake.paths[it.input])
	return fmt.Appendf(nil, "# %s:%d\n%s %s\n%s\n\n", at, it.row.Line, method, path, report.EscapeJSON(body))
}

func (d *dryRun) inMapping(rule string, line int, text string) report.Problem {
	return report.Problem{File: d.options.MappingFile.Path, Line: line, Rule: rule, Text: text}
}

// found is everything that was found, for people and scripts.
func (d *dryRun) found() *report.Checks {
	same, alike := &d.repeated.Same, &d.repeated.Alike
	c := &report.Checks{
		Rules: d.rules(), Found: slices.Clone(d.failed), Repeats: same.Rows, LookAlikes: alike.Rows,
		Projected: d.projected(), Tests: d.tests,
	}
	for _, one := range d.assigned.List() {
		one.Of.Rows = one.Count
		c.Assignments = append(c.Assignments, one.Of)
	}
	if !d.updates {
		for _, l := range d.lacking {
			c.Found = append(c.Found,
				report.Problem{File: l.File, Line: l.Line, Rule: "mapping", Text: l.Text, Hint: l.Hint})
		}
	}
	guesses := d.options.Mapping.Unconfirmed
	for _, g := range guesses {
		c.Found = append(c.Found, d.inMapping("guess", g.Line, g.Why))
	}
	for _, name := range d.intake.unused {
		p := d.inMapping("unused", 0, "no part of the mapping uses the column")
		p.Column = name
		c.Found = append(c.Found, p)
	}
	c.Quoting = d.wordList()
	if d.options.Strict {
		c.Strict = same.Rows + alike.Rows + d.suspect.Count + len(d.intake.unused) + len(guesses)
		c.Quoting = append(c.Quoting, d.again("repeated", "the key is already at ", same)...)
		c.Quoting = append(c.Quoting, d.again("look_alike", "the key looks like the one at ", alike)...)
	}
	return c
}

// findRepeats finds the keys of several rows, after the last row.
func (d *dryRun) findRepeats() {
	most := mostNamed
	if d.options.Strict && d.options.Files.Problems != "" {
		most = 10_000
	}
	d.repeated = d.repeats.Found(most)
}

func (d *dryRun) notes() (notes []string) {
	if d.options.Show > 0 && d.shown == 0 {
		why := "no row would be sent."
		if d.lacking != nil {
			why = "the mapping lacks what makes a lead."
		}
		notes = append(notes, "There is no request for --show: "+why)
	}
	if d.tests > 0 && len(d.failed) == 0 {
		notes = append(notes, fmt.Sprintf("The tests of the mapping pass: %d.", d.tests))
	}
	if d.lacking != nil && d.updates {
		notes = append(notes, "The mapping is for sync only. Import also needs assign, lead.type_key and "+
			"lead.type_label.")
	}
	if names := d.options.Mapping.Composed(); len(names) > 0 {
		notes = append(notes, fmt.Sprintf("Objects and lists are sent whole: in a sync, members of %s that come out "+
			"empty vanish from the service.", spelling.List(names, mostListed, nil)))
	}
	if n := d.dropped.Count; n > 0 {
		notes = append(notes, fmt.Sprintf("Rows with values that break a rule and are left out, as on_invalid says: "+
			"%d, first at %s.", n, d.intake.place(d.dropped.First[0])))
	}
	if same := &d.repeated.Same; same.Rows > 0 {
		notes = append(notes, fmt.Sprintf("Rows whose key is also in an earlier row: %d. Rows of one key are one "+
			"lead, in file order. If their data differ, keep one row: else --changed update changes the lead at every "+
			"run. %s", same.Rows, d.examples(same)))
	}
	if alike := &d.repeated.Alike; alike.Rows > 0 {
		notes = append(notes, fmt.Sprintf("Rows whose key differs from an earlier one only in leading zeros, blanks "+
			"or capitals: %d. An import holds them as conflicts, unless --look-alikes create is given. %s", alike.Rows,
			d.examples(alike)))
	}
	return notes
}

const mostNamed = 3 // rows in an example

func (d *dryRun) examples(a *findings.Again) string {
	var list []string
	for _, r := range a.First[:min(len(a.First), mostNamed)] {
		list = append(list, fmt.Sprintf("%s (first at %s)", d.intake.place(r.At), d.intake.place(r.First)))
	}
	return "For example " + strings.Join(list, ", ") + "."
}

// again are the rows whose key came before, as problems.
func (d *dryRun) again(rule, text string, a *findings.Again) (list []report.Problem) {
	for _, r := range a.First {
		list = append(list, report.Problem{
			File: d.intake.paths[r.At.Input], Line: r.At.Line, Row: r.At.Number, Rule: rule,
			Text: text + d.intake.place(r.First).String(),
		})
	}
	if more := a.Rows - len(a.First); more > 0 {
		list = append(list, d.inMapping(rule, 0, "and "+english.Plural(more, "row", "")+" more"))
	}
	return list
}

// projected is what a run would send: a create for each new key, an update for each link. A mapping with external_id
// requires it in every row, so all creates ask for a link, or none.
func (d *dryRun) projected() report.Projected {
	moot := d.repeated.Moot
	p := report.Projected{
		Create: d.planned[Create] - moot[Create], Update: d.planned[Link] - moot[Link] + d.planned[Update],
	}
	if d.linked > 0 {
		p.Update += p.Create
	}
	return p
}

// Problems and texts, and destinations, that are counted apart.
const maxKinds, maxAssigned = 1000, 200

var numbers = spelling.Form(`[0-9]+`)

func (d *dryRun) rules() (list []report.Reason) {
	for _, p := range d.problems.List() {
		text := cmp.Or(d.texts[p.Of], p.Of.Text)
		if text != p.Of.Text && p.Count > 1 {
			text = "for example: " + text
		}
		list = append(list, report.Reason{
			Rule: p.Of.Rule, Column: p.Of.Column, Error: text, Rows: p.Count, Examples: p.Places(d.intake.place),
		})
	}
	return list
}

// wordList is the words by value, those of most rows first; without a value they are further ones.
func (d *dryRun) wordList() (list []report.Problem) {
	what := map[string]string{"map": "no entry for ", "else": "only else takes "}
	for _, kind := range d.words.List() {
		w := d.inMapping(kind.Of.Rule, 0, "other texts")
		if w.Column = kind.Of.Column; w.Column != "" {
			w.Text = `"` + kind.Of.Text + `"`
		}
		w.Text = fmt.Sprintf("%s%s, first at %s", what[w.Rule], w.Text, d.intake.place(kind.First[0]))
		w.Rows = kind.Count
		list = append(list, w)
	}
	slices.SortStableFunc(list, func(a, b report.Problem) int {
		return cmp.Or(cmp.Compare(b.Rule, a.Rule), cmp.Compare(a.Column, b.Column))
	})
	return list
}
