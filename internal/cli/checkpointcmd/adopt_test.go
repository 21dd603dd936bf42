package checkpointcmd

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"leadferry/checkpoint"
)

// live is how many bytes are in use.
func live() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Of a run's results no more is kept than which of their rows are taken: there may be more of
// them than the memory holds.
func TestResultsAreNotHeldInMemory(t *testing.T) {
	const rows = 20_000
	var file bytes.Buffer
	fmt.Fprintln(&file, "key,outcome,lead_id")
	for i := range rows {
		fmt.Fprintf(&file, "C-%09d,created,lead-%09d\n", i, i)
	}
	in := bytes.NewReader(file.Bytes())
	before := live()
	l := &list{path: "results.csv", command: "adopt", in: in}
	best, err := l.choose()
	if err != nil {
		t.Fatal(err)
	}
	taken, most := 0, 0
	err = l.eachEntry(best, func(checkpoint.Entry, *listed) error {
		if taken++; taken%(rows/2) == 0 {
			most = max(most, live()-before)
		}
		return nil
	})
	if err != nil || taken != rows {
		t.Errorf("%d rows, %v", taken, err)
	}
	const around = 256 << 10 // buffers of who reads
	if most > 8*rows+around {
		t.Errorf("%d bytes for %d rows", most, rows)
	}
	runtime.KeepAlive(in)
}

// The last of the rows that tell most of a key is taken, wherever others of it stand.
func TestChoice(t *testing.T) {
	const file = `key,outcome,lead_id
a,in_doubt,
b,created,lead-1b
a,created,
c,rejected,
a,created,lead-1a
b,unchanged,lead-1b
a,unchanged,
d,in_doubt,lead-1d
d,created,
`
	l := &list{path: "results.csv", command: "adopt", in: bytes.NewReader([]byte(file))}
	best, err := l.choose()
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	if err := l.eachEntry(best, func(_ checkpoint.Entry, row *listed) error { got = append(got, row.number); return nil }); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != "[5 6 8]" {
		t.Errorf("rows %v", got)
	}
}
