package checkpointcmd

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

// live is how many bytes are in use.
func live() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// atEnd looks at how much memory is in use when all was read.
type atEnd struct {
	*bytes.Reader
	live int
}

func (r *atEnd) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err == io.EOF {
		r.live = live()
	}
	return n, err
}

// Of a run's results little is kept while they are compared, and then no more than which of their rows are taken: there
// may be more of them than the memory holds.
func TestResultsAreNotHeldInMemory(t *testing.T) {
	const rows, around = 50_000, 256 << 10 // buffers of who reads
	var file bytes.Buffer
	fmt.Fprintln(&file, "key,outcome,lead_id")
	for i := range rows {
		fmt.Fprintf(&file, "C-%09d,created,lead-%09d\n", i, i)
	}
	in := &atEnd{Reader: bytes.NewReader(file.Bytes())}
	before := live()
	of := lists{all: []*list{{path: "results.csv", command: "adopt", in: in}}}
	must.Do(t, of.chooseRows())
	if each := (in.live - before) / rows; each > 160 {
		t.Errorf("%d bytes a row are kept to compare them", each)
	}
	taken := 0
	for _, err := range of.entries {
		must.Do(t, err)
		taken++
	}
	if taken != rows || in.live-before > 8*rows+around {
		t.Errorf("%d of %d rows, %d bytes", taken, rows, in.live-before)
	}
}

// A key with two leads refuses a run's results, at the first row that shows it.
func TestChoiceOfTwoLeads(t *testing.T) {
	const file = "key,outcome,lead_id\na,created,lead-1a\nb,created,lead-1b\nc,created,lead-1c\na,created,\nc,created,lead-1c\nb,created,lead-2b\na,created,lead-2a\nc,created,lead-2c\n"
	l := &list{path: "results.csv", command: "adopt", in: bytes.NewReader([]byte(file))}
	if err := (&lists{all: []*list{l}}).chooseRows(); err == nil || !strings.Contains(err.Error(), "results.csv:7 (row 6 of the file): its key has another lead ID in row 2 of results.csv;") {
		t.Error(err)
	}
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
	of := lists{all: []*list{l}}
	must.Do(t, of.chooseRows())
	var got []int
	for _, err := range of.entries {
		must.Do(t, err)
		got = append(got, of.row.number)
	}
	if fmt.Sprint(got) != "[5 6 8]" {
		t.Errorf("rows %v", got)
	}
}
