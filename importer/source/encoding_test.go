package source_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

// alphabets maps encodings to characters that they can write.
var alphabets = map[string]string{
	"utf-8": "aé中😀\u0085", "utf-16le": "aé中😀\u0A0A\u010A\u2C0D", "utf-16be": "aé中😀\u0A0A\u010A\u2C0D",
	"windows-1251": "aЖыЯё", "windows-1252": "aéŸ€Žœ", "windows-1253": "aΩέςώ", "windows-1255": "aאבתש", "windows-1256": "aبپگ\u200C",
	"windows-1258": "ađơưâ", "windows-874": "aกขฃ€", "iso-8859-2": "aąŽřű", "iso-8859-8-i": "aאבתש", "iso-8859-15": "aéŸ€Žœ",
	"koi8-u": "aЖієґ", "ibm866": "aЖыЯё", "macintosh": "aéŸ€œ", "shift_jis": "a表ソ能ｱあー", "euc-jp": "a表ソ能ｱあ丂",
	"gb18030": "a中文€😀ßḿ", "gbk": "a中文伟", "big5": "a功許蓋中", "euc-kr": "a한글똠",
}

func TestRandomTextInAnyEncodingIsReadBack(t *testing.T) { // faults 91
	labels := slices.Sorted(maps.Keys(alphabets))
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.SampledFrom(labels).Draw(t, "label")
		enc, err := htmlindex.Get(label)
		must.Do(t, err)
		file := table{runes: append([]rune(alphabets[label]), []rune("b \"\n\r,;")...)}
		file.drawCSV(t, ",")
		data, err := enc.NewEncoder().Bytes([]byte(file.text.String()))
		if err != nil {
			t.Fatalf("%s cannot write its alphabet: %v", label, err)
		}
		if label != "utf-8" && mayBeUTF8(data) {
			t.Skip("a row that is UTF-8 as well is a problem")
		}
		file.checkBytes(t, maybePacked(t, data), source.Options{Format: source.CSV, Encoding: label})
	})
}

// mayBeUTF8 reports whether a line that is not plain ASCII is valid UTF-8 as well.
func mayBeUTF8(data []byte) bool {
	for line := range bytes.Lines(data) {
		if utf8.Valid(line) && len(bytes.Map(ascii, line)) < len(line) {
			return true
		}
	}
	return false
}

func ascii(r rune) rune {
	if r < utf8.RuneSelf {
		return r
	}
	return -1
}

func maybePacked(t *rapid.T, data []byte) []byte {
	return packers[rapid.SampledFrom([]string{"", "gzip", "zstd"}).Draw(t, "packing")](data)
}

func TestByteOrderMarks(t *testing.T) { // faults 91
	for _, test := range []struct {
		name, data, label, want, warning string
	}{
		{"UTF-16 LE without mark", "a\x00,\x00b\x00\n\x00\xE9\x00,\x002\x00", "UTF-16", "utf-16le", ""},
		{"mark beats the option", "\xEF\xBB\xBFa,b\n\xC3\xA9,2\n", "latin1", "utf-8", "byte order mark of utf-8"},
		{"mark of the other order", "\xFE\xFF\x00a\x00,\x00b\x00\n\x00\xE9\x00,\x002\x00\n", "utf-16le", "utf-16be", "byte order mark of utf-16be"},
		{"label in capitals", "a,b\n\xE9,2\n", " Latin1 ", "windows-1252", ""},
	} {
		f := opened(t, write(t, "leads.csv", test.data), source.Options{Encoding: test.label})
		must.Same(t, "2:é|2\n", show(rowsOf(t, f)), test.name)
		must.Same(t, test.want, f.Info().Encoding, "encoding", test.name)
		if text := strings.Join(f.Warnings(), "\n"); !strings.Contains(text, test.warning) || test.warning == "" && text != "" {
			t.Errorf("%v: warnings %q, want %q", test.name, text, test.warning)
		}
	}
}

func TestWhatCannotBeDecodedIsAProblemOfItsRow(t *testing.T) { // faults 91
	for _, test := range []struct {
		label, bad string // bytes inside a cell
		at         int    // its character that cannot be decoded
	}{
		{"utf-8", "x\xE9", 1},
		{"windows-1252", "x\x81", 1},
		{"windows-1252", "\xE9\x9D", 1},
		{"iso-8859-2", "\xE1\x85", 1},
		{"shift_jis", "\x82\xA0\xFF", 1},
		{"shift_jis", "\x82\xA0\x81", 1}, // half a character before the comma
		{"euc-jp", "\xA4\xA2\xA4", 1},
		{"euc-kr", "\xB0\xA1\xC9\xA1", 1},
		{"big5", "\xA4\xA4\x81\x40", 1},
		{"gbk", "\xD6\xD0\xFF", 1},
		{"gb18030", "\xD6\xD0\x81\x30\x81", 1},
		{"utf-16le", "\x61\x00\x00\xD8", 1},
		{"utf-16le", "\x00\xDC\x61\x00", 0},
		{"utf-16be", "\xD8\x00\x00\x61", 0},
	} {
		what := fmt.Sprintf("%s %q", test.label, test.bad)
		enc, err := htmlindex.Get(test.label)
		must.Do(t, err)
		before, _ := enc.NewEncoder().String("a,b\n1,2\n")
		after, _ := enc.NewEncoder().String(",y\n3,4\n")
		data := before + test.bad + after
		for _, in := range []io.Reader{strings.NewReader(data), iotest.OneByteReader(strings.NewReader(data))} {
			f := opened(t, "-", source.Options{Format: source.CSV, Encoding: test.label, Stdin: in})
			rows := rowsOf(t, f)
			must.Same(t, "2:1|2\n3!encoding\n4:3|4\n", show(rows), what)
			cut := readAll(t, before+test.bad, source.Options{Format: source.CSV, Encoding: test.label})
			must.Same(t, "2:1|2\n3!encoding\n", show(cut), what, "cut by the end of the file")
			want := fmt.Sprintf("line 3, character %d ", test.at+1)
			if text := rows[1].Problem.String(); !strings.Contains(text, want) || !strings.Contains(text, "--encoding") {
				t.Errorf("%s: want %q and the flag: %s", what, want, text)
			}
		}
	}
}

