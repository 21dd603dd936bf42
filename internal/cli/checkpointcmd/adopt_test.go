package checkpointcmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/checkpoint"
	"leadferry/internal/testsupport/must"
)

// What adopt makes of each outcome in results. A row without its turn names a lead, but not whether it is linked.
func TestRowsOfResultsBecomeEntries(t *testing.T) {
	const file = `key,outcome,lead_id
a,in_doubt,
b,created,lead-1b
c,rejected,
d,unchanged,
e,partial,lead-1e
f,pending,lead-1f
g,skipped,lead-1g
h,failed,
i,invalid,lead-1i
,invalid,
j,partial,
`
	at := filepath.Join(t.TempDir(), "results.csv")
	read := func() (got string) {
		l := &list{path: at, command: "adopt", in: bytes.NewReader([]byte(file))}
		for e, err := range (&lists{all: []*list{l}}).entries {
			must.Do(t, err)
			got += fmt.Sprint(e.Key, " ", e.State, " ", e.Reason, ";")
		}
		return got
	}
	const sync = "a in_doubt ;b created ;d created found;e partial ;f unknown found;g unknown found;i created found;j created ;"
	if got := read(); got != sync {
		t.Error(got)
	}
	// An import has each lead under its row's key. While it goes on, whole results are of an earlier run.
	for open, want := range map[bool]string{false: strings.ReplaceAll(sync, "found", ""), true: sync} {
		witness := fmt.Appendf(nil, `{"commits":1,"open":%t,"ledger":"l","command":"import"}`, open)
		must.Do(t, os.WriteFile(filepath.Join(filepath.Dir(at), checkpoint.RunFile), witness, 0o600))
		if got := read(); got != want {
			t.Error(open, got)
		}
	}
	// A run still writes to the list that is read: its last row is not whole yet.
	l := &list{path: at + ".partial", command: "adopt"}
	must.Do(t, os.WriteFile(l.path, []byte(file[:50]), 0o600))
	must.Do(t, errors.Join(l.openFile(nil), l.detect(), os.WriteFile(l.path, []byte(file[:60]), 0o600)))
	for _, err := range l.each {
		must.Do(t, err)
	}
	if l.rows != 2 {
		t.Errorf("%d rows", l.rows)
	}
}
