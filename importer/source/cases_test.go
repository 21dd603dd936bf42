package source_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/importer/source"
)

// faults 90, 92, 100
func TestCSVSpectrumComesThroughAsPublished(t *testing.T) {
	dir := cases(t, "csv-spectrum")
	files, err := filepath.Glob(filepath.Join(dir, "csvs", "*.csv"))
	if err != nil || len(files) < 11 {
		t.Fatalf("%d files of at least 11: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".csv")
		t.Run(name, func(t *testing.T) {
			var want, got []map[string]string
			if err := json.Unmarshal([]byte(content(t, filepath.Join(dir, "json", name+".json"))), &want); err != nil {
				t.Fatal(err)
			}
			data := content(t, file)
			if strings.HasSuffix(name, "_crlf") && !strings.Contains(data, "\r") {
				data = strings.ReplaceAll(data, "\n", "\r\n") // the copy has lost what its name and JSON say
			}
			for _, row := range readAll(t, data, source.Options{Format: source.CSV}) {
				if row.Problem != nil {
					t.Fatalf("line %d: %s", row.Line, row.Problem.Text)
				}
				cells := map[string]string{}
				for i, name := range row.Header.Names {
					cells[name] = row.Cells[i]
				}
				got = append(got, cells)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// faults 96
func TestJSONTestSuiteHarmsNoNeighbours(t *testing.T) {
	dir := cases(t, "jsontestsuite")
	files, err := filepath.Glob(filepath.Join(dir, "test_*", "*.json"))
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files of at least 100: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			data := content(t, file)
			checkSuite(t, name, strings.HasPrefix(strings.TrimSpace(data), "{"), data)
			if !strings.HasPrefix(name, "n_") || !strings.Contains(data, "\n") {
				member := `{"value":` + strings.ReplaceAll(data, "\n", " ") + "}"
				checkSuite(t, name, true, member)
			}
		})
	}
}

// checkSuite reads one case between two rows that must come through.
func checkSuite(t *testing.T, name string, object bool, data string) {
	rows := readAll(t, "{\"before\":1}\n"+data+"\n{\"after\":2}\n", source.Options{Format: source.JSONL})
	first, last := rows[0], rows[len(rows)-1]
	if show([]source.Row{first}) != "1:1\n" || first.Header.Names[0] != "before" {
		t.Errorf("the row before was harmed: %+v", first)
	}
	if line := strings.Count(data, "\n") + 3; last.Line != line || last.Problem != nil || last.Header.Names[0] != "after" {
		t.Errorf("the row on line %d was harmed: %+v", line, last)
	}
	valid := strings.HasPrefix(name, "y_") && object && name != "y_object_duplicated_key"
	either := !strings.HasPrefix(name, "y_") && !strings.HasPrefix(name, "n_")
	for _, row := range rows[1 : len(rows)-1] {
		if !either && (row.Problem == nil) != valid {
			t.Errorf("line %d of %q: %+v", row.Line, data, row.Problem)
		}
	}
}

// faults 90, 91, 93, 95
func TestFrictionlessFiles(t *testing.T) {
	dir := cases(t, "frictionless")
	for file, want := range map[string]string{
		"bom.csv":                      "2:1|english\n3:2|中国人\n",
		"[table].csv":                  "2:1|english\n3:2|中国人\n",
		"blank-rows.csv":               "2:1101|John|30\n3:1102|Julie|26\n4:||\n",
		"defective-rows.csv":           "2!columns\n3!columns\n",
		"delimiter.csv":                "2:1|english\n3:2|中国人\n",
		"latin1.csv":                   "2:1|english\n3!encoding\n",
		"leading-zeros.csv":            "2:01\n3:002\n4:00003\n",
		"table.jsonl":                  "1:1|english\n2:2|中国人\n",
		"blank-headers.csv":            "refused",
		"duplicate-headers.csv":        "refused",
		"empty.csv":                    "refused",
		"table.csv.gz":                 "refused",
		"table.xlsx":                   "refused",
		"merged-cells.xlsx":            "refused",
		"../encodings/stain/utf16.txt": "refused",
	} {
		t.Run(file, func(t *testing.T) {
			path := filepath.Join(dir, filepath.FromSlash(file))
			if want == "refused" {
				openError(t, path, source.Options{})
				return
			}
			f, err := source.Open(path, source.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, show(rowsOf(t, f))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
