package propose

import (
	"encoding/csv"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
	"leadferry/mapping"
)

var update = flag.Bool("update", false, "write the golden files anew")

// propose returns the proposal for an input that must get one.
func propose(t failer, in Input) Proposal {
	p, err := Propose(in)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

// proposeAny is propose, but ok is false if no column is known.
func proposeAny(t failer, in Input) (p Proposal, ok bool) {
	p, err := Propose(in)
	if e, told := errors.AsType[mapping.Error](err); told && strings.HasPrefix(e.Text, unknown) {
		return p, false
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p, true
}

// readTable reads a file of testdata as the command would sample it.
func readTable(t *testing.T, path string) Input {
	t.Helper()
	data, err := os.ReadFile(path)
	must.Do(t, err)
	in := Input{File: filepath.Base(path), Source: mapping.Source{Format: strings.TrimPrefix(filepath.Ext(path), ".")}, Complete: true}
	r := csv.NewReader(strings.NewReader(string(data)))
	switch first, _, _ := strings.Cut(string(data), "\n"); {
	case in.Format == "tsv":
		r.Comma = '\t'
	case strings.Count(first, ";") > strings.Count(first, ","):
		r.Comma = ';'
	}
	records, err := r.ReadAll()
	must.Do(t, err)
	in.Columns, in.Rows = records[0], records[1:]
	return in
}

func TestExportsOfManySystems(t *testing.T) {
	files, err := filepath.Glob("testdata/*.[ct]sv")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			in := readTable(t, file)
			checkProposal(t, in)
			p := propose(t, in)
			got := string(p.YAML) + "--- notes\n" + strings.Join(p.Notes, "\n") + "\n"
			golden := strings.TrimSuffix(file, filepath.Ext(file)) + ".golden"
			if *update {
				must.Do(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			must.Do(t, err)
			must.Same(t, string(want), got)
		})
	}
}
