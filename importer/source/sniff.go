package source

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
)

// sniffBytes are looked at to know what kind of file it is.
const sniffBytes = 512

// sniffer gives a stream whose beginning is known.
type sniffer struct {
	*bufio.Reader
	head []byte // the first bytes, not yet read; fewer where the stream is shorter
}

// sniff looks at the beginning of a stream, which must be readable.
func sniff(in io.Reader) (sniffer, *OpenError) {
	// Reads longer than its buffer pass through a bufio.Reader uncopied.
	s := sniffer{Reader: bufio.NewReaderSize(in, sniffBytes)}
	var err error
	s.head, err = s.Peek(sniffBytes)
	if len(s.head) == 0 && err != nil && !errors.Is(err, io.EOF) {
		return s, unreadable(err)
	}
	return s, nil
}

// skip passes n bytes of the head.
func (s *sniffer) skip(n int) {
	// They were read already, so that nothing can go wrong.
	_, _ = s.Discard(n)
	s.head = s.head[n:]
}

// namedFormat goes by the end of the name, without that of a packed file; ""
// where it tells nothing.
func namedFormat(name string) Format {
	name = strings.ToLower(name)
	for _, packed := range []string{".gz", ".zst", ".zstd"} {
		if inner, ok := strings.CutSuffix(name, packed); ok {
			name = inner
			break
		}
	}
	switch filepath.Ext(name) {
	case ".csv":
		return CSV
	case ".tsv", ".tab":
		return TSV
	case ".jsonl", ".ndjson", ".json":
		return JSONL
	case ".xlsx", ".xlsm":
		return XLSX
	}
	return ""
}

// textFormat goes by the first line of a text.
func textFormat(line []byte) Format {
	line = bytes.TrimLeft(line, " \t\r\n")
	list, isList := bytes.CutPrefix(line, []byte("["))
	list = bytes.TrimLeft(list, " \t\r\n")
	if bytes.HasPrefix(line, []byte("{")) || isList && (len(list) == 0 || list[0] == '{') {
		return JSONL
	}
	return CSV
}
