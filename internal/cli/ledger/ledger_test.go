package ledger

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

// A misspelt address of a server, or a word for "no checkpoint", must not become the name of a new file: every lead
// would be made again. faults 18, 128
func TestRefuseName(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{
		"postgress://db/leads", "POSTGRES://db/leads", "mysql://db/leads", "file:///srv/leads.db", "https://db.example.com/leads",
		"dbname=leads host=db", "user=ann host=db", "sslmode=verify-full service=leads", "port=5432",
		" ", "leads.db\r", " leads.db", "leads.db ", `"/srv/leads.db"`, `'leads.db'`, "none", "-",
	} {
		if err := RefuseName(name); err == nil || !strings.Contains(err.Error(), "is neither that of a file nor an address of PostgreSQL") {
			t.Errorf("%q: %v", name, err)
		}
	}
	const secret = "hunter2"
	if err := RefuseName("postgress://ann:" + secret + "@db/leads"); err == nil || strings.Contains(err.Error(), secret) {
		t.Error(err)
	}
	for _, name := range []string{"port=1.db", "'leads'"} {
		must.Do(t, os.WriteFile(name, nil, 0o600))
	}
	for _, name := range []string{
		"leads.db", "./none", "./host=db", filepath.Join("a", "b=c.db"), "port=1.db", "'leads'", "", `"`, "Ann's leads.db", `C:\leads\x.db`, "a:/b.db",
		"postgres://db/leads", "postgresql://db/leads", "host=db dbname=leads", "service=leads",
	} {
		if err := RefuseName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