// Decoders write U+FFFD for bytes without a meaning, here or before the file was written. faults 91
func TestTheReplacementCharacterIsNotText(t *testing.T) {
	for label, data := range map[string]string{
		"utf-8":    "a\n\xEF\xBF\xBD\n",
		"utf-16le": "a\x00\n\x00\xFD\xFF\n\x00",
		"utf-16be": "\x00a\x00\n\xFF\xFD\x00\n",
		"gb18030":  "a\n\x84\x31\xA4\x37\n",
	} {
		must.Same(t, "2!encoding\n", show(readAll(t, data, source.Options{Format: source.CSV, Encoding: label})), label)
	}
}

func TestADamagedCharacterSwallowsNoDelimiterOrLineEnd(t *testing.T) { // faults 91
	for _, label := range []string{"shift_jis", "euc-jp", "euc-kr", "big5", "gbk", "gb18030", "windows-1252"} {
		for lead := 0x80; lead < 0x100; lead++ {
			for _, tail := range []string{"", "\xA1", "\x81", "0", "1\x81"} {
				data := "a,b\nx" + string([]byte{byte(lead)}) + tail + ",1\n\"" + string([]byte{byte(lead)}) + tail + "\",2\n" + string([]byte{byte(lead)}) + tail + "\n3,4\n"
				rows := readAll(t, data, source.Options{Format: source.CSV, Encoding: label})
				if len(rows) < 3 || show(rows[len(rows)-1:]) != "5:3|4\n" { // a lead byte may be white space
					t.Fatalf("%s %02X %q: %s", label, lead, tail, show(rows))
				}
				for i, r := range rows[:2] {
					if r.Problem == nil && r.Cells[1] != fmt.Sprint(i+1) {
						t.Fatalf("%s %02X %q: %q", label, lead, tail, r.Cells)
					}
				}
			}
		}
	}
}

func TestHintsNameEncodings(t *testing.T) { // faults 91
	german := write(t, "leads.csv", "Stra\xDFe,b\n")
	openError(t, german, source.Options{}, "--encoding windows-1252")
	openError(t, german, source.Options{}, "on line 1, character 5")
	japanese := source.Options{Encoding: "shift_jis"}
	openError(t, write(t, "leads.csv", "\x81\xFF,b\n"), japanese, "not text in shift_jis on line 1, character 1")
}

// A mark in the text would hide the first column from the mapping, change the first cell, and make a JSON document
// invalid. faults 91, m26
func TestAByteOrderMarkIsNoPartOfTheText(t *testing.T) {
	headless := source.Options{NoHeader: true, Columns: []string{"id", "name"}}
	for _, test := range []struct {
		name, file, text string
		options          source.Options
	}{
		{name: "header", file: "leads.csv", text: "id,name\n7,Ann\n"},
		{name: "quoted header", file: "leads.csv", text: "\"id\",\"name\"\n7,Ann\n"},
		{name: "tabs", file: "leads.tsv", text: "id\tname\n7\tAnn\n"},
		{name: "no header", file: "leads.csv", text: "7,Ann\n", options: headless},
		{name: "quoted cell", file: "leads.csv", text: "\"7\",Ann\n", options: headless},
		{name: "lines of JSON", file: "leads.jsonl", text: `{"id":"7","name":"Ann"}` + "\n"},
		{name: "list of JSON", file: "leads.json", text: `[{"id":"7","name":"Ann"}]`},
	} {
		utf16 := func(order unicode.Endianness) string {
			data, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(test.text)
			must.Do(t, err)
			return data
		}
		for label, data := range map[string]string{
			"utf-8": "\xEF\xBB\xBF" + test.text, "utf-16le": utf16(unicode.LittleEndian), "utf-16be": utf16(unicode.BigEndian),
		} {
			rows := rowsOf(t, opened(t, write(t, test.file, data), test.options))
			if len(rows) != 1 || rows[0].Problem != nil {
				t.Errorf("%v: %s: rows %s", test.name, label, show(rows))
				continue
			}
			must.Same(t, [][]string{{"id", "name"}, {"7", "Ann"}}, [][]string{rows[0].Header.Names, rows[0].Cells}, label, test.name)
		}
	}
}
