package checkpointcmd

import (
	"bytes"
	"fmt"
	"testing"

	"leadferry/internal/testsupport/must"
)

// What rows of a run's results tell of a lead. One that did not have its turn names it, and does not tell whether it is
// still to be linked.
func TestRowsOfResults(t *testing.T) {
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
	l := &list{path: "results.csv", command: "adopt", in: bytes.NewReader([]byte(file))}
	got := ""
	for e, err := range (&lists{all: []*list{l}}).entries {
		must.Do(t, err)
		got += fmt.Sprint(e.Key, " ", e.State, ";")
	}
	if got != "a in_doubt;b created;d created;e partial;f unknown;g unknown;i created;j created;" {
		t.Error(got)
	}
}
