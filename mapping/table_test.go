package mapping

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/internal/testsupport/must"
)

// tableOf reads tables from this text: one row a line, with a semicolon between key and value.
func tableOf(text string) ReadTable {
	return func(name, key, value string, add func(int, string, string)) Errors {
		if name != "dealers.csv" {
			return Errors{{File: name, Text: "there is no such file", Hint: "check the name"}}
		}
		for i, line := range strings.Split(text, "\n") {
			k, v, _ := strings.Cut(line, ";")
			add(i+2, k, v)
		}
		return nil
	}
}

const dealers = "version: 1\nkey: '{id}'\ntables:\n  dealers: {file: dealers.csv, key: Name, value: ID, fold: true}\nassign: [{organization: {from: '{d}', map: dealers}}]\n"

func TestATableFileIsLookedUpWithFolding(t *testing.T) {
	m, err := Parse("dir/m.yaml", []byte(dealers), tableOf(" Auto Haus ;o-1\nMüller;o-2\nSTRASSE;o-3\nundecided;\n;"))
	must.Do(t, err)
	for text, want := range map[string]string{
		"Auto Haus": "o-1", "AUTOHAUS": "o-1", " auto  haus": "o-1", "Mu\u0308LLER": "o-2", "M\u200bÜLLER": "o-2", "Straße": "o-3", "Ｓｔｒａｓｓｅ": "o-3",
		"undecided": "", "Auto-Haus": "", "nobody": "",
	} {
		b, values := cells{"id", "1", "d", text}.bind(t, m, false)
		var rec Record
		problems := b.Map(values, Env{}, &rec)
		if rec.Organization != want || (problems == nil) != (want != "") {
			t.Errorf("%q: %q %v, want %q", text, rec.Organization, problems, want)
		}
		if want == "" && (problems[0].Word != text || problems[0].Value != "assign[1].organization") {
			t.Errorf("%q: %+v", text, problems)
		}
	}
}

func TestMistakesInATableAreReportedWithTheirPlace(t *testing.T) {
	for _, tt := range []struct{ name, file, rows, want string }{
		{"equal keys", dealers, "A b;o-1\nx;o-2\nab;o-3", "dir/dealers.csv:4: a word of the table tables.dealers is there twice, first on line 2\nhint: keep one of them"},
		{"no word", dealers, "a;o-1\n ;o-2", "dir/dealers.csv:3: a row of the table tables.dealers has no word\nhint: fill it in, or take the row out"},
		{
			"no status", "version: 1\ntables: {t: {file: dealers.csv, key: a, value: b}}\nlead: {status: {from: '{s}', map: t}}\n", "a;open\nb;won",
			"dir/dealers.csv:3: tables.t: \"won\" is not a status of the service\nhint: the statuses are open, contacted, inProgress, onHold, closedWon, closedNotInterested, closedBoughtUsed, closedBoughtOtherBrand",
		},
		{
			"no number", "version: 1\ntables: {t: {a: x}}\nlead: {content: {n: {from: '{s}', map: t, as: number}}}\n", "",
			"dir/m.yaml:2:17: tables.t.a: \"x\" is not a number as JSON writes it: 7, -0.5 or 1e3, without leading zeros",
		},
		{"no file", "version: 1\ntables: {t: {file: other.csv, key: a, value: b}}\n", "", "dir/m.yaml:2:13: tables.t: other.csv: there is no such file\nhint: check the name"},
		{
			"mistakes of the mapping come first", "version: 1\ntables: {t: {file: dealers.csv, key: a, value: b}}\nkeys: x\n", "a;b\na;c",
			"dir/m.yaml:3:1: unknown key \"keys\"\nhint: did you mean \"key\"?\ndir/dealers.csv:3: a word of the table tables.t is there twice, first on line 2\nhint: keep one of them",
		},
	} {
		_, err := Parse("dir/m.yaml", []byte(tt.file), tableOf(tt.rows))
		if err == nil {
			t.Errorf("%s was taken", tt.name)
			continue
		}
		if diff := cmp.Diff(strings.Split(tt.want, "\n"), strings.Split(err.Error(), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestATablesFileMustLieBesideTheMapping(t *testing.T) {
	for _, name := range []string{"a/b.csv", "../b.csv", `a\b.csv`, "/etc/passwd", "..", ".", "C:b.csv", "' b.csv'"} {
		_, err := Parse("m", []byte("version: 1\ntables: {t: {file: "+name+", key: a, value: b}}\n"), func(string, string, string, func(int, string, string)) Errors {
			t.Errorf("%s was read", name)
			return nil
		})
		var es Errors
		if !errors.As(err, &es) || !strings.Contains(es[0].Text, "takes the bare name of a file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
