package e2e

import (
	"fmt"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// After a kill with one durable claim, a lead may exist: the same file with another key is refused. After a kill
// before that, nothing is noted, and another key is accepted. faults 2, 131
func TestShapeIsNotedWithTheFirstIntent(t *testing.T) {
	t.Parallel()
	for point, code := range map[string]int{"before claim": 0, "durable claim": 2} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{})
			w.leads(3)
			if !w.dieAt(point, 1, 1) {
				t.Fatal("it ended by itself")
			}
			w.write("other.yaml", strings.Replace(mappingText, `key: "{id}"`, `key: "{id}-{org}"`, 1))
			w.must(code, "import -m other.yaml leads.csv --out none")
			if n, want := w.creates(), map[int]int{0: 3, 2: 0}[code]; n != want {
				t.Errorf("%d creates, want %d", n, want)
			}
		})
	}
}

// An import leaves a lead that has no ExternalID yet, or a row in doubt. A CRM's nightly export with another key still
// finds it by the ExternalID that it should get, so that no lead is made a second time. faults 127, 131
func TestUnlinkedLeadsAreFoundByTheirFutureExternalID(t *testing.T) {
	t.Parallel()
	const rows = 4
	for _, test := range []struct {
		name, faults, state, decided, want string // want: the outcome of the first row of the export
		code                               int
	}{
		{"not linked", "update.500#1", "partial", "", "updated", 0},
		{"in doubt, made", "create.drop-stored#1", "in_doubt", "", "in_doubt", 5},
		{"in doubt, not made", "create.drop#1", "in_doubt", "", "in_doubt", 5},
		{"without its ID", "create.drop-stored#1", "in_doubt", "exists", "unmatched", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{Faults: test.faults})
			w.crm(rows)
			w.run("import -m import.yaml leads.csv --out none -c 1 --retries 0")
			if wanted := w.exported(test.state); len(wanted) == 0 || wanted[0]["external_id"] != "crm-0" {
				t.Fatalf("%s: %q", test.state, wanted)
			}
			if test.decided != "" {
				w.write("decided.csv", "key,lead_id\nL0,"+test.decided+"\n")
				w.must(0, "checkpoint resolve decided.csv")
				if e := w.exported("created")[0]; e["key"] != "L0" || e["external_id"] != "crm-0" {
					t.Errorf("the export lacks the ExternalID: %v", e)
				}
			}
			made := w.creates()
			nightly := words("sync -m crm.yaml crm.csv --missing create --out run")
			w.must(test.code, append(nightly, id(t, w.must(2, nightly...), "--new-key"))...) // its key is not the import's
			for _, r := range w.results("run/results.csv") {
				if r["external_id"] == "crm-0" && r["outcome"] != test.want {
					t.Errorf("the row with the ExternalID of the lead: %v, want %s", r, test.want)
				}
			}
			if n := w.creates(); n != made {
				t.Errorf("%d more creates", n-made)
			}
			w.run("import -m import.yaml leads.csv --out none")
			w.oneEach()
			w.must(0, "checkpoint check")
		})
	}
}

const externalText = mappingText + "    crm: \"{crm}\"\n  external_id: \"{crm}\"\n"

// crm writes the file and mapping of the import, and the CRM's export of the same leads, with its own key.
func (w *world) crm(rows int) {
	w.t.Helper()
	w.write("import.yaml", externalText)
	w.write("crm.yaml", `version: 1
key: "{crm}-key"
assign: [{organization: "{org}"}]
lead: {type_key: form, type_label: Form, external_id: "{crm}", content: {name: "{name}", crm: "{crm}"}}
`)
	leads, export := "id,crm,org,name\n", "crm,org,name\n"
	for i := range rows {
		org := organizations[i%3]
		leads += fmt.Sprintf("L%d,crm-%d,%s,Person %d\n", i, i, org, i)
		export += fmt.Sprintf("crm-%d,%s,Person %d\n", i, org, i)
	}
	w.write("leads.csv", leads)
	w.write("crm.csv", export)
}

// oneEach fails the test if the service holds two leads of one row.
func (w *world) oneEach() {
	w.t.Helper()
	leads := w.made()
	seen := map[string]string{}
	for _, l := range leads {
		row := fmt.Sprint(l.Content["crm"])
		if seen[row] != "" {
			w.t.Errorf("%s is two leads: %s and %s", row, seen[row], l.ID)
		}
		seen[row] = l.ID
	}
}
