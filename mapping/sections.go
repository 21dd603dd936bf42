package mapping

import (
	"go.yaml.in/yaml/v4"

	"leadferry/internal/rowkey"
)

// mappingFile reads the whole mapping file.
func (p *parser) mappingFile(doc *yaml.Node) {
	m := p.m
	m.root, m.lead = at(doc), at(doc)
	p.object("", doc,
		member{"version", p.version},
		member{"source", p.source},
		member{"namespace", p.namespace},
		member{"key", p.identity(&m.plan.key, needs(ruleKey))},
		member{"lead_id", p.identity(&m.plan.leadID, namesLead)},
		member{"skip_if", func(path string, n *yaml.Node) { m.plan.skip = p.condition(path, n) }},
		member{"assign", p.assign},
		member{"lead", p.lead},
		member{"tests", p.tests},
	)
	if doc.Kind == yaml.MappingNode && !has(doc, "version") {
		p.fail(doc, "begin with version: 1", "version is missing")
	}
	key, hint := m.plan.key, ""
	if key == nil && !has(doc, "key") {
		key, hint = m.plan.externalID, "give a key of its own"
	}
	if key != nil && key.text.has(rowKey) {
		p.failAt(key.at, hint, "%s is the row's key, which cannot be made of {@key}", key.path)
	}
}

func (p *parser) version(path string, n *yaml.Node) {
	if s, ok := p.scalar(path, n); ok && s != version {
		p.fail(n, "write version: 1", "%s %s of the mapping language is not known", path, quote(s))
	}
}

func (p *parser) namespace(path string, n *yaml.Node) {
	s, ok := p.scalar(path, n)
	switch {
	case !ok:
	case !rowkey.IsNamespace(s):
		p.fail(n, "for example "+path+": dealers", "%s takes 1 to %d letters, digits, dots, underscores and hyphens", path, rowkey.MaxNamespace)
	default:
		p.m.plan.namespace = s
	}
}

func (p *parser) lead(path string, n *yaml.Node) {
	plan := &p.m.plan
	p.m.lead = at(n)
	p.object(path, n,
		member{"type_key", p.into(&plan.typeKey, needs(ruleRequired))},
		member{"type_label", p.into(&plan.typeLabel, needs(ruleRequired))},
		member{"status", p.into(&plan.status, isStatus)},
		member{"external_id", p.identity(&plan.externalID, needs(ruleRequired))},
		member{"content", p.content},
	)
}

// content reads the form's data: its keys are free (specification, "Lead").
func (p *parser) content(path string, n *yaml.Node) {
	p.each(path, n, func(key, child *yaml.Node) {
		name := key.Value
		switch {
		case name == "*":
			p.rest(path+".*", child)
		case blank(name):
			p.fail(key, "", "%s has a key without a name", path)
		default:
			if v := p.value(path+"."+name, child, ofContent); v != nil {
				p.m.plan.content = append(p.m.plan.content, field{name, v, v.text.has(file, line, run)})
			}
		}
	})
}

// rest takes the columns into the content that nothing else uses.
func (p *parser) rest(path string, n *yaml.Node) {
	if s, ok := p.scalar(path, n); ok && s != "rest" {
		p.fail(n, `"*": rest`, "%s takes the word rest only: every column that nothing else uses", path)
		return
	}
	p.m.plan.content = append(p.m.plan.content, field{name: "*"})
}

func (p *parser) assign(path string, n *yaml.Node) {
	p.list(path, n, func(path string, n *yaml.Node) {
		if !p.full() {
			p.m.plan.assign = append(p.m.plan.assign, p.assignment(path, n))
		}
	})
}

// searches are the locator types and what a search by them needs (specification,
// endpoint 5, rule 3).
var searches = map[string]string{
	"radius": "search_text", "regions-radius": "search_text", "regions": "postal_code",
}

func (p *parser) assignment(path string, n *yaml.Node) assignment {
	var t assignment
	kind, before := "", len(p.errs)
	p.object(path, n,
		member{"organization", p.into(&t.organization)},
		member{"locator", p.into(&t.locator)},
		member{"type", func(path string, n *yaml.Node) {
			kind = p.oneOf(path, "locator type", n, "radius", "regions", "regions-radius")
		}},
		member{"search_text", p.into(&t.searchText, ofSearch)},
		member{"postal_code", p.into(&t.postalCode, ofSearch)},
	)
	if len(p.errs) > before || n.Kind != yaml.MappingNode {
		return t
	}
	needed, others := "organization", []string{"locator", "type", "search_text", "postal_code"}
	switch {
	case t.organization != nil:
	case t.locator == nil:
		p.fail(n, "", "%s needs an organization or a locator", path)
		return t
	case kind == "":
		p.fail(n, "radius, regions or regions-radius", "%s needs the type of its locator", path)
		return t
	default:
		needed = searches[kind]
		others = []string{"search_text", "postal_code"}
	}
	p.only(path, n, needed, others)
	return t
}

// only checks that an entry of assign has what it needs and none of the others:
// the service would choose between them in a way that nobody told (specification,
// "Lead creation request body").
func (p *parser) only(path string, n *yaml.Node, needed string, others []string) {
	if !has(n, needed) {
		p.fail(n, needed+`: "{column}"`, "%s needs %s for a locator of its type", path, needed)
	}
	for i := 0; i < len(n.Content); i += 2 {
		for _, name := range others {
			if key := n.Content[i]; key.Value == name && name != needed {
				p.fail(key, "", "%s has %s, which does not go with its %s", path, name, needed)
			}
		}
	}
}
