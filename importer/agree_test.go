package importer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
	"leadferry/internal/testsupport/must"
	"leadferry/leadapi"
	"leadferry/mapping"
)

var statuses = []string{"open", "contacted", "inProgress", "onHold", "closedWon", "closedNotInterested", "closedBoughtUsed", "closedBoughtOtherBrand"}

// happening is one step of a drawn story. All are drawn before the synctest bubble begins: nothing may be drawn inside.
type happening struct {
	kind    string // import, sync, console, reconcile, resolve
	rows    []string
	options Options
	fates   []string
	dies    int // at which arrival the process is killed; 0: never
	meddles int // at which arrival a person changes a lead in the console; 0: never
	lead    int
	field   string // that the person changes
	value   string

	reconciling Reconciling
}

// heldByService returns what a reconciliation must not change: of each lead, everything except times.
func (p *pair) heldByService() map[string]string {
	all := map[string]string{}
	for id, l := range p.service.leads {
		all[id] = held(l)
	}
	return all
}

func held(l *leadapi.Lead) string { return fmt.Sprint(l.Status, l.ExternalID, l.Content, l.OwnerID) }

func (p *pair) unchanged(before map[string]string) {
	for id, now := range p.heldByService() {
		if now != before[id] {
			p.errorf("a reconciliation changed %s from %s to %s", id, before[id], now)
		}
	}
}

func drawRow(rt *rapid.T) string {
	n := rapid.IntRange(0, 5).Draw(rt, "lead")
	key := fmt.Sprintf("k%d", n)
	if rapid.IntRange(0, 5).Draw(rt, "alias") == 0 {
		key = fmt.Sprintf("alias%d", rapid.IntRange(0, 2).Draw(rt, "which"))
	}
	if rapid.IntRange(0, 5).Draw(rt, "look-alike") == 0 {
		key = key[:1] + " " + key[1:]
	}
	return fmt.Sprintf("%s,,x-%d,%s,%s,%s", key, n, rapid.SampledFrom(append([]string{""}, statuses[:4]...)).Draw(rt, "status"),
		rapid.SampledFrom([]string{"Ann", "Bob", ""}).Draw(rt, "name"), rapid.SampledFrom([]string{"", "1", "2"}).Draw(rt, "phone"))
}

func drawHappening(rt *rapid.T) (h happening) {
	h.kind = rapid.SampledFrom([]string{"import", "sync", "sync", "sync", "console", "console", "reconcile", "resolve"}).Draw(rt, "kind")
	h.lead, h.field = rapid.IntRange(0, 9).Draw(rt, "lead"), rapid.SampledFrom([]string{"Status", "ExternalID", "name", "phone"}).Draw(rt, "field")
	h.value = rapid.SampledFrom(map[string][]string{
		"Status": statuses, "ExternalID": {"", "x-0", "x-3", "typed"}, "name": {`"Ann"`, `"Zoe"`, "7"}, "phone": {`"1"`, `"9"`, "null"},
	}[h.field]).Draw(rt, "value")
	switch h.kind {
	case "console":
		return h
	case "resolve":
		return h
	}
	h.rows = rapid.SliceOfN(rapid.Custom(drawRow), 1, 8).Draw(rt, "rows")
	h.options = Options{
		Sending: Sending{Concurrency: rapid.IntRange(1, 4).Draw(rt, "workers"), Retries: rapid.IntRange(0, 1).Draw(rt, "retries"), MaxWait: time.Minute},
		Planning: Planning{
			CheckRemote: rapid.SampledFrom([]Reads{ReadNothing, ReadNothing, ReadNothing, ReadChanged, ReadChanged, ReadChanged, ReadAll, ReadAll}).Draw(rt, "check"),
			Conflict:    rapid.SampledFrom([]mapping.Rule{mapping.RuleReport, mapping.RuleFile, mapping.RuleService}).Draw(rt, "conflict"),
			Changed:     rapid.SampledFrom([]string{"report", UpdateChanged}).Draw(rt, "changed"),
			HoldReopen:  rapid.Bool().Draw(rt, "hold"),

			ReadByExternalID: h.kind == "sync" && rapid.IntRange(0, 4).Draw(rt, "by ExternalID") == 0,
			Missing:          rapid.SampledFrom([]string{"report", MissingCreate, MissingIgnore}).Draw(rt, "missing"),
		},
	}
	h.reconciling = Reconciling{None: rapid.IntRange(0, 3).Draw(rt, "remote none") == 0, Sample: rapid.IntRange(0, 2).Draw(rt, "sample")}
	if rapid.Bool().Draw(rt, "fresh") {
		h.reconciling.Fresh = time.Second
	}
	fate := rapid.SampledFrom([]string{"", "", "", "", "lost", "silent", "422", "429", "500-stored", "other-id", "other-status", "other-content", "no-content"})
	h.fates = rapid.SliceOfN(fate, 0, 20).Draw(rt, "fates")
	if rapid.IntRange(0, 2).Draw(rt, "killed") == 0 {
		h.dies = rapid.IntRange(1, 12).Draw(rt, "at")
	}
	h.meddles = rapid.IntRange(0, 12).Draw(rt, "meddles")
	return h
}

