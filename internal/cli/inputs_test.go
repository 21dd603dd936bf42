package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An address is refused whatever command reads inputs, with the way out, and nothing of it is shown.
func TestAddressesAreNoInputs(t *testing.T) {
	d := newDesk(t, "http://127.0.0.1:1")
	t.Chdir(d.dir)
	const address = "https://files.example.com/leads.csv?sig=s3cret"
	for _, command := range []string{"init", "validate", "import"} {
		out := d.must(2, "", []string{command, "-m", sampleFile(t, "leads.yaml"), address}, "an input is an address", "curl ADDRESS")
		if strings.Contains(out, "s3cret") {
			t.Error(out)
		}
	}
}

func sampleFile(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(here, "..", "..", "samples", name)
}

var here = func() string { dir, _ := os.Getwd(); return dir }()
