package propose

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/testsupport/must"
	"leadferry/mapping"
)

// sample is an Input of CSV text without quotes: the first line is the header.
func sample(text string) Input {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	in := Input{File: "f.csv", Source: mapping.Source{Format: "csv", Columns: strings.Split(lines[0], ",")}, Complete: true}
	for _, line := range lines[1:] {
		in.Rows = append(in.Rows, strings.Split(line, ","))
	}
	return in
}

func TestDecisions(t *testing.T) {
	var cases []struct {
		Name, CSV string
		Want      []string // in the proposal
		Not       string   // must not be in it
	}
	readCases(t, "decisions.yaml", &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			in := sample(c.CSV)
			checkProposal(t, in)
			p := propose(t, in)
			got := string(p.YAML) + strings.Join(p.Notes, "\n")
			for _, want := range c.Want {
				if !strings.Contains(got, want) {
					t.Errorf("lacks %q:\n%s", want, got)
				}
			}
			if c.Not != "" && strings.Contains(got, c.Not) {
				t.Errorf("has %q:\n%s", c.Not, got)
			}
		})
	}
}

func readCases(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err == nil {
		err = yaml.Load(data, into, yaml.WithKnownFields())
	}
	must.Do(t, err)
}

func TestSourceSaysWhatAReaderCannotKnow(t *testing.T) {
	in := sample("a@x.example,red\nb@x.example,blue")
	in.File, in.Delimiter, in.Encoding = "-", ';', "windows-1252"
	got := string(propose(t, in).YAML)
	want := "source:\n  format: csv  # standard input has no name that says so\n  delimiter: \";\"\n  encoding: windows-1252\n" +
		"  header: false  # ? the first line looks like a lead; give the columns better names, here and below\n  columns: [col1, col2]\n"
	if !strings.Contains(got, want) {
		t.Error(got)
	}
	in = Input{File: "/some/where/Berlin Webinar (3).xlsx", Source: mapping.Source{Format: "xlsx", Sheet: "Leads: all", Columns: []string{"Email"}}, Rows: [][]string{{"a@x.example"}}, Unread: Unread{2, 7, "it is odd"}}
	if got := string(propose(t, in).YAML); !strings.Contains(got, "source:\n  sheet: \"Leads: all\"\n") || !strings.Contains(got, "2 more could not be read") ||
		!strings.Contains(got, "type_key: berlin-webinar-lead ") || strings.Contains(got, "where") {
		t.Error(got)
	}
}

func TestAProposalNamesColumnsThatHoldObjects(t *testing.T) {
	in := Input{
		File: "f.jsonl", Complete: true, Source: mapping.Source{Format: "jsonl", Columns: []string{"address", "tags", "color"}},
		Rows: [][]string{{`{"city":"Bonn"}`, `["a","b"]`, "n/a"}, {`{"city":"Köln"}`, `["c"]`, "red"}},
	}
	checkProposal(t, in)
	got := string(propose(t, in).YAML)
	for _, want := range []string{"hold objects or lists: {address}, {tags}. To send a member", `"*": rest  # what nothing else here uses, under its own name; now {address}, {tags}, {color}`} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %s:\n%s", want, got)
		}
	}
}

// A mapping would send nothing, and validate would refuse it.
func TestAFileWithoutAColumnForALeadGetsNoMapping(t *testing.T) {
	for _, text := range []string{"Password\nhunter2\nsecret", "Password,API key\nhunter2,x\n,y", "Message\nNULL\nn/a", "Name,Name\nAnn,Lee", "a~email\n1~x y"} {
		if p, err := Propose(sample(text)); err == nil || !strings.Contains(err.Error(), "f.csv: "+unknown) {
			t.Errorf("%q: %v\n%s", text, err, p.YAML)
		}
	}
	in := Input{Source: mapping.Source{Columns: []string{"password"}}, Rows: [][]string{{"x"}}, Warnings: []string{"odd"}}
	if _, err := Propose(in); err == nil || !strings.Contains(err.Error(), unknown+"; odd\n") {
		t.Errorf("an object with a password alone: %v", err)
	}
}

func TestAKeyWithFewFlawsSaysHowMany(t *testing.T) {
	in := Input{File: "webinar list.csv", Source: mapping.Source{Format: "csv", Columns: []string{"Lead ID", "Name"}}, Complete: true}
	for i := range 60 {
		in.Rows = append(in.Rows, []string{fmt.Sprint("L", i), "Ann Lee"})
	}
	in.Rows[7][0], in.Rows[8][0], in.Rows[9][0] = "L2", "L3", ""
	got := string(propose(t, in).YAML)
	for _, want := range []string{"in all 60 rows: rows with the key of an earlier row: 2 (they", "; rows without a key: 1 (they are invalid).", `key: "{Lead ID}"  # ? the key repeats`} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %s:\n%s", want, got)
		}
	}
	for i := range in.Rows {
		in.Rows[i][0] = fmt.Sprint(i + 1)
	}
	if got := string(propose(t, in).YAML); !strings.Contains(got, "\nnamespace: webinar  # ? the key counts 1, 2, 3") {
		t.Error(got)
	}
}

// If a cell of the first line begins to count the rows, the line is a lead. As a header it would be lost.
func TestAFirstLineThatCountsIsALead(t *testing.T) {
	rows := [][]string{{"18", "Bob", "Hamburg"}, {"19", "Cy", "Bonn"}}
	if !BeginsWithLead([]string{"17", "Ann", "Berlin"}, rows) {
		t.Error("the first lead is taken for a header")
	}
	for _, header := range [][]string{{"2017", "first", "town"}, {"17", "name", "city"}, {"no", "who", "where"}} {
		if BeginsWithLead(header, rows) {
			t.Errorf("%q is taken for a lead", header)
		}
	}
}
