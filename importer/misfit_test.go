package importer

import (
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

const notItsHeader = "hint: is it the right file (of a workbook: the right --sheet), with this --delimiter, and is its first line " +
	"the header? The mapping's source skips lines above it (skip_rows: 1), or names the columns of a file without " +
	"a header (header: false, columns: [...])"

// A file that does not fit is refused in a few lines. Of several files, each is checked on its own. fault 105
func TestFilesThatDoNotFitTheMappingAreNamed(t *testing.T) {
	const few = "version: 1\nkey: '{id}'\nlead: {content: {name: '{name}'}}\n"
	tests := []struct {
		name, mapping, headers string
		want                   []string
	}{
		{"one column", checkedMapping, "id,org,zip,Stage,name,email", []string{
			`m.yaml:11:11: lead.status: a.csv has no column "stage"`, `hint: did you mean "Stage"?`,
		}},
		{"several files", checkedMapping, "id,org,zip,stage,name,email|x,y,z|id,org,zip,stage,name", []string{
			`m.yaml:2:6: key: b.csv has no column "id"`,
			`m.yaml:4:19: assign[1].organization: b.csv has no column "org"`,
			`m.yaml:7:18: assign[2].postal_code: b.csv has no column "zip"`,
			`m.yaml:11:11: lead.status: b.csv has no column "stage"`,
			`m.yaml:12:16: lead.external_id: b.csv has no column "id"`,
			`b.csv: it does not fit 3 more places of m.yaml`, notItsHeader,
			`m.yaml:15:12: lead.content.email: c.csv has no column "email"`, notItsHeader,
		}},
		{"few names", few, "identity,naem", []string{
			`m.yaml:2:6: key: a.csv has no column "id"`,
			`m.yaml:3:24: lead.content.name: a.csv has no column "name"`, `hint: did you mean "naem"?`, notItsHeader,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := prepared(t, test.mapping, Options{}, strings.Split(test.headers, "|")...)
			_, err := Run(t.Context(), o)
			if err == nil {
				t.Fatal("the file fits")
			}
			must.Same(t, test.want, strings.Split(err.Error(), "\n"))
		})
	}
}

// The first line of a file without a header is people's data. fault 115
func TestNoMessageRepeatsARowThatIsTakenForAHeader(t *testing.T) {
	const rest = "version: 1\nlead: {content: {'*': rest}}\n"
	for mapping, want := range map[string]string{
		checkedMapping: notItsHeader, rest: "a.csv has more than one column with the name of column 1\n",
	} {
		o := prepared(t, mapping, Options{}, "ann@example.com,o-1,ann@example.com\nbob@example.com,o-1,7\n")
		_, err := Run(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ann@") {
			t.Error(err)
		}
	}
}
