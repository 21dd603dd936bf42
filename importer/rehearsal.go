package importer

import (
	"strings"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
	"leadferry/mapping"
)

// rehearsal gathers what a run that sends nothing finds beside how each row ended.
// The engine's loop alone writes it; its size does not grow with the input, but for
// the repeats.
type rehearsal struct {
	checks    *checks
	statuses  *words
	assigned  *assigned
	repeats   *repeats // nil: not looked for
	repeated  found    // at the end
	addresses check    // rows whose key looks like an e-mail address

	planned [actionCount]int // steps that would be taken
	linked  int              // creates among them that ask for a link
	shown   int              // requests

	lacking  mapping.Errors // what the mapping needs to make leads; nil: nothing
	updates  bool           // it makes none on purpose
	proved   int            // tests of the mapping that were run
	failures []failure
}

func newRehearsal(o *Options) *rehearsal {
	h := &rehearsal{checks: newChecks(), statuses: newWords(), assigned: newAssigned()}
	if !o.NoRepeats {
		h.repeats = newRepeats()
	}
	return h
}

// read looks at a row before anything is planned for it.
func (h *rehearsal) read(it *item) {
	switch {
	case it.fault != nil:
		for _, p := range it.fault.problems {
			h.checks.add(it, p)
			if p.Status != "" {
				h.statuses.add(it, p.Status)
			}
		}
	case !it.rec.Skip && isAddress(it.rec.Key):
		h.addresses.add(it)
	}
}

// rehearse ends a row as far as it goes without sending.
func (e *engine) rehearse(it *item, step Step, known *checkpoint.Entry) {
	h := e.rehearsal
	sends := step.Action != Nothing && step.Action != Hold
	planned := step.Action
	if !sends || step.Action == Create && h.lacking != nil {
		planned = Nothing
	}
	if h.repeats != nil {
		fold := it.rec.Key
		if !e.CreateAlikes {
			fold = rowkey.Fold(fold)
		}
		h.repeats.add(it.rec.Key, fold, planned, it.input, it.row.Line)
	}
	if !sends {
		e.close(it, result{outcome: step.Outcome, entry: *known, text: step.Reason, kind: step.Kind})
		return
	}
	if planned != Nothing {
		h.plan(it, step)
		e.show(it, step, known)
	}
	e.close(it, result{outcome: Pending})
}

func (h *rehearsal) plan(it *item, step Step) {
	h.planned[step.Action]++
	if step.Action != Create {
		return
	}
	h.assigned.add(&it.rec)
	if it.rec.ExternalID != "" {
		h.linked++
	}
}

// show hands the request of a row to whoever asked for the first few.
func (e *engine) show(it *item, step Step, known *checkpoint.Entry) {
	if e.rehearsal.shown >= e.Show || e.Request == nil {
		return
	}
	e.rehearsal.shown++
	if err := e.Request(requestOf(e.Target.TrunkID, e.rows.names[it.input], it, step, known)); err != nil {
		e.stop(outputClosed(err))
	}
}

// fails reports whether anything but rows needs attention.
func (h *rehearsal) fails(r *reader) bool {
	return len(h.failures)+len(r.lost) > 0 || h.lacking != nil && !h.updates
}

const addressWarning = "a key looks like an e-mail address: keys are kept in the checkpoint, so take something that is nobody's name or address"

// isAddress reports whether a key looks like an e-mail address, as a person would see it.
func isAddress(key string) bool {
	at := strings.IndexByte(key, '@')
	return at > 0 && strings.IndexByte(key[at:], '.') > 1 && !strings.ContainsAny(key, " \t")
}
