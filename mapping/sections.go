package mapping

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/rowkey"
	"leadferry/mapping/texts"
)

func (p *parser) mappingFile(doc node) {
	m := p.m
	m.root, m.lead = doc.at(), doc.at()
	if _, tables, found := doc.child("tables"); found { // first: the other sections name tables
		p.namedTables(tables)
	}
	p.object(doc,
		member{"version", set(p, new(string), oneOf(version))},
		member{"tables", func(node) {}},
		member{"source", p.source},
		member{"namespace", set(p, &m.plan.namespace, namespace)},
		member{"target", p.target},
		member{"key", p.into(&m.plan.key, value{role: keyRole, needed: ruleKey})},
		member{"lead_id", p.into(&m.plan.leadID, value{role: leadIDRole})},
		member{"skip_if", func(n node) { m.plan.skip = p.condition(n) }},
		member{"assign", p.list(func(n node) { m.plan.assign = append(m.plan.assign, p.assignment(n)) })},
		member{"lead", p.lead},
		member{"tests", p.list(p.test)},
	)
	p.needs(doc, "begin with version: 1", "version")
	key, hint := m.plan.key, ""
	if key == nil && !doc.has("key") {
		key, hint = m.plan.externalID, "give a key of its own"
	}
	if key != nil && key.has(rowKey) {
		p.failIn(p.file, key.at, hint, "%s is the row's key, which cannot be made of {@key}", key.path)
	}
}

func namespace(word string) (string, *texts.Fault) {
	if !rowkey.IsNamespace(word) {
		return "", texts.NewFault(fmt.Sprintf("it takes 1 to %d letters, digits, dots, underscores and hyphens",
			rowkey.MaxNamespace), "for example namespace: dealers")
	}
	return word, nil
}

func (p *parser) target(n node) {
	t := &p.m.Target
	t.Line = n.at().line
	p.object(n, member{"trunk_id", set(p, &t.TrunkID, notBlank)}, member{"leads_url", set(p, &t.LeadsURL, notBlank)})
	if n.Kind == yaml.MappingNode && !n.has("trunk_id") && !n.has("leads_url") {
		p.fail(n, "for example target: {trunk_id: ...}, as leadferry config show prints it",
			"%s names neither trunk_id nor leads_url", n.path)
	}
}

