package propose

import (
	"fmt"
	"strings"
	"testing"

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
	for _, test := range []struct {
		name, csv string
		want      []string // in the proposal
		not       string   // not in it
	}{
		{
			"an identifier", "Lead ID,Email\n7,a@x.example\n9,b@x.example\n4,c@x.example",
			[]string{"# {Lead ID} is unique and filled in all 3 rows.", `key: "{Lead ID}"`, `external_id: "{Lead ID}"`},
			"importRef",
		},
		{
			"an identifier with gaps", "id,Email\n7,a@x.example\n,a@x.example",
			[]string{"# {id} is empty in 1 of 2 rows, so it can be neither key nor external_id.", "the whole row is the key", "importRef"},
			"\nkey:",
		},
		{
			"an identifier that repeats", "id,Email\n7,a@x.example\n7,a@x.example\n8,a@x.example",
			[]string{"# {id} repeats in 1 row, so it can be neither"},
			"\nkey:",
		},
		{
			"a damaged identifier", "id,Email\n4.9E+11,a@x.example\n5.1E+11,b@x.example\n5.2E+11,c@x.example\n5.3E+11,d@x.example\n5.4E+11,e@x.example",
			[]string{"{id} was damaged by a spreadsheet (4.9E+11) in 5 rows", "# ? the file has no number of the CRM", `key: {from: "{Email}", apply: [lower]}`},
			`key: "{id}"`,
		},
		{
			"a mere counter", "Nr.,Name,Phone\n1,Ann Lee,201-555-0100\n2,Bob Ray,201-555-0101",
			[]string{"? No column is unique"},
			"\nkey:",
		},
		{
			"an identifier that counts", "ID,Name\n1,Ann Lee\n2,Bob Ray\n3,Eve Lee\n4,Joe Ray\n5,Tom Lee",
			[]string{"# ? it counts 1, 2, 3", `key: "{ID}"`},
			"",
		},
		{
			"a key of two rows", "Email,Name\na@x.example,Ann Lee\nb@x.example,Bob Ray",
			[]string{"# ? No column is unique"},
			"\nkey:",
		},
		{
			"a number of two rows", "Lead ID,Name\nL-7,Ann Lee\nL-9,Bob Ray", []string{`key: "{Lead ID}"`, "# ? by its name only: there are too few rows"}, "",
		},
		{
			"addresses that differ in case only", "Email\na@x.example\nA@x.example", []string{"the whole row is the key"}, "\nkey:",
		},
		{
			"neither names nor numbers", "Full Name,Phone\nAnn Lee,201-555-0100\nBob Ray,201-555-0101", []string{"the whole row is the key"}, "\nkey:",
		},
		{
			"a person's number beside the lead's", "id,customer_id\n7,1\n,2\n8,3\n9,4\n10,5\n11,6",
			[]string{"{id} is empty in 1 of 6 rows"},
			"\nkey:",
		},
		{
			"an organization", "dealer_id,Email\n8a1e6f91-0951-4549-a823-213cb38eb51c,a@x.example\n,b@x.example",
			[]string{"assign:\n  - organization: \"{dealer_id}\"", "# ? 1 dealer: the service's own IDs?; empty in 1 of 2 rows", "1 row without one"},
			"# assign",
		},
		{
			"numbers of another system", "organization_id,Email\n1,a@x.example\n1,b@x.example",
			[]string{"{organization_id} has the dealers' numbers in another system", "tables:\n  dealers:\n    \"1\": \"\"  # ? 2 rows\n", `- organization: {from: "{organization_id}", map: dealers}`, "0 good, 2 without organization"},
			"",
		},
		{
			"names of dealers", "Dealer,Email\nShelby Cars,a@x.example\nShelby Cars,b@x.example\nNull,c@x.example",
			[]string{"    Shelby Cars: \"\"  # ? 2 rows\n    \"Null\": \"\"  # ? 1 row\n", "an organization ID after each of the 2 words of {Dealer}"},
			"",
		},
		{
			"names of places", "Location,Email\nBonn,a@x.example\nBonn,b@x.example", []string{"says where, but not by an ID", `# assign: [{organization: {from: "{Location}", map: dealers}}]`}, "\nassign",
		},
		{
			"names of sellers", "Dealer,Email\nAnna Lee,a@x.example\nAnna Lee,b@x.example", []string{"says where, but not by an ID"}, "Anna Lee:",
		},
		{
			"one number of many digits", "Dealer ID,Email\n10482,a@x.example\n10482,b@x.example\n10611,c@x.example", []string{`# assign: [{organization: {from: "{Dealer ID}", map: dealers}}]`}, "10611",
		},
		{
			"an organization that is a company", "Organization,Email\nShelby & Sons,a@x.example\n,b@x.example", []string{`company: "{Organization}"`}, "THEIR WORD",
		},
		{
			"a status to decide", "Status,Email\nNew,a@x.example\nNew,b@x.example\nZebra,c@x.example",
			[]string{"      New: open  # 2 rows\n      # Zebra: DECIDE  # 1 row ? decide", "Decide about 1 word of {Status}", "2 good, 1 with a status that is not mapped yet"},
			"",
		},
		{
			"numbers of stages", "Status,Stage ID,Email\n0,11,a@x.example\n1,12,b@x.example",
			[]string{`# status: {from: "{Stage ID}", map: {"11": DECIDE, "12": DECIDE}}`},
			"\n  status:",
		},
		{
			"a status of people", "Status,Email\nAnna Lee,a@x.example\nMark Ray,b@x.example", nil, "Anna Lee",
		},
		{
			"a status of addresses", "Status,Email\nopen,a@x.example\nopen,b@x.example\nann@x.example,c@x.example", nil, "ann@",
		},
		{
			"a status of sentences", "Status,Email\nopen,a@x.example\nopen,b@x.example\nopen since she has moved to another town far away,c@x.example", nil, "town",
		},
		{
			"products with given names", "Full Name,Produkt\nGu Rey,Emma\nGo Ray,Max", []string{`name: "{Full Name}"`, "{Produkt}"}, "{Produkt} ",
		},
		{
			"somebody else's status", "Marital Status,Payment Status,Email\nopen,lost,a@x.example\nopen,won,b@x.example", nil, "status:",
		},
		{
			"a status by its words alone", "Spalte,Email\nnew,a@x.example\nlost,b@x.example\nnew,c@x.example\nwon,d@x.example", []string{`from: "{Spalte}"`}, "",
		},
		{
			"last name in the column Name", "Vorname,Name\nAnna,Kranz\nUwe,Falke", []string{`name: "{Vorname} {Name}"`}, "",
		},
		{
			"whole name beside the first", "Vorname,Name\nAnna,Anna Kranz\nUwe,Uwe Falke", []string{`name: "{Name}"`}, "{Vorname} {Name}",
		},
		{
			"whole name filled more often", "First Name,Last Name,Full Name\n,,Ann Lee\nBob,Ray,Bob Ray", []string{`name: "{Full Name}"`}, "",
		},
		{
			"a middle name", "first,middle name,last\nAnn,B.,Lee\nBob,,Ray", []string{`name: {from: "{first} {middle name} {last}", apply: [squeeze]}`}, "",
		},
		{
			"a column that is not what it is called", "Email,Phone\nyes,no\nno,no", []string{`"*": rest`}, "{Email}\", apply",
		},
		{
			"an address that the format refuses", "Email\nann..lee@x.example\nbob@x.example", []string{"not checked as e-mail addresses: 1 of 2 rows hold none and would be refused", "all good"}, "format: email",
		},
		{
			"damaged phone numbers", "Phone\n4.91761E+11\n030 1234567", []string{"a spreadsheet damaged 1 number"}, "",
		},
		{"international numbers", "Phone\n+49 30 123456\n+49 40 123456\n030 654321", []string{`phone: {from: "{Phone}", apply: ["e164:DE"]}`, "# ? by name and values; every number"}, ""},
		{"numbers of a country beside them", "Phone,Country\n030 123456,DE\n01 40 20 50 50,FR", []string{`apply: ["e164:{Country}"]`}, ""},
		{"numbers of nobody knows which country", "Phone\n030 123456\n201-555-0100", []string{`phone: "{Phone}"`}, "e164"},
		{
			"dates of two readings", "Created\n03/01/2026\n05/01/2026",
			[]string{`Say apply: ["date:D/M/YYYY"] or ["date:M/D/YYYY"]`, `receivedOn: "{Created}"`},
			", apply: [",
		},
		{"dates of one reading", "Created\n03/01/2026\n15/01/2026", []string{`{from: "{Created}", apply: ["date:D/M/YYYY"]}`}, "# ? day"},
		{"American dates", "Created\n3/1/2026 9:05 AM\n1/15/2026 12:00 PM", []string{`apply: ["date:M/D/YYYY h:mm A"]`}, ""},
		{"German dates", "Erstellt am\n03.01.2026 09:05\n05.01.2026 10:00", []string{`apply: ["date:D.M.YYYY HH:mm"]`}, ""},
		{"dates of both readings", "Created\n1/15/2026\n15/1/2026", []string{"not all cells are dates, or not in one form"}, ", apply: ["},
		{"dates in two ways", "Created\n15.1.2026\n16.01.2026 09:05", []string{`apply: ["date:D.M.YYYY|D.M.YYYY HH:mm"]`}, "several ways"},
		{"dates beside ISO dates", "Created\n1/15/2026\n2026-01-15", []string{`apply: ["date:M/D/YYYY"]`}, "several ways"},
		{"names of months", "Created\n3. März 2026\n15. Januar 2026", []string{`apply: ["date:D. MMMM YYYY@de"]`}, ""},
		{"dates of two countries", "Created\n1/15/2026\n15.1.2026", []string{`apply: ["date:M/D/YYYY|D.M.YYYY"]`}, "several ways"},
		{"a day first among months first", "Created\n1/15/2026 9:05\n13/3/2026", []string{`"date:M/D/YYYY HH:mm|D/M/YYYY"`, "some dates have the day first"}, ""},
		{"a stage with a question mark", "Id,Stage\n7,Lost?\n8,New\n9,Won", []string{`"Lost?": closedNotInterested  # ? 1 row, a doubtful guess`}, ""},
		{"a date that is none", "Created\n31.02.2026" + strings.Repeat("\n15.01.2026", 9), []string{"not all cells are dates"}, ", apply: ["},
		{"dates with the year first", "Created\n2026/01/05 9:05\n2026/01/15 10:00", []string{`apply: ["date:YYYY/M/D HH:mm"]`}, ""},
		{"Japanese dates", "登録日\n2026年1月5日\n2026年11月15日", []string{`receivedOn: {from: "{登録日}", apply: ["date:YYYY年M月D日"]}`}, ""},
		{"Korean dates", "등록일\n2026. 1. 5.\n2026. 11. 15.", []string{`apply: ["date:YYYY. M. D."]`}, ""},
		{"Korean dates in two ways", "등록일\n2026.01.05\n2026년 11월 15일", []string{`apply: ["date:YYYY.M.D|YYYY년 M월 D일"]`}, ""},
		{"ISO dates", "Created\n2026-01-15\n2026-01-16", []string{`receivedOn: "{Created}"`}, "date:"},
		{
			"one bad address of many", "Email\nann..lee@x.example" + strings.Repeat("\nbob@x.example", 40),
			[]string{"format: email", "1 of 41 rows would be refused: correct the file", "40 good, 1 with a mistake in a cell that has a format"},
			"no format",
		},
		{"ratings", "Rating,Email\nHot,a@x.example\nCold,b@x.example\nWarm,c@x.example\nHot,d@x.example", []string{"No column has statuses"}, "DECIDE"},
		{
			"converted", "Status,Email\nClosed - Converted,a@x.example\nOpen - Not Contacted,b@x.example",
			[]string{"Closed - Converted: closedWon  # ? 1 row, a doubtful guess", "# 1 row\n"},
			"",
		},
		{"a dealer's short numbers", "Dealer ID,Email\n10482,a@x.example\n10482,b@x.example\n10611,c@x.example\n10611,d@x.example", []string{"numbers in another system", `"10482": ""`}, "- organization: \"{Dealer ID}\""},
		{
			"people called Null", "Last Name,City\nNULL,Bonn\nLee,n/a", []string{`null: ["n/a"]`}, "\"NULL\"",
		},
		{
			"secrets by name", "Email,Password,Color\na@x.example,hunter2,red", []string{"look like secrets", "{Password}", `"*": {rest: {except: [Password]}}`}, `"*": rest`,
		},
		{
			"a secret whose name has a star", "Email,Password*,Color\na@x.example,hunter2,red", []string{`"*": {rest: {except: ["Password*"]}}`}, `Password: `,
		},
		{"a secret whose name needs quotes", "Email,Password: old,Color\na@x.example,hunter2,red", []string{`"*": {rest: {except: ["Password: old"]}}`}, ""},
		{
			"names that are taken", "first,last,name,name_2\nAnn,Lee,Ann Lee,x\nBob,Ray,Bob Ray,y", []string{`name: "{first} {last}"`, `name_2: "{name}"`}, "name: \"{name}\"",
		},
		{
			"a header that cannot be named", "Email,a}b,@x\na@x.example,1,2", []string{`cannot name these columns`, `"a}b"`}, "",
		},
		{
			"best filled", "Email,Other Email\na@x.example,a@x.example\n,b@x.example\n,c@x.example\n,d@x.example\n,e@x.example", []string{`email: {from: "{Other Email}"`}, "",
		},
		{
			"an address in one column", "Email,Address\na@x.example,1 High Street Leeds", []string{`address: "{Address}"`, `search_text: "{Address}"`}, "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := sample(test.csv)
			checkProposal(t, in)
			p := propose(t, in)
			got := string(p.YAML) + strings.Join(p.Notes, "\n")
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("lacks %q:\n%s", want, got)
				}
			}
			if test.not != "" && strings.Contains(got, test.not) {
				t.Errorf("has %q:\n%s", test.not, got)
			}
		})
	}
}

