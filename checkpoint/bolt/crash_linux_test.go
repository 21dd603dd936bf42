package bolt

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"leadferry/checkpoint"
	"leadferry/internal/testsupport/must"
)

// diskOp is one system call of a worker: a write to the file, a cut, a sync, or text printed to standard output.
type diskOp struct {
	data []byte // written at offset at
	at   int64
	cut  bool // truncate to length at
	sync bool
	said string
}

var diskCall = regexp.MustCompile(`^\d+ +(\w+)\(\d+<([^>]*)>(?:, "([^"]*)", (\d+)(?:, (\d+))?|, (\d+))?\) += (\d+)`)

// recorded runs a worker on a checkpoint of 300 rows. It returns the file from before, and the worker's calls.
func recorded(t *testing.T) (base []byte, ops []diskOp) {
	t.Helper()
	var b []byte
	for try := 0; try == 0 || bytes.Contains(b, []byte("<unfinished")); try++ { // strace cut a call in two
		if try == 5 {
			t.Skip("strace writes calls in parts here")
		}
		path, trace := newPath(t), filepath.Join(t.TempDir(), "trace")
		seeded(t, path, 300).Close()
		base = read(t, path)
		underStrace(t, path, "-f", "-qq", "-y", "-xx", "-s", "100000000", "-o", trace,
			"-e", "trace=pwrite64,write,ftruncate,fdatasync,fsync")
		b = read(t, trace)
	}
	for line := range strings.Lines(string(b)) {
		if op, ok := parseCall(t, line); ok {
			ops = append(ops, op)
		}
	}
	if len(ops) < 50 {
		t.Fatalf("only %d calls recorded", len(ops))
	}
	return base, ops
}

func parseCall(t *testing.T, line string) (op diskOp, ok bool) {
	t.Helper()
	m := diskCall.FindStringSubmatch(line)
	if m == nil {
		return op, false
	}
	text := func(s string) []byte {
		b, err := hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
		must.Do(t, err)
		return b
	}
	number := func(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n }
	name := m[2]
	if strings.HasPrefix(name, `\x`) {
		name = string(text(name))
	}
	ours := filepath.Ext(name) == ".db"
	switch m[1] {
	case "write":
		op.said = string(text(m[3]))
		return op, !ours
	case "pwrite64":
		op.data, op.at = text(m[3]), number(m[5])
		if int64(len(op.data)) != number(m[4]) {
			t.Fatal("strace recorded only a part of a write")
		}
	case "ftruncate":
		op.cut, op.at = true, number(m[6])
	default:
		op.sync = true
	}
	return op, ours
}

// apply makes the call on b. keep decides for each sector of 512 bytes whether it reaches the disk.
func (op *diskOp) apply(b []byte, keep func() bool) []byte {
	if op.cut {
		if n := int(op.at); n <= len(b) {
			return b[:n]
		}
		return append(b, make([]byte, int(op.at)-len(b))...)
	}
	for from := 0; from < len(op.data); from += 512 {
		to := min(from+512, len(op.data))
		if !keep() {
			continue
		}
		if end := int(op.at) + to; end > len(b) {
			b = append(b, make([]byte, end-len(b))...)
		}
		copy(b[int(op.at)+from:], op.data[from:to])
	}
	return b
}

// afterPowerCut returns the file after a power failure before call n: synced writes are there, others may be, or torn.
func afterPowerCut(base []byte, ops []diskOp, n int, random *rand.Rand) []byte {
	synced := 0
	for i, op := range ops[:n] {
		if op.sync {
			synced = i
		}
	}
	b := bytes.Clone(base)
	for i, op := range ops[:n] {
		switch fate := random.IntN(3); {
		case op.sync || op.said != "":
		case i < synced || fate == 0:
			b = op.apply(b, func() bool { return true })
		case fate == 1 && !op.cut:
			b = op.apply(b, func() bool { return random.IntN(2) == 0 })
		}
	}
	return b
}

// faults 10, 14, 124: after a power failure at any moment, with any of the writes lost or torn that were not synced,
// the checkpoint opens and knows everything that was reported before, or it is refused with a sentence.
func TestCrashImageKnowsWhatWasReported(t *testing.T) {
	skipIfShort(t)
	base, ops := recorded(t)
	images := 300
	if *thorough {
		images = 5000
	}
	random := rand.New(rand.NewPCG(11, 12))
	refused := 0
	for i := range images {
		path := newPath(t) // an earlier image may still be mapped by its check
		n := 1 + random.IntN(len(ops))
		content(string(afterPowerCut(base, ops, n, random)))(t, path)
		said := ""
		for _, op := range ops[:n] {
			said += op.said
		}
		var why *checkpoint.OpenError
		if err := durable(t, path, said); errors.As(err, &why) {
			refused++
			t.Logf("image %d before call %d is refused: %v", i, n, err)
		} else if err != nil {
			t.Errorf("image %d before call %d: %v", i, n, err)
		}
		if t.Failed() {
			t.Fatalf("image %d before call %d; said:\n%s", i, n, said)
		}
	}
	t.Logf("%d images of %d calls, %d refused", images, len(ops), refused)
	if refused > images/100 {
		t.Error("too many refused: bbolt syncs pages before it names them, so hardly any should be")
	}
}
