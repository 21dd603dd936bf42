package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No message shows a secret that was typed in the wrong place: as the name of its file, joined to the letter of a
// flag, as the argument of a command without files, or in an address.
func TestSecretsInTheWrongPlaceAreNotShown(t *testing.T) {
	for _, secret := range []string{"Summer2026-Winter-Pass7", "hunter2pass", "3f2a1b4c-0d9e-4f8a-b7c6-5d4e3f2a1b0c", "Correct.Horse7.Battery9.Staple4"} {
		d := newDesk(t, "https://127.0.0.1:1")
		t.Chdir(d.dir)
		at := []string{"--leads-url", "https://127.0.0.1:1", "--trunk-id", "t", "--client-id", "c"}
		hidden := func(args ...string) {
			t.Helper()
			if _, seen := d.run("", args...); strings.Contains(seen, secret) {
				t.Errorf("%q:\n%s", args, seen)
			}
		}
		named := with(at, "--client-secret-file", secret)
		hidden(with([]string{"config", "show"}, named...)...)
		hidden(with([]string{"config", "check"}, named...)...)
		hidden("import", "--sandbox", "-p"+secret)
		hidden("login", "--email", "a@example.com", secret)
		hidden(with([]string{"config", "check", "--base-url", "http://u:" + secret + "@127.0.0.1:x"}, at...)...)
		profile := "profiles:\n  default:\n    base_url: \"http://u:" + secret + "@127.0.0.1:x\"\n    leads_url: https://127.0.0.1:1\n    trunk_id: t\n    client_id: c\n    client_secret_file: " + secret + "\n"
		d.write("config/leadferry/config.yaml", profile)
		t.Setenv("LEADFERRY_BASE_URL", "")
		hidden("config", "show")
		hidden("config", "check")
		hidden("import", "--sandbox=false", "-m", sampleFile(t, "leads.yaml"), sampleFile(t, "leads.csv"))
		os.Remove(filepath.Join(d.dir, "config/leadferry/config.yaml"))
		t.Setenv("LEADFERRY_CLIENT_SECRET_FILE", secret)
		hidden(with([]string{"config", "check"}, at...)...)
	}
}
