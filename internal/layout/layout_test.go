package layout

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// design is the table of rooms: a package that is not in it is a fault, so that a new room is a decision.
func design() plan {
	leaves := []string{"importer/source", "importer/report", "mapping", "checkpoint", "leadapi"}
	below := append([]string{"importer", "importer/report/page", "leadapi/sandbox", "leadapi/sandbox/web", "checkpoint/bolt", "checkpoint/postgres"}, leaves...)
	const crash, failpoint, rowkey = "internal/crash", "internal/failpoint", "internal/rowkey"
	const cliExit, cliFlags, cliLedger = "internal/cli/exit", "internal/cli/flags", "internal/cli/ledger"
	const disk, spelling, shell = "internal/disk", "internal/spelling", "internal/shell"
	const words, lines = "importer/source/rows", "importer/source/lines"
	const numfmt = "importer/source/xlsx/numfmt"
	readers := []string{"importer/source/delimited", "importer/source/jsonrows", "importer/source/xlsx"}
	return plan{
		module: "leadferry",
		rooms: map[string]room{
			".":                          {imports: []string{"internal/cli", "internal/cli/signals"}, tests: below, stdOnly: true},
			"internal/cli":               {imports: append([]string{"importer/delivery", "internal/cli/checkpointcmd", cliExit, cliFlags, "internal/cli/connection", "internal/cli/external", "internal/cli/inputs", cliLedger, "internal/cli/signals", "internal/cli/terminal", "internal/config", "internal/explain", "internal/machine", "internal/page", disk, spelling, shell, crash, rowkey, "mapping/propose"}, below...), tests: []string{"checkpoint/storetest"}},
			"internal/cli/checkpointcmd": {imports: []string{cliExit, cliFlags, cliLedger, "internal/cli/connection", "internal/cli/inputs", "internal/cli/terminal", disk, shell, "importer", "importer/report", "leadapi/sandbox", "checkpoint", "checkpoint/bolt", "checkpoint/postgres", rowkey}, tests: []string{"internal/pgtest"}},
			"internal/cli/connection":    {imports: []string{cliExit, cliFlags, "internal/cli/external", "internal/config", "checkpoint", "leadapi", "leadapi/sandbox"}},
			"internal/cli/external":      {imports: []string{cliExit}},
			cliExit:                      {imports: []string{"importer", "checkpoint", crash, disk}},
			cliFlags:                     {imports: []string{cliExit, disk, spelling}},
			"internal/cli/inputs":        {imports: []string{cliExit, shell, "importer", "importer/report", "importer/source", "mapping", "mapping/propose", disk, spelling}},
			cliLedger:                    {imports: []string{cliExit, "internal/cli/connection", "internal/config", disk, shell, "importer", "importer/report", "importer/source", "checkpoint", "checkpoint/bolt", "checkpoint/postgres"}},
			"internal/cli/manual":        {imports: []string{"internal/cli"}},
			"internal/cli/signals":       {stdOnly: true},
			"internal/cli/terminal":      {imports: []string{cliExit, "importer/report"}},
			"internal/config":            {imports: []string{"leadapi", disk, spelling, shell}, tests: []string{"internal/testsupport"}},
			"internal/page":              {},
			"internal/e2e":               {tests: append([]string{"internal/cli", "internal/pgtest", "internal/testsupport"}, below...)},
			"internal/layout":            {},
			"internal/explain":           {imports: []string{spelling}},
			"internal/machine":           {},
			failpoint:                    {},
			rowkey:                       {},
			disk:                         {imports: []string{spelling}},
			spelling:                     {stdOnly: true},
			shell:                        {stdOnly: true},
			crash:                        {stdOnly: true},
			"importer":                   {imports: append([]string{"importer/delivery", "importer/findings", "importer/meter", failpoint, rowkey, crash, disk, spelling}, leaves...), tests: []string{"leadapi/sandbox", "checkpoint/bolt", "checkpoint/storetest"}},
			"importer/source":            {imports: append([]string{spelling, words, lines, disk}, readers...)},
			words:                        {imports: []string{spelling}},
			lines:                        {imports: []string{words}},
			"importer/source/delimited":  {imports: []string{words, lines, spelling}},
			"importer/source/jsonrows":   {imports: []string{words, lines, spelling}},
			"importer/source/xlsx":       {imports: []string{words, numfmt, spelling}},
			numfmt:                       {imports: []string{spelling}},
			"importer/delivery":          {imports: []string{"leadapi"}},
			"importer/findings":          {imports: []string{"importer/report"}, tests: []string{rowkey}},
			"importer/meter":             {imports: []string{"importer/report", "leadapi"}},
			"importer/report":            {imports: []string{"checkpoint", disk, spelling, shell}},
			"importer/report/page":       {imports: []string{"importer/report", "internal/page"}},
			"mapping":                    {imports: []string{"mapping/expression", "mapping/texts", rowkey, spelling}},
			"mapping/expression":         {imports: []string{"mapping/texts", spelling}},
			"mapping/texts":              {imports: []string{spelling}},
			"mapping/propose":            {imports: []string{"mapping", "mapping/texts", rowkey, spelling}},
			"checkpoint":                 {imports: []string{crash, disk, rowkey, shell}, tests: []string{"checkpoint/bolt", "checkpoint/storetest"}},
			"checkpoint/bolt/records":    {imports: []string{"checkpoint", rowkey}},
			"checkpoint/bolt":            {imports: []string{"checkpoint", "checkpoint/bolt/records", crash, failpoint, disk, rowkey}, tests: []string{"checkpoint/storetest"}},
			"checkpoint/postgres/server": {imports: []string{"checkpoint"}},
			"checkpoint/postgres":        {imports: []string{"checkpoint", "checkpoint/postgres/server", rowkey}, tests: []string{"checkpoint/storetest", "internal/pgtest"}},
			"internal/pgtest":            {},
			"internal/testsupport":       {stdOnly: true},
			"checkpoint/storetest":       {imports: []string{"checkpoint", rowkey}, tests: []string{"checkpoint/bolt"}},
			"leadapi":                    {imports: []string{failpoint}, tests: []string{"leadapi/sandbox", "internal/explain", "internal/testsupport"}},
			"leadapi/sandbox":            {imports: []string{spelling}, tests: []string{"leadapi"}},
			"leadapi/sandbox/web":        {imports: []string{"leadapi/sandbox", "internal/page"}},
		},
		reserved: []reserved{
			{path: "go.etcd.io/bbolt", rooms: []string{"checkpoint/bolt", "leadapi/sandbox"}, tests: true},
			{path: "github.com/jackc/pgx/v5", rooms: []string{"checkpoint/postgres", "checkpoint/postgres/server", "internal/pgtest"}, tests: true},
			// The engine knows statuses by name; what makes calls is reserved below.
			{path: "net/http", rooms: []string{"importer", "importer/delivery", "internal/page", "internal/testsupport", "leadapi", "leadapi/sandbox"}},
		},
		calls: reserved{path: "net/http", rooms: []string{"leadapi"}},
		names: []string{
			"Get", "Head", "Post", "PostForm", "NewRequest", "NewRequestWithContext",
			"Client", "DefaultClient", "Transport", "DefaultTransport", "RoundTripper",
		},
	}
}

// Every start pays for a regular expression that is compiled as a package variable.
func TestRegularExpressionsAreCompiledWhenNeeded(t *testing.T) {
	early := regexp.MustCompile(`(?m)^(var |\t)\w+ += regexp\.MustCompile`)
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "tools" || path == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if found := early.Find(text); found != nil {
			t.Errorf("%s: %s: take spelling.Form", path, strings.TrimSpace(string(found)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestModuleKeepsItsLayout(t *testing.T) {
	faults, err := design().check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

// Whoever works on the house finds each room on its page, by its own name or by that of the one above.
func TestRoomsStandOnTheirPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range design().rooms {
		found := name == "."
		for at := name; at != "." && at != "internal" && !found; at = path.Dir(at) {
			last := "`" + path.Base(at) + "`" // as those that several rooms share are listed
			found = strings.Contains(string(page), "`"+at+"`") || strings.HasPrefix(at, "internal/") && strings.Contains(string(page), last)
		}
		if !found {
			t.Errorf("docs/design.md does not say what %s is for", name)
		}
	}
}
