package source_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

func TestCSVSpectrumComesThroughAsPublished(t *testing.T) { // faults 90, 92, 100
	dir := cases(t, "csv-spectrum")
	files, err := filepath.Glob(filepath.Join(dir, "csvs", "*.csv"))
	if err != nil || len(files) < 11 {
		t.Fatalf("%d files of at least 11: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".csv")
		var want, got []map[string]string
		must.Do(t, json.Unmarshal([]byte(content(t, filepath.Join(dir, "json", name+".json"))), &want))
		data := content(t, file)
		if strings.HasSuffix(name, "_crlf") && !strings.Contains(data, "\r") {
			data = strings.ReplaceAll(data, "\n", "\r\n") // the copy has lost what its name and JSON say
		}
		for _, row := range readAll(t, data, source.Options{Format: source.CSV}) {
			if row.Problem != nil {
				t.Fatalf("%v: line %d: %s", name, row.Line, row.Problem.String())
			}
			cells := map[string]string{}
			for i, name := range row.Header.Names {
				cells[name] = row.Cells[i]
			}
			got = append(got, cells)
		}
		must.Same(t, want, got, name)
	}
}

func TestEachFileOfTheJSONTestSuiteIsJudgedRight(t *testing.T) { // faults 96
	files, err := filepath.Glob(filepath.Join(cases(t, "jsontestsuite"), "test_*", "*.json"))
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files of at least 100: %v", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		bad := strings.HasPrefix(name, "n_")
		valid := !bad && !strings.HasPrefix(name, "i_")
		refused := strings.HasPrefix(name, "y_object_duplicated_key") || name == "y_object_escaped_null_in_key.json" || name == "y_object_empty.json"
		list := strings.HasPrefix(strings.TrimLeft(content(t, file), " \n\t"), "[")
		problems, err := readLoosely(file)
		switch {
		case valid && err != nil:
			t.Errorf("%v: valid JSON: %v", name, err)
		case valid && !list && problems > 0 && strings.HasPrefix(name, "y_object") && !refused:
			t.Errorf("%s: an object was not read", name)
		case bad && err == nil && problems == 0:
			t.Error(name, "accepted")
		}
	}
}

// readLoosely reads a file that may be invalid, and counts its rows with a problem.
func readLoosely(path string) (problems int, err error) {
	f, err := source.Open(path, source.Options{Format: source.JSONL})
	if err != nil {
		return 0, err
	}
	rows, err := rowsUntil(f)
	for _, row := range rows {
		if row.Problem != nil {
			problems++
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return problems, err
}

func TestFrictionlessFiles(t *testing.T) { // faults 90, 91, 93, 95
	dir := cases(t, "frictionless")
	for file, want := range map[string]string{
		"latin1.csv":                    "2:1|english\n3!encoding\n",
		"table.csv.gz":                  "2:1|english\n3:2|中国人\n",
		"escaping.csv":                  "2:1| \"Test line 1\"\n3:2| \"Test \"\" line 2\"\n4:3| \"Test \\\" line 3\"\n",
		"issue-825.csv":                 "2:Galleria d'Arte moderna e mostre temporanee|23.824|17.518\n3:Museo Pitrè|in restauro|in restauro\n",
		"duplicate-headers.csv":         "2:1101|John|0|30|001101\n3:1102|Julie|0|26|001102\n",
		"../encodings/stain/utf8.txt":   "2:premie\u0300re is slightly different\n3:Кириллица is Cyrillic\n4:𐐀 am Deseret\n",
		"../encodings/stain/utf16.txt":  "2:premie\u0300re is slightly different\n3:Кириллица is Cyrillic\n4:𐐀 am Deseret\n",
		"../encodings/stain/latin1.txt": "refused",

		"../encodings/papaparse/utf-8-bom-sample.csv": "2:X|Y|Z\n",
		"../papaparse/malformed.tsv":                  "2:1V4|-72.02|44.42|13|-5|0.01|-99|-99\n3!columns\n4:MVL|-72.62|44.54|11|-7|0.00|-99|-99\n5:MPV|-72.56|44.20|12|-4|0.00|-99|-99\n6!columns\n7:PBG|-73.47|44.65|15|-12|0.00|-99|-99\n8:RUT|-72.95|43.53|18|-2|-99|-99|-99\nlost",
	} {
		path := filepath.Join(dir, filepath.FromSlash(file))
		if want == "refused" {
			openError(t, path, source.Options{}, "")
			continue
		}
		f := opened(t, path, source.Options{})
		if before, ok := strings.CutSuffix(want, "lost"); ok {
			rows, err := rowsUntil(f)
			if diff := cmp.Diff(before, show(rows)); diff != "" || errors.Is(err, io.EOF) {
				t.Error(file, err, diff)
			}
			continue
		}
		must.Same(t, want, show(rowsOf(t, f)), file)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must.Do(t, err)
	return string(data)
}
