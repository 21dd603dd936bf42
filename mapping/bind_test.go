package mapping

import (
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

const people = `
version: 1
key: "{id}"
lead:
  content:
    name: "{first nam} {last}"
    street: "{addr.street}"
    phones: {from: "{phones.0}"}
`

// faults 105
func TestBindNamesEveryColumnThatTheInputLacks(t *testing.T) {
	m := parse(t, people)
	_, err := m.Bind("leads.csv", Columns{Names: []string{"id", "First Name", "last", "phones.0"}, Own: 4})
	want := "m:6:11: lead.content.name: leads.csv has no column \"first nam\"\nhint: did you mean \"First Name\"?\n" +
		"m:7:13: lead.content.street: leads.csv has no column \"addr.street\"\nhint: " + whichHeader
	if err == nil {
		t.Fatal("the columns were not missed")
	}
	same(t, "errors", want, err.Error())
}

// A mapping that was cut off uses no column, so no row breaks a rule. That must not pass for a good file.
func TestBindRefusesAMappingThatUsesNoColumn(t *testing.T) {
	const cut = "version: 1\nsource: {format: csv}\n"
	const used = cut + "lead: {content: {name: '{name}'}}\n"
	tests := map[string]struct {
		mapping string
		columns Columns
		refused bool
	}{
		"cut off":                        {cut, Columns{Names: []string{"id", "name"}, Own: 2}, true},
		"a constant alone":               {cut + "lead: {content: {source: web}}\n", Columns{Names: []string{"id"}, Own: 1}, true},
		"one column is used":             {used, Columns{Names: []string{"id", "name"}, Own: 2}, false},
		"the rest is sent":               {cut + "lead: {content: {'*': rest}}\n", Columns{Names: []string{"id"}, Own: 1}, false},
		"all are left out by name":       {cut + "lead: {content: {'*': {rest: {except: ['*']}}}}\n", Columns{Names: []string{"id"}, Own: 1}, false},
		"there are no columns":           {cut, Columns{}, false},
		"rows may bring other columns":   {cut, Columns{Names: []string{"id"}, Own: 1, Open: true}, false},
		"a part of a column is used":     {cut + "key: '{a.b}'\n", Columns{Names: []string{"a", "a.b"}, Own: 1}, false},
		"a column is asked in a skip_if": {cut + "skip_if: 'id == \"\"'\n", Columns{Names: []string{"id"}, Own: 1}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, test.mapping).Bind("leads.csv", test.columns)
			want := error(nil)
			if test.refused {
				want = Error{File: "m", Text: "no column of leads.csv goes anywhere, so nothing would tell one row from another", Hint: "is the mapping cut off? `leadferry init` writes one for a file"}
			}
			same(t, "error", want, err)
		})
	}
}

func TestErrorsKeepNamesOfSeveralLinesOnOne(t *testing.T) {
	m := parse(t, `
version: 1
key: "{E-mail\naddress}"
lead: {content: {"a\r\nlevel=ERROR": "{b}"}}
`)
	_, err := m.Bind("leads.csv", Columns{Names: []string{"E-mail\naddress"}, Own: 1})
	want := `m:4:38: lead.content."a\r\nlevel=ERROR": leads.csv has no column "b"` + "\n" + "hint: " + whichHeader
	if err == nil || err.Error() != want {
		t.Errorf("%v\ninstead of\n%s", err, want)
	}
}

func TestAnOpenInputMayLackColumns(t *testing.T) {
	b, err := parse(t, people).Bind("leads.jsonl", Columns{Names: []string{"phones", "id", "other", "phones.0"}, Own: 3, Open: true})
	must.Do(t, err)
	var rec Record
	if problems := b.Map([]string{"[1]", "7", "x", "1"}, Env{}, &rec); problems != nil {
		t.Fatalf("problems: %v", problems)
	}
	same(t, "record", Record{Key: "7", Content: []Field{{Name: "phones", Value: "1"}}}, rec)
	same(t, "unused", []string{"other"}, b.Unused)
}

// faults 93
func TestAColumnNameThatIsThereTwiceIsRefusedIfItIsUsed(t *testing.T) {
	columns := Columns{Names: []string{"id", "note", "", "id", "name", "note", ""}, Own: 7}
	for file, want := range map[string]string{
		"version: 1\nkey: '{name}'\nlead: {content: {x: '{name}'}}\n":                 "",
		"version: 1\nlead: {content: {x: '{name}'}}\n":                                "",
		"version: 1\nkey: '{id}'\nlead: {content: {x: '{name}'}}\n":                   "m:2:6: key: leads.csv has more than one column \"id\"\nhint: give each column of the file a name of its own",
		"version: 1\nlead: {content: {x: {expr: 'name + note'}}}\n":                   "m:2:21: lead.content.x: leads.csv has more than one column \"note\"\nhint: give each column of the file a name of its own",
		"version: 1\nkey: '{name}'\nskip_if: 'note == id'\nlead: {content: {a: x}}\n": "has more than one column \"id\"",
		"version: 1\nkey: '{name}'\nlead: {content: {'*': rest}}\n":                   "lead.content.*: leads.csv has more than one column with the name of column 1",
	} {
		_, err := parse(t, file).Bind("leads.csv", columns)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}

func TestUsesSaysWhichColumnsCount(t *testing.T) {
	columns := Columns{Names: []string{"id", "name", "note", "flag"}, Own: 4}
	for file, want := range map[string][]bool{
		"version: 1\nkey: '{id}'\nskip_if: 'flag == \"1\"'\nlead: {content: {x: '{name}'}}\n": {true, true, false, true},
		"version: 1\nkey: '{id}'\nlead: {content: {'*': rest}}\n":                             {true, true, true, true},
		"version: 1\nlead: {content: {x: '{name}'}}\n":                                        {true, true, true, true},
	} {
		b, err := parse(t, file).Bind("leads.csv", columns)
		must.Do(t, err)
		for i, uses := range want {
			if b.Uses[i] != uses {
				t.Errorf("%s: column %s is used: %v", file, columns.Names[i], !uses)
			}
		}
	}
}