// describe lists what happened.
func describe(list []happening) string {
	var b strings.Builder
	for i := range list {
		h := &list[i]
		fmt.Fprintf(&b, "%d %s %q fates %q dies %d meddles %d lead %d %s %s, check %v conflict %s update %s hold %v missing %s retries %d workers %d\n", i, h.kind, h.rows, h.fates, h.dies, h.meddles,
			h.lead+1, h.field, h.value, h.options.CheckRemote, h.options.Conflict, h.options.Changed, h.options.HoldReopen, h.options.Missing, h.options.Retries, h.options.Concurrency)
	}
	return b.String()
}

// happen carries out one step. It returns its run, or nil if there was none or its process was killed.
func (p *pair) happen(h *happening) *trial {
	s := p.service
	switch h.kind {
	case "console":
		if id := fmt.Sprintf("lead-%04d", h.lead+1); s.leads[id] != nil {
			s.typed(id, h.field, h.value)
		}
		return nil
	case "resolve":
		p.resolve()
		return nil
	}
	asked := 0
	image := "" // of the checkpoint, as a process that is killed now leaves it
	s.fate = func(op, _ string) string {
		asked++
		if asked > len(h.fates) {
			return ""
		}
		if fate := h.fates[asked-1]; op == "update" || fate == "" || fate == "lost" || fate == "422" || fate == "429" {
			return fate
		}
		return ""
	}
	arrived, before := 0, p.heldByService()
	s.meet = func(string, string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		arrived++
		if id := fmt.Sprintf("lead-%04d", h.lead+1); arrived == h.meddles && s.leads[id] != nil {
			s.change(id, h.field, h.value)
			before[id] = held(s.leads[id])
		}
		if arrived == h.dies {
			image = p.store.killed()
			s.dead = true
		}
	}
	o := h.options
	if h.kind == "reconcile" {
		o.Reconciling = h.reconciling
		defer p.unchanged(before)
	}
	if h.kind == "import" {
		o.CheckRemote = ReadNothing
	}
	r := p.run(h.kind, o, h.rows...)
	s.fate, s.meet, s.dead = nil, nil, false
	if image == "" {
		return r
	}
	p.db.Close()
	p.store = openFileStore(p.t, image)
	p.open()
	return nil
}

