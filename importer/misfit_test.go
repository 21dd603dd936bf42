package importer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

// A file that does not fit is told by name, in a few lines; of several, each is checked by itself. fault 105
func TestMisfits(t *testing.T) {
	const few = "version: 1\nkey: '{id}'\nlead: {content: {name: '{name}'}}\n"
	tests := []struct {
		name, mapping, headers string
		want                   []string
	}{
		{"one column", checkedMapping, "id,org,zip,Stage,name,email", []string{
			`m.yaml:11:11: lead.status: a.csv has no column "stage"`, `hint: did you mean "Stage"?`,
		}},
		{"several files", checkedMapping, "id,org,zip,stage,name,email|x,y,z|id,org,zip,stage,name", []string{
			`m.yaml:2:6: key: b.csv has no column "id"`, `hint: b.csv has "x", "y", "z"; a fixed text has no braces`,
			`m.yaml:4:19: assign[1].organization: b.csv has no column "org"`,
			`m.yaml:7:18: assign[2].postal_code: b.csv has no column "zip"`,
			`m.yaml:11:11: lead.status: b.csv has no column "stage"`,
			`m.yaml:12:16: lead.external_id: b.csv has no column "id"`,
			`b.csv: lacks columns that m.yaml names in 3 more places`,
			`hint: is it the right file, and is its header on this line?`,
			`m.yaml:15:12: lead.content.email: c.csv has no column "email"`,
			`hint: c.csv has "id", "org", "zip", "stage", "name"; a fixed text has no braces`,
		}},
		{"few names", few, "identity,naem", []string{
			`m.yaml:2:6: key: a.csv has no column "id"`, `hint: a.csv has "identity", "naem"; a fixed text has no braces`,
			`m.yaml:3:24: lead.content.name: a.csv has no column "name"`, `hint: did you mean "naem"?`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := prepared(t, test.mapping, Options{}, strings.Split(test.headers, "|")...)
			_, err := Run(t.Context(), o)
			if err == nil {
				t.Fatal("the file fits")
			}
			if diff := cmp.Diff(test.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The cells of a file that has no header are people's data, and no message tells them. fault 115
func TestRowsThatAreTakenForAHeaderAreNotTold(t *testing.T) {
	o := prepared(t, checkedMapping, Options{}, "ann@example.com,o-1\nbob@example.com,o-1\n", "id,b\n")
	o.LooksLikeRow = func(names []string, _ [][]string) bool { return names[0] == "ann@example.com" }
	_, err := Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "a.csv: what was taken for its header looks like a row") ||
		!strings.Contains(err.Error(), `hint: b.csv has "id", "b"`) || strings.Contains(err.Error(), "ann@") {
		t.Error(err)
	}
}

// Two cells of such a row may be equal, and a mapping that names no column lacks none then: it is not said to.
func TestARowThatIsTakenForAHeaderWithEqualNames(t *testing.T) {
	const mappingFile = "version: 1\nsource: {skip_rows: 1}\nlead: {content: {'*': rest}}\n"
	o := prepared(t, mappingFile, Options{}, "1,Ann,Ann\n2,Bob,Bob\n")
	o.LooksLikeRow = func([]string, [][]string) bool { return true }
	_, err := Run(t.Context(), o)
	if err == nil || strings.Contains(err.Error(), "Ann") || strings.Contains(err.Error(), "none of the columns") ||
		!strings.Contains(err.Error(), "a.csv: what was taken for its header looks like a row, and does not fit m.yaml\nhint: a file without a header") {
		t.Error(err)
	}
}

// The columns may stand in another sheet than the first, which the error has to say: there is no run that could.
func TestAnotherSheetIsMeant(t *testing.T) {
	book, err := filepath.Abs("source/testdata/excelize.xlsx")
	must.Do(t, err)
	o := prepared(t, "version: 1\nkey: '{id}'\nlead: {content: {name: '{nobody}'}}\n", Options{})
	o.Inputs = []*source.File{opened(t, book, source.Options{})}
	_, err = Run(t.Context(), o)
	const want = `hint: the workbook also holds the sheets "Texts": choose one with --sheet NAME`
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