func (p *parser) source(n node) {
	s := &p.m.Source
	p.object(n,
		member{"format", set(p, &s.Format, oneOf("csv", "tsv", "jsonl", "xlsx"))},
		member{"delimiter", set(p, &s.Delimiter, delimiter)},
		member{"quote", set(p, &s.NoQuotes, lastOf("none"))},
		member{"encoding", set(p, &s.Encoding, notBlank)},
		member{"header", set(p, &s.NoHeader, lastOf("true", "false"))},
		member{"columns", p.list(func(n node) {
			var name string
			set(p, &name, columnName)(n)
			s.Columns = append(s.Columns, name)
		})},
		member{"null", p.list(func(n node) {
			word, _ := p.scalarOrNull(n)
			s.Null = append(s.Null, strings.TrimSpace(word))
		})},
		member{"sheet", set(p, &s.Sheet, notBlank)},
		member{"list", set(p, &s.List, notBlank)},
		member{"skip_rows", set(p, &s.SkipRows, lineCount)},
		member{"skip_footer", set(p, &s.SkipFooter, lineCount)},
		member{"footer", set(p, &s.Footer, readSlashed)},
		member{"comment", set(p, &s.Comment, comment)},
		member{"escape", set(p, &s.Backslash, lastOf(`\`))},
	)
	if footer, _, both := n.child("footer"); both && n.has("skip_footer") {
		p.fail(footer, "keep one of them: footer if the number of lines differs from file to file",
			"%s has both footer and skip_footer", n.path)
	}
	switch columns := n.has("columns"); {
	case s.NoHeader && !columns:
		p.fail(n, "add columns: [first, second]", "%s.header is false, so the columns need names", n.path)
	case columns && !n.has("header"):
		p.fail(n, "add header: false", "%s.columns names the columns of a file without header line", n.path)
	}
}

func lineCount(word string) (int, *texts.Fault) {
	const maxLines = 1000 // before the header, or after the last row
	lines, err := strconv.Atoi(word)
	if err != nil || lines < 0 || lines > maxLines {
		return 0, texts.NewFault(fmt.Sprintf("it takes a number of lines, at most %d", maxLines),
			"count the lines before the header, or after the last row, blank ones too")
	}
	return lines, nil
}

func comment(word string) (string, *texts.Fault) {
	if blank(word) || strings.TrimSpace(word) != word || strings.ContainsAny(word, "\"\r\n") || len(word) > 16 {
		return "", texts.NewFault("it takes what a comment begins with: a few characters, no blank and no quote",
			`for example comment: "#"`)
	}
	return word, nil
}

func delimiter(word string) (rune, *texts.Fault) {
	if word == "tab" {
		return '\t', nil
	}
	r, size := utf8.DecodeRuneInString(word)
	if size < len(word) || strings.ContainsRune("\"\r\n\uFFFD\uFEFF", r) {
		return 0, texts.NewFault("it must be one character, and no quote or line break", `for example ";" or tab`)
	}
	return r, nil
}

func (p *parser) lead(n node) {
	plan := &p.m.plan
	p.m.lead = n.at()
	p.object(n,
		member{"type_key", p.into(&plan.typeKey, value{needed: ruleRequired})},
		member{"type_label", p.into(&plan.typeLabel, value{needed: ruleRequired})},
		member{"status", p.into(&plan.status, value{role: statusRole})},
		member{"external_id", p.into(&plan.externalID, value{role: keyRole, needed: ruleRequired})},
		member{"content", p.content},
	)
}

// content reads the form's data: its keys are free (specification, "Lead").
func (p *parser) content(n node) {
	p.each(n, func(key, child node) {
		f := field{name: key.Value}
		if f.name == "*" {
			p.m.plan.rest = p.rest(child)
		} else {
			if f.value = p.value(child, value{role: contentRole}); f.value == nil {
				return
			}
			f.volatile = f.value.has(file, line, run)
			if at := f.value.at; f.volatile && len(f.value.uses()) > 0 && len(p.m.Warnings) < maxErrors {
				p.m.Warnings = append(p.m.Warnings, Error{
					p.file, at.line, at.column, f.value.path + " goes out with a new lead only: a value that holds {@file}, " +
						"{@line} or {@run} is never compared", "give its columns a key of their own, so that a sync sends them",
				})
			}
		}
		p.m.plan.content = append(p.m.plan.content, f)
	})
}

// assignment reads an entry of assign. More than one kind in an entry is refused: the specification does not say which
// the service would use (endpoint 5, rule 3, and "Lead creation request body").
func (p *parser) assignment(n node) assignment {
	var t assignment
	kind, before := "", len(p.errs)
	keys := []string{"organization", "locator", "type", "search_text", "postal_code"}
	p.object(n,
		member{"organization", p.into(&t.organization, value{})},
		member{"locator", p.into(&t.locator, value{})},
		member{"type", set(p, &kind, oneOf("radius", "regions", "regions-radius"))},
		member{"search_text", p.into(&t.searchText, value{})},
		member{"postal_code", p.into(&t.postalCode, value{})},
	)
	given := strings.Join(slices.DeleteFunc(keys, func(key string) bool { return !n.has(key) }), " ")
	fits := given == "organization" || given == "locator type postal_code" && kind == "regions" ||
		given == "locator type search_text" && kind != "regions"
	if !fits && len(p.errs) == before {
		p.fail(n, "write one entry for each; the first that fits is used", "%s needs an organization alone, or a "+
			"locator with its type and search_text (radius, regions-radius) or postal_code (regions)", n.path)
	}
	return t
}