// resolve settles every doubt as a person does: by what the service holds.
func (p *pair) resolve() {
	var list []checkpoint.Decision
	used := map[string]bool{}
	p.each(checkpoint.Filter{}, func(e checkpoint.Entry) { used[e.LeadID] = used[e.LeadID] || e.State.HasLead() })
	p.each(checkpoint.Filter{State: checkpoint.InDoubt}, func(e checkpoint.Entry) {
		d := checkpoint.Decision{Key: e.Key, Sent: e.Updated, Run: e.Run}
		for id, key := range p.service.madeFor {
			if key == e.Key && !used[id] {
				d.LeadID = id
			}
		}
		list = append(list, d)
	})
	if len(list) > 0 {
		if _, err := checkpoint.Resolve(p.t.Context(), p.db, list); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *pair) each(of checkpoint.Filter, f func(checkpoint.Entry)) {
	err := checkpoint.Each(p.t.Context(), p.db, of, func(e checkpoint.Entry) error { f(e); return nil })
	must.Do(p.t, err)
}

// agree compares each lead that the checkpoint claims to know with the service.
func (p *pair) agree(when string) {
	p.each(checkpoint.Filter{}, func(e checkpoint.Entry) {
		l, ok := p.service.leads[e.LeadID]
		switch {
		case e.State != checkpoint.Created && e.State != checkpoint.Partial || e.LeadID == "":
		case !ok:
			p.errorf("%s: %s has a lead that the service does not", when, e.Key)
		case e.Unsettled == "":
			p.agreeOn(when, &e, l)
		}
	})
}

// agreeOn compares a settled lead. Its status must be that of the service's last answer, whatever a person did since.
func (p *pair) agreeOn(when string, e *checkpoint.Entry, l *leadapi.Lead) {
	if seen := p.service.answered[e.LeadID].Status; e.Status != seen && e.Seen.Status != seen && e.Status != p.service.checked[e.LeadID].Status && e.Seen.Status != p.service.checked[e.LeadID].Status && e.Status != "closedBoughtOtherBrand" && e.Seen.Status != "closedBoughtOtherBrand" {
		p.errorf("%s: %s is %q, the service last said %q", when, e.Key, e.Status, seen)
	}
	shown := append(p.service.ever[e.LeadID], p.service.answered[e.LeadID], *l)
	if e.ExternalID != "" && !slices.ContainsFunc(shown, func(l leadapi.Lead) bool { return l.ExternalID == e.ExternalID }) {
		p.errorf("%s: %s is linked to %s, on the service to %s", when, e.Key, e.ExternalID, l.ExternalID)
	}
	for _, d := range e.Content {
		held := d.Value == [4]byte{} // an update without an answer carried it
		for _, l := range shown {
			for name, value := range l.Content {
				held = held || p.db.Digests().SumName(name) == d.Name && p.db.Digests().SumValue(name, mapping.Canonical(value)) == d.Value
			}
		}
		if !held {
			p.errorf("%s: %s is said to hold content that the service does not", when, e.Key)
		}
	}
}

// carries reports whether the service holds the row's value of a field.
func carries(have jsontext.Value, f *mapping.Field) bool {
	return len(have) > 0 && mapping.Canonical(have) == f.Canonical()
}

// checkReported checks the rows that the run reports as in step: the service must have shown their values. Only the
// last row of each lead counts.
func (p *pair) checkReported(when string, r *trial) {
	last := map[string]*item{}
	for _, l := range r.lines {
		if id := l.entry.LeadID; id != "" && (last[id] == nil || last[id].row.Number < l.row.Number) {
			last[id] = l
		}
	}
	for id, l := range last {
		if l.outcome != Updated && (l.outcome != Unchanged || !r.matches) {
			continue
		}
		rec, lead, checked := &l.rec, p.service.answered[id], p.service.checked[id]
		told := strings.Contains(l.text, "changed on the service") || strings.Contains(l.text, "value is kept")
		if !told && lead.ExternalID != rec.ExternalID && !slices.ContainsFunc(p.service.ever[id], func(l leadapi.Lead) bool { return l.ExternalID == rec.ExternalID }) {
			p.errorf("%s: %s is %v, but linked to %s", when, rec.Key, l.outcome, lead.ExternalID)
		}
		for i := range rec.Content {
			if f := &rec.Content[i]; !told && !f.Volatile && !slices.ContainsFunc(p.service.ever[id], func(l leadapi.Lead) bool { return carries(l.Content[f.Name], f) }) {
				p.errorf("%s: %s is %v, but %s is not what the row says", when, rec.Key, l.outcome, f.Name)
			}
		}
		if rec.Status != "" && !l.remarks[statusByOthers] && l.entry.Seen.Against == "" && p.service.answered[id].Status != rec.Status && checked.Status != rec.Status {
			p.errorf("%s: %s is %v as %s, but the service last said %s", when, rec.Key, l.outcome, rec.Status, p.service.answered[id].Status)
		}
	}
}

// After any mix of runs, kills and changes in the console, checkpoint and service agree where the program says so, and
// no lead exists twice. A last sync brings both in step. Invariants 2, 4, 5; faults 1, 3, 68, 69, 79, 80
func TestCheckpointAndServiceAgreeWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		happenings := rapid.SliceOfN(rapid.Custom(drawHappening), 1, 6).Draw(rt, "happenings")
		final := rapid.SliceOfN(rapid.Custom(drawRow), 1, 10).Draw(rt, "final")
		faults := drawn(t, func(p *pair) {
			for i := range happenings {
				h := &happenings[i]
				when := fmt.Sprintf("step %d, %s", i, h.kind)
				r := p.happen(h)
				p.agree(when)
				if r != nil {
					p.checkReported(when, r)
				}
			}
			p.finally(final)
		})
		if faults != nil {
			rt.Fatalf("%s\n%s", strings.Join(faults, "\n"), describe(happenings))
		}
	})
}

