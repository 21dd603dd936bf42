package mapping

import (
	"strings"
	"testing"
)

// faults 110
func TestASecretInTheMappingIsWarnedOfAndNotRepeated(t *testing.T) {
	const secret = "Zm9vYmFyYmF6cXV4Q29ycmVjdEhvcnNlQmF0dGVyeTE5Mjg" // invented
	const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
	for _, test := range []struct{ line, what string }{
		{"client_secret: hunter2", "a secret"},
		{"API-Key: x", "a secret"},
		{"password: {from: '{p}', default: geheim}", "a secret"},
		{"a: {expr: '\"" + jwt + "\"'}", "a secret"},
		{"a: 'Bearer " + strings.ToLower(secret) + "'", "a secret"},
		{"a: {from: '{x}', map: {x: " + jwt + "}}", "a secret"},
		{"a: ['" + secret + "']", ""},
		{"password: '{Password}'", ""},
		{"secret: 'to be told in person'", ""},
		{"a: 0b1c2d3e-0000-4000-8000-000000000001", ""},
		{"a: 0b1c2d3e00004000800000000000000100001111", ""},
		{"a: https://example.com/AbCdEfGh0123456789AbCdEfGh0123456789", ""},
		{"a: Donaudampfschifffahrtsgesellschaftskapitaen123", ""},
		{"bearer: of good news", ""},
	} {
		line, what := test.line, test.what
		m, err := Parse("m", []byte("version: 1\nlead:\n  content:\n    "+line+"\n"), nil)
		if what == "" {
			if err == nil && len(m.Warnings()) > 0 {
				t.Errorf("%s: %v", line, m.Warnings())
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		ws := m.Warnings()
		if len(ws) != 1 || ws[0].Text != "the mapping file holds what looks like "+what || ws[0].Line != 4 || ws[0].Column < 5 || ws[0].File != "m" {
			t.Errorf("%s: %v, want a warning of %s", line, ws, what)
			continue
		}
		for _, word := range []string{secret, strings.ToLower(secret), jwt, "hunter2", "geheim"} {
			if strings.Contains(ws[0].Error(), word) {
				t.Errorf("the warning repeats it: %v", ws[0])
			}
		}
	}
}

func TestWarningsHaveAnEnd(t *testing.T) {
	m := parse(t, "version: 1\nlead:\n  content:\n"+numbered(200, "    aN_secret: x\n"))
	if n := len(m.Warnings()); n != maxErrors {
		t.Errorf("%d warnings, want %d", n, maxErrors)
	}
}
