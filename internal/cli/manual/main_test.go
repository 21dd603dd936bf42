package main

import (
	"os/exec"
	"strings"
	"testing"
)

// Each command has a page, rare flags and those of the connection included, and man has nothing to complain of.
func TestPagesSayWhatHelpSays(t *testing.T) {
	all := pages()
	for name, texts := range map[string][]string{
		"leadferry.1":             {"NAME\nleadferry ", "Exit codes: 0", "\n   \\-\\-quiet "},
		"leadferry-import.1":      {"\n   \\-\\-max\\-creates N", "\n   \\-\\-base\\-url URL", "\n   \\-\\-mapping FILE, \\-m FILE"},
		"leadferry-checkpoint.1":  {"COMMANDS:\n   status"},
		"leadferry-config-show.1": {"Exit codes: 0"},
		"leadferry-sandbox.1":     {"\n   \\-\\-faults SPEC"},
	} {
		for _, text := range texts {
			if !strings.Contains(all[name], text) {
				t.Errorf("%s: no %q in\n%s", name, text, all[name])
			}
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed here: the pages are not formatted")
	}
	for name, text := range all {
		c := exec.Command(groff, "-man", "-ww", "-Tutf8")
		var complaints strings.Builder
		c.Stdin, c.Stderr = strings.NewReader(text), &complaints
		if err := c.Run(); err != nil || complaints.Len() > 0 {
			t.Errorf("%s: %v\n%s", name, err, &complaints)
		}
	}
}
