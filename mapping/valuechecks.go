package mapping

import (
	"slices"
	"strings"

	"leadferry/mapping/texts"
)

// addChecks gives the value its checks, and sees to it that its constants pass the last:
// they come behind apply and format, which are for cells.
func (r *valueReader) addChecks() {
	if r.role == keyRole && r.inside == nothing {
		r.checks = append(r.checks, onlyIf(ruleControl, "", showsWhole))
	}
	r.checks = append(r.checks, r.format...)
	before := len(r.checks)
	switch kind := kindWords[r.kind]; {
	case r.parts != nil && r.parts.isJSON():
	case r.role == leadIDRole && r.inside == nothing:
		r.checks = append(r.checks, onlyIf(ruleLeadID, "", isLeadID))
	case r.role == statusRole && r.inside == nothing:
		r.checks = append(r.checks, stage{rule: ruleStatus, called: aStatus, do: statusKey})
	case r.kind != String:
		r.checks = append(r.checks, stage{rule: ruleAs, called: kind.called, do: kind.do})
	}
	last := r.checks[before:]
	for _, c := range r.constants {
		if _, broken := through(last, c.text, nil); broken != nil {
			r.refuseConstant(c, broken.called)
		}
	}
	r.checkPull()
}

const aStatus = "a status of the service"

func (r *valueReader) refuseConstant(c constant, called string) {
	hint := ""
	if called == aStatus {
		hint = statusHint(c.text)
	}
	r.failIn(c.file, c.at, hint, "%s: %s is not %s", c.path, texts.Quote(c.text), called)
}

// checkShape sees to it that nothing a cell holds can change a JSON value around it.
func (r *valueReader) checkShape(n node) {
	other := n
	other.path += ".else"
	r.markPlaces(other, r.other)
	const hint = `{object: {name: "{name}", seats: {from: "{seats}", as: number}}} puts cells into JSON safely`
	whole := true // the text is one cell, or a constant
	for _, part := range r.alternatives() {
		whole = whole && len(part.text) < 2 && part.expr == nil
		switch {
		case r.table != nil: // the text is looked up
		case part.parts != nil && part.parts.way == join, part.expr != nil && part.expr.Builds && len(part.columns) > 0:
			r.failAt(part.at, hint, "%s puts a JSON value together, whose shape a cell could change", part.path)
		case part.expr == nil:
			r.markPlaces(node{n.Node, part.path}, part.text)
		}
	}
	for _, step := range r.apply {
		name, _, _ := strings.Cut(step.called, ":")
		changes := name == "replace" || !whole && slices.Contains([]string{"extract", "split", "truncate"}, name)
		if changes && r.table == nil {
			r.fail(n, hint, "%s: the step %s could change the shape of a JSON value", n.path, name)
		}
	}
}

// alternatives are the values of which one is taken as it is: the value, or those of first.
func (r *valueReader) alternatives() []*value {
	list := []*value{r.value}
	for i := 0; i < len(list); i++ {
		if parts := list[i].parts; parts != nil && parts.way == first {
			list = append(list, parts.values...)
		}
	}
	return list
}

// checkFixed checks a value that names no column. It comes to the same in every row, so
// a rule that it breaks is a mistake of the file.
func (r *valueReader) checkFixed(n node) {
	_, problem := r.eval(new(row))
	c, _ := r.text.constant()
	switch {
	case problem == nil || problem == absent:
	case problem.Rule == ruleStatus:
		r.refuseConstant(r.parser.constant(n, problem.Word), aStatus)
	case problem.Rule == ruleMap && n.has("from"):
		r.fail(n, `write from: "{`+c+`}" for what the column holds`, "%s looks up the constant %s in its map, which lacks it", n.path, texts.Quote(c))
	default:
		r.fail(n, "", "%s", problem.Text)
	}
}

// readPull reads the words by which the CRM knows statuses.
func (r *valueReader) readPull(n node) {
	r.each(n, func(key, child node) {
		if status, ok := r.statusOf(key); ok {
			r.m.pull[status] = r.fixed(child)
			r.pulls = append(r.pulls, child)
		}
	})
}

// checkPull sees to it that each word comes back as the status that it is for, and finds the
// words of the other statuses in the table: the first one of several. No word leaves out leads
// of that status.
func (r *valueReader) checkPull() {
	if r.role != statusRole || r.inside != nothing {
		return
	}
	for _, n := range r.pulls {
		status, _ := statusKey(n.path[strings.LastIndexByte(n.path, '.')+1:])
		word := r.m.pull[status]
		to, found := word, true
		if r.table != nil {
			to, found = r.table.find(word)
		}
		if back, _ := statusKey(to); word != "" && (!found || back != status) {
			r.fail(n, "take one of the words that map turns into "+status, "%s: %s is no word that map turns into this status", n.path, texts.Quote(n.Value))
		}
	}
	if r.m.pullOnly = r.table != nil || len(r.pulls) > 0; r.table == nil {
		return
	}
	for _, word := range r.table.order {
		to, _ := r.table.find(word)
		status, known := statusKey(to)
		if _, has := r.m.pull[status]; known && !has {
			r.m.pull[status] = word
		}
	}
}

// readConflict reads whose word counts for statuses that both sides changed.
func (r *valueReader) readConflict(n node) {
	r.each(n, func(key, child node) {
		if status, ok := r.statusOf(key); ok {
			r.m.conflict[status] = r.oneOf(child, "rule for conflicts", "report", "file", "service")
		}
	})
}

// statusOf is the key of the status that the word n stands for.
func (p *parser) statusOf(n node) (key string, ok bool) {
	key, ok = statusKey(n.Value)
	if !ok {
		p.fail(n, statusHint(n.Value), "%s: %s is not %s", n.path, texts.Quote(n.Value), aStatus)
	}
	return key, ok
}
