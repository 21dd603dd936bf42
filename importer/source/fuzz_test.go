package source_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"leadferry/importer/source"
)

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n", "\xEF\xBB\xBFa;b\r\n\"1\r\n\";2\r\n", "a\n\"x\n\"y\n\"\n", "a,b\n1\r2,\x00\n\xFF,\n\n,,\n\x1A",
		"a,b\n\"1\nx\"y,2\n3,5\"\n", "a\r\n" + "0123456789012345678901234567890123456789012345678901234567890123456789\n1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, data, source.CSV) })
}

func FuzzJSONL(f *testing.F) {
	for _, seed := range []string{
		`{"a":1}`, "{\"a\":{\"b\":[1,\"\\ud83d\\ude00\"]}}\n\n{\"a\":1,\"a\":2}\n[1]\n{\"a.b\":null} x", "{\"\\ud800\":1}\n{\"a\":\"\xFF\"}\n{\"a\":[{\"b\":",
		`{"leadferry":{},"leadferry_x":1,"a":[0,{"b":2}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, data, source.JSONL) })
}

// fuzz reads anything at all and holds the reader to what it promises for it.
func fuzz(t *testing.T, data []byte, format source.Format) {
	const limit = 64
	file, err := source.Open("-", source.Options{
		Format: format, MaxRecord: limit, Stdin: bytes.NewReader(data), Paths: []string{"a.b", "a.1.b"},
	})
	if err != nil {
		return
	}
	lines := bytes.Count(data, []byte("\n")) + 1
	line, row := 0, source.Row{}
	for {
		err := file.Next(&row)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if row.Line <= line || row.Line > lines {
			t.Fatalf("line %d of %d after line %d", row.Line, lines, line)
		}
		line = row.Line
		if len(row.Cells) != len(row.Header.Names) || len(row.Raw) > limit {
			t.Fatalf("%d cells for %d names, %d bytes of raw text", len(row.Cells), len(row.Header.Names), len(row.Raw))
		}
		size := 0
		for _, cell := range row.Cells[:row.Header.Own] {
			size += len(cell)
		}
		if size > limit {
			t.Fatalf("%d bytes in cells of a record of %d", size, limit)
		}
	}
	if file.Info().Bytes != int64(len(data)) {
		t.Fatalf("%d bytes read of %d", file.Info().Bytes, len(data))
	}
}