func TestSourceSaysWhatAReaderCannotKnow(t *testing.T) {
	in := sample("a@x.example,red")
	in.File, in.Delimiter, in.Encoding = "-", ';', "windows-1252"
	got := string(propose(t, in).YAML)
	want := "source:\n  format: csv  # standard input has no name that says so\n  delimiter: \";\"\n  encoding: windows-1252\n" +
		"  header: false  # ? the first line looks like a lead; give the columns better names, here and below\n  columns: [col1, col2]\n"
	if !strings.Contains(got, want) {
		t.Error(got)
	}
	in = Input{File: "/some/where/Berlin Webinar (3).xlsx", Source: mapping.Source{Format: "xlsx", Sheet: "Leads: all", Columns: []string{"Email"}}, Rows: [][]string{{"a@x.example"}}, Bad: []Unread{{"it is odd", 2, 7}}}
	if got := string(propose(t, in).YAML); !strings.Contains(got, "source:\n  sheet: \"Leads: all\"\n") || !strings.Contains(got, "2 more could not be read") ||
		!strings.Contains(got, "type_key: berlin-webinar-lead ") || strings.Contains(got, "where") {
		t.Error(got)
	}
}

func TestObjectsOfJSON(t *testing.T) {
	in := Input{
		File: "f.jsonl", Complete: true, Source: mapping.Source{Format: "jsonl", Columns: []string{"attributes", "address", "emails", "tags", "color"}},
		Rows: [][]string{
			{`{"type":"Lead","referenceId":"ref00Q0S000002QgjUUAS"}`, `{"city":"Bonn","zip":"53111","floor":"n/a","door":"7"}`, `[{"value":"a@x.example"},{"value":"b@x.example"}]`, `["a","b"]`, "n/a"},
			{`{"type":"Lead","referenceId":"ref00Q0S000002QgjVUAS"}`, `{"city":"Köln","zip":"50667","floor":"n/a"}`, `[{"value":"c@x.example"}]`, `["c"]`, "red"},
		},
	}
	checkProposal(t, in)
	got := string(propose(t, in).YAML)
	for _, want := range []string{
		`email: {from: "{emails.0.value}"`,
		`city: "{address.city}"`, `postalCode: "{address.zip}"`, `"*": rest`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %s:\n%s", want, got)
		}
	}
	if strings.Contains(got, "address.floor:") {
		t.Errorf("nothing is on any floor:\n%s", got)
	}
	if strings.Contains(got, "external_id:") {
		t.Errorf("a reference is no number of the CRM:\n%s", got)
	}
}

// A mapping that sends nothing is none: validate would refuse it.
func TestAFileWithoutAColumnForALead(t *testing.T) {
	for _, text := range []string{"Password\nhunter2\nsecret", "Password,API key\nhunter2,x\n,y", "Message\nNULL\nn/a", "Name,Name\nAnn,Lee"} {
		if p, err := Propose(sample(text)); err == nil || !strings.Contains(err.Error(), "f.csv: no column of it can go into a lead") {
			t.Errorf("%q: %v\n%s", text, err, p.YAML)
		}
	}
	if _, err := Propose(Input{Source: mapping.Source{Format: "jsonl", Columns: []string{"password"}}, Rows: [][]string{{"x"}}}); err == nil {
		t.Error("an object with a password alone is a lead")
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
