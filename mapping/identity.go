package mapping

import (
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// identity reads a value that says what a row is: key, external_id or lead_id. A table,
// or what stands in for a cell that is filled later, must not change that; and without a
// column all rows would be one.
func (p *parser) identity(place **value, traits ...trait) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		v := p.value(path, n, append(traits, saysWhatItIs)...)
		if v == nil {
			return
		}
		if c, constant := v.text.constant(); constant {
			p.fail(n, `write "{`+strings.Trim(c, "{}")+`}" for what the column holds`, "%s names no column, so that all rows would be one", path)
			return
		}
		*place = v
	}
}

func saysWhatItIs(v *value) { v.identity = true }

// unsteady are the keys of a value by which a row would become another one.
var unsteady = []string{"expr", "map", "else", "default", "required", "as", "empty"}

// steady reports whether an object has none of those.
func (p *parser) steady(path string, n *yaml.Node) bool {
	before := len(p.errs)
	p.each(path, n, func(key, _ *yaml.Node) {
		if slices.Contains(unsteady, key.Value) {
			p.fail(key, "what a row is must not change with a table, or with a cell that is filled later",
				"%s takes from, apply and format only, not %s", path, key.Value)
		}
	})
	return len(p.errs) == before
}

// effectiveKey is the key under which a row is known. Keys of a namespace begin with its
// name and a slash, and no other key does: one that would, or that begins with a slash,
// gets another slash in front.
func effectiveKey(namespace, key string) string {
	if namespace != "" {
		return namespace + "/" + key
	}
	if before, _, found := strings.Cut(key, "/"); found && (before == "" || len(before) <= maxNamespace && isName(before)) {
		return "/" + key
	}
	return key
}

// trimmed is s without white space and invisible characters at its ends: a zero-width
// space, which comes with texts copied from web pages, makes no other row.
func trimmed(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || IsInvisible(r) })
		}
	}
	return s
}

// IsInvisible reports whether a character shows nothing and takes no room: those that
// Unicode says to ignore where they cannot be shown (Default_Ignorable_Code_Point).
func IsInvisible(r rune) bool {
	return r >= 0xAD && unicode.Is(invisible, r)
}

// invisible is fixed: what is kept by it must not change with another version of Unicode.
var invisible = &unicode.RangeTable{
	LatinOffset: 1,
	R16: []unicode.Range16{
		{0x00AD, 0x00AD, 1},
		{0x034F, 0x034F, 1},
		{0x061C, 0x061C, 1},
		{0x115F, 0x1160, 1},
		{0x17B4, 0x17B5, 1},
		{0x180B, 0x180F, 1},
		{0x200B, 0x200F, 1},
		{0x202A, 0x202E, 1},
		{0x2060, 0x206F, 1},
		{0x3164, 0x3164, 1},
		{0xFE00, 0xFE0F, 1},
		{0xFEFF, 0xFEFF, 1},
		{0xFFA0, 0xFFA0, 1},
		{0xFFF0, 0xFFF8, 1},
	},
	R32: []unicode.Range32{
		{0x1BCA0, 0x1BCA3, 1},
		{0x1D173, 0x1D17A, 1},
		{0xE0000, 0xE0FFF, 1},
	},
}
