package cli

import (
	"strings"
	"testing"
)

// Flags count wherever they stand: a --dry-run behind a file name that were dropped
// would be a live run.
func TestFlagsCountInAnyOrder(t *testing.T) {
	app := (&program{}).app()
	tests := []struct{ args, want string }{
		{"import f.csv --dry-run", "import --dry-run -- f.csv"},
		{"import --dry-run f.csv", "import --dry-run -- f.csv"},
		{"import f.csv -m map.yaml g.csv -c 4", "import -m map.yaml -c 4 -- f.csv g.csv"},
		{"import f.csv --mapping=map.yaml", "import --mapping=map.yaml -- f.csv"},
		{"import - --quiet --log-level debug", "--quiet --log-level debug import -- -"},
		{"--quiet import f.csv", "--quiet import -- f.csv"},
		{"--log-level debug import f.csv", "--log-level debug import -- f.csv"},
		{"import -m map.yaml -- --dry-run", "import -m map.yaml -- --dry-run"},
		{"import --limit -1 f.csv", "import --limit -1 -- f.csv"},
		{"checkpoint resolve f.csv --sandbox", "checkpoint resolve --sandbox -- f.csv"},
		{"checkpoint export --state in_doubt", "checkpoint export --state in_doubt"},
		{"--help", "--help"},
	}
	for _, test := range tests {
		got, err := reorder(app, append([]string{"leadferry"}, strings.Fields(test.args)...))
		if want := "leadferry " + test.want; err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v; want %s", test.args, got, err, want)
		}
	}
	for _, args := range []string{"imprt f.csv", "checkpoint reslove f.csv", "import f.csv -m"} {
		if _, err := reorder(app, append([]string{"leadferry"}, strings.Fields(args)...)); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
}