// finally checks that syncs with the same rows bring both sides in step.
func (p *pair) finally(rows []string) {
	p.resolve()
	o := Options{Planning: Planning{Missing: MissingCreate, RetryRejected: true, Conflict: mapping.RuleFile}}
	p.checkReported("final", p.run("sync", o, rows...))
	p.agree("final")
	// If a row took another row's ExternalID, that other row may have no lead yet. So it may take a few runs.
	for n := 0; ; n++ {
		p.service.sent()
		made := len(p.service.order)
		r := p.run("sync", o, lastOfEach(rows)...)
		p.checkReported("in the end", r)
		sent := p.service.sent()
		if sent == "" && len(p.service.order) == made {
			break
		}
		if n == 5 {
			p.errorf("the same sync sent %q and made %d leads: %s", sent, len(p.service.order)-made, r.outcomes())
			break
		}
	}
	o.CheckRemote = ReadAll
	p.inStep(p.run("sync", o, lastOfEach(rows)...))
	of := map[string]string{}
	for id, key := range p.service.madeFor {
		if key = rowkey.Fold(key); of[key] != "" {
			p.errorf("%s, or what looks like it, has two leads, %s and %s", key, of[key], id)
		}
		of[key] = id
	}
}

// inStep compares the rows with the service itself. The run has read every lead, and the file wins.
func (p *pair) inStep(r *trial) {
	for i := range r.lines {
		l := r.lines[i]
		if l.outcome != Updated && l.outcome != Unchanged {
			continue
		}
		rec, lead := &l.rec, p.service.leads[l.entry.LeadID]
		if lead.ExternalID != rec.ExternalID || rec.Status != "" && lead.Status != rec.Status {
			p.errorf("at last %s is %v, but %s, %s", rec.Key, l.outcome, lead.ExternalID, lead.Status)
		}
		for i := range rec.Content {
			if f := &rec.Content[i]; !f.Volatile && !carries(lead.Content[f.Name], f) {
				p.errorf("at last %s is %v, but %s is not what the row says", rec.Key, l.outcome, f.Name)
			}
		}
	}
}

// lastOfEach returns the rows that no later row with their key or ExternalID replaces.
func lastOfEach(rows []string) (last []string) {
	seen := map[string]bool{}
	for _, row := range slices.Backward(rows) {
		cells := strings.Split(row, ",")
		if !seen[cells[0]] && !seen[cells[2]] {
			last = append(last, row)
		}
		seen[cells[0]], seen[cells[2]] = true, true
	}
	slices.Reverse(last)
	return last
}
