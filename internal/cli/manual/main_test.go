package main

import (
	"os/exec"
	"strings"
	"testing"

	"leadferry/internal/cli"
	"leadferry/internal/cli/reference"
)

// Each command has a page with every flag, and man has
// nothing to complain of.
func TestPagesSayWhatHelpSays(t *testing.T) {
	all := pages(cli.Reference(), "0.0.0")
	commands := 0
	cli.Reference().Each(func(c *reference.Command) {
		commands++
		page := all[pageName(c)+".1"]
		for _, f := range c.Flags {
			if !strings.Contains(page, "\n   "+escape(f.Spelling())) {
				t.Errorf("%s: no --%s", c.Name(), f.Names[0])
			}
		}
		if !strings.Contains(page, "Exit codes: 0") {
			t.Errorf("%s: no description", c.Name())
		}
	})
	if len(all) != commands {
		t.Errorf("%d pages of %d commands", len(all), commands)
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
