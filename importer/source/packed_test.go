package source_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

// packers pack data by the name of the packing; "" leaves it.
var packers = map[string]func([]byte) []byte{
	"": bytes.Clone,
	"gzip": func(data []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(data)
		if err := errors.Join(err, z.Close()); err != nil {
			panic(err)
		}
		return b.Bytes()
	},
	"zstd": func(data []byte) []byte { return zstdWindow(data, 1<<20) },
}

func zstdWindow(data []byte, window int) []byte {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithWindowSize(window), zstd.WithSingleSegment(false), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	_, err = z.Write(data)
	if err := errors.Join(err, z.Close()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// leads returns a table of n rows that packs badly, and its rows as show writes them.
func leads(n int) (data, rows string) {
	var a, b strings.Builder
	a.WriteString("id,hash\n")
	for i := range n {
		sum := sha256.Sum256(fmt.Append(nil, i))
		fmt.Fprintf(&a, "%d,%x\n", i, sum)
		fmt.Fprintf(&b, "%d:%d|%x\n", i+2, i, sum)
	}
	return a.String(), b.String()
}

func TestPackedFilesAreUnpacked(t *testing.T) { // faults 95
	data, want := leads(5000)
	half := strings.Index(data, "2500,") + 1 // in the middle of a row
	gz, zst := packers["gzip"], packers["zstd"]
	skipped := []byte("\x50\x2A\x4D\x18\x03\x00\x00\x00abc")
	for _, test := range []struct {
		name string
		data []byte
	}{
		{"leads.csv.gz", gz([]byte(data))},
		{"leads.csv.zst", zst([]byte(data))},
		{"leads.csv", gz([]byte(data))},
		{"leads", zst([]byte(data))},
		{"several members.csv.gz", bytes.Join([][]byte{gz([]byte(data[:half])), gz(nil), gz([]byte(data[half:]))}, nil)},
		{"several frames.csv.zst", bytes.Join([][]byte{skipped, zst([]byte(data[:half])), skipped, zst([]byte(data[half:]))}, nil)},
	} {
		f := opened(t, write(t, test.name, string(test.data)), source.Options{})
		must.Same(t, want, show(rowsOf(t, f)), "rows", test.name)
		sum := sha256.Sum256(test.data)
		info := f.Info()
		disk := []any{int64(len(test.data)), hex.EncodeToString(sum[:]), "csv"}
		must.Same(t, disk, []any{info.Bytes, info.SHA256, info.Format}, test.name)
		must.Same(t, want, show(readAll(t, string(test.data), source.Options{Format: source.CSV})), "of standard input", test.name)
	}
}

func TestDamagedPackedFilesAreLost(t *testing.T) { // faults 95
	data, want := leads(20_000)
	for kind, pack := range packers {
		if kind == "" {
			continue
		}
		whole := pack([]byte(data))
		damaged := bytes.Clone(whole)
		damaged[len(damaged)-3] ^= 0x20 // the checksum of both kinds
		for name, test := range map[string]struct {
			packed []byte
			text   string
		}{
			"cut in the middle":   {whole[:len(whole)/2], "cut"},
			"cut before the end":  {whole[:len(whole)-1], "cut"},
			"cut in another one":  {slices.Concat(whole, whole[:3]), "cut"},
			"wrong checksum":      {damaged, "damaged"},
			"text behind the end": {append(bytes.Clone(whole), "more than that"...), "something that is not packed follows its " + kind + " data"},
		} {
			f := opened(t, "-", source.Options{Format: source.CSV, Stdin: bytes.NewReader(test.packed)})
			rows, err := rowsUntil(f)
			var lost *source.LostError
			if !errors.As(err, &lost) || lost.Line != len(rows)+2 || !strings.Contains(lost.Text, kind+" data") || !strings.Contains(lost.Text, test.text) {
				t.Errorf("%v: not lost behind row %d: %v", kind+" "+name, len(rows), err)
			}
			if len(rows) == 0 || !strings.HasPrefix(want, show(rows)) {
				t.Error(kind+" "+name, "the rows before are others")
			}
			must.Same(t, "", f.Info().SHA256, "a sum of half a file", kind+" "+name)
			first, err := source.Open(write(t, "leads.csv", string(test.packed)), source.Options{Proven: true})
			if refused := err != nil && strings.Contains(err.Error(), kind+" data are damaged"); refused != (test.text == "damaged") || (err == nil) == refused {
				t.Errorf("%v: with its checksums first: %v", kind+" "+name, err)
			}
			if err == nil {
				first.Close()
			}
		}
	}
}

func TestPackedFilesThatAreRefused(t *testing.T) { // faults 95
	table := []byte("a,b\n1,2\n")
	gz, zst := packers["gzip"], packers["zstd"]
	random, _ := leads(10)
	for _, test := range []struct {
		name, want string
		data       []byte
	}{
		{"gzip in gzip", "not in a format that is read here", gz(gz(table))},
		{"gzip in zstd", "not in a format that is read here", zst(gz(table))},
		{"zstd in gzip", "not in a format that is read here", gz(zst(table))},
		{"archive in gzip", "workbook or another ZIP archive", gz([]byte("PK\x03\x04"))},
		{"PDF in zstd", "PDF", zst([]byte("%PDF-1.4"))},
		{"nothing in gzip", "empty", gz(nil)},
		{"a cut header", "gzip data end too early", gz([]byte(random))[:12]},
		{"a large window of one segment", "zstd window of more than 8 MiB", []byte("\x28\xB5\x2F\xFD\xA0\x00\x00\x00\x01\x01\x00\x00")},
		{"large window", "zstd window of more than 8 MiB", zstdWindow([]byte(strings.Repeat(random, 30_000)), 16<<20)},
		{"blanks without end", "unpacks to more than 100 times", bytes.Repeat(zst(bytes.Repeat([]byte(strings.Repeat(" ", 1023)+"\n"), 1<<10)), 66)},
	} {
		openError(t, write(t, "leads.csv.gz", string(test.data)), source.Options{}, test.want, test.name)
	}
}

func TestPackedFilesThatGrowTooMuchAreLost(t *testing.T) { // faults 94, 95
	row := "1," + strings.Repeat("x", 1022-3) + "\n"
	for _, test := range []struct {
		name, line string
		mib        int
		lost       bool
	}{
		{"one row many times", row, 62, false},
		{"one row without end", row, 200, true},
		{"a cell without end", "x", 100, true},
	} {
		for _, kind := range []string{"gzip", "zstd"} {
			mib := packers[kind](bytes.Repeat([]byte(test.line), 1<<20/len(test.line)))
			data := append(packers[kind]([]byte("a,b\n")), bytes.Repeat(mib, test.mib)...)
			_, err := rowsUntil(opened(t, "-", source.Options{Format: source.CSV, Stdin: bytes.NewReader(data)}))
			var lost *source.LostError
			if errors.As(err, &lost) != test.lost || !test.lost && !errors.Is(err, io.EOF) {
				t.Error(test.name+" "+kind, err)
			}
		}
	}
}

func TestAReadErrorIsNotReportedAsDamage(t *testing.T) {
	broken := errors.New("broken")
	data, _ := leads(5000)
	for kind, pack := range packers {
		for _, label := range []string{"utf-8", "windows-1252"} {
			whole := pack([]byte(data))
			in := io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), iotest.ErrReader(broken))
			rows, err := rowsUntil(opened(t, "-", source.Options{Format: source.CSV, Encoding: label, Stdin: in}))
			var lost *source.LostError
			if !errors.As(err, &lost) || !errors.Is(err, broken) || strings.Contains(lost.Text, "data") || len(rows) == 0 {
				t.Errorf("%q %s: %v", kind, label, err)
			}
		}
	}
}
