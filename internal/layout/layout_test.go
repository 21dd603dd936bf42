package layout

import (
	"os"
	"testing"
)

// design is the table of rooms: a package that is not in it is a fault, so that a new room is a decision.
func design() plan {
	leaves := []string{"importer/source", "importer/report", "mapping", "checkpoint", "leadapi"}
	below := append([]string{"importer", "leadapi/sandbox"}, leaves...)
	point, redact, owners := "internal/failpoint", "internal/redact", "internal/trust"
	keys, faults := "internal/rowkey", "internal/crash"
	return plan{
		module: "leadferry",
		rooms: map[string]room{
			".":                    {imports: []string{"internal/cli"}, tests: below, stdOnly: true},
			"internal/cli":         {imports: append([]string{"internal/config", owners, faults, keys, "mapping/propose"}, below...)},
			"internal/config":      {imports: []string{"leadapi", owners}},
			"internal/e2e":         {tests: append([]string{"internal/cli"}, below...)},
			"internal/layout":      {},
			point:                  {},
			keys:                   {},
			redact:                 {stdOnly: true},
			owners:                 {},
			faults:                 {stdOnly: true},
			"importer":             {imports: append([]string{point, redact, keys, faults}, leaves...), tests: []string{"leadapi/sandbox"}},
			"importer/source":      {imports: []string{"importer/source/xlsx"}},
			"importer/source/xlsx": {},
			"importer/report":      {imports: []string{owners}},
			"mapping":              {imports: []string{keys}},
			"mapping/propose":      {imports: []string{"mapping", keys}},
			"checkpoint":           {imports: []string{faults, point, owners, keys}},
			"leadapi":              {imports: []string{point, redact}, tests: []string{"leadapi/sandbox"}},
			"leadapi/sandbox":      {tests: []string{"leadapi"}},
		},
		reserved: []reserved{
			{path: "go.etcd.io/bbolt", rooms: []string{"checkpoint", "leadapi/sandbox"}, tests: true},
			// The engine knows statuses by name; what makes calls is reserved below.
			{path: "net/http", rooms: []string{"importer", "leadapi", "leadapi/sandbox"}},
		},
		calls: reserved{path: "net/http", rooms: []string{"leadapi"}},
		names: []string{
			"Get", "Head", "Post", "PostForm", "NewRequest", "NewRequestWithContext",
			"Client", "DefaultClient", "Transport", "DefaultTransport", "RoundTripper",
		},
		limits: map[string]int{"main.go": 39},
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
