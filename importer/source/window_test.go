package source

import (
	"errors"
	"io"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

func TestTheWindowStaysSmall(t *testing.T) { // faults 94, 96
	const mib = 1 << 20
	huge := strings.Repeat("x", 16*mib)
	for name, test := range map[string]struct {
		format Format
		data   string
	}{
		"a line":              {CSV, "a,b\n" + huge + ",1\n2,3\n"},
		"an open quote":       {CSV, "a,b\n\"" + huge + "\n2,3\"\n"},
		"a line of JSON":      {JSONL, "{\"a\":1}\n{\"a\":\"" + huge + "\"}\n"},
		"an element":          {JSONL, "[{\"a\":\"" + huge + "\"},{\"a\":1}]"},
		"an element of lines": {JSONL, "[[" + strings.Repeat("\"x\",\n", 4*mib) + "1],{\"a\":1}]"},
		"a member":            {JSONL, "{\n\"records\":[{\"a\":1}],\"a\":\"" + huge + "\"}"},
		"white space":         {JSONL, "[" + strings.Repeat(" ", 16*mib) + "{\"a\":1}]"},
	} {
		f, err := Open("-", Options{Format: test.format, Stdin: strings.NewReader(test.data)})
		must.Do(t, err)
		for row := new(Row); err == nil; {
			err = f.Next(row)
		}
		var lost *LostError
		if !errors.Is(err, io.EOF) && !errors.As(err, &lost) {
			t.Errorf("%s: %v", name, err)
		}
		if size := cap(f.window.Text()); size > 32*mib {
			t.Errorf("%s: the window has grown to %d bytes", name, size)
		}
	}
}
