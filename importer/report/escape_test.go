package report

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"leadferry/internal/spelling"
	"leadferry/internal/testsupport/must"
)

func TestEscapeShowsWhatCannotBeSeen(t *testing.T) { // faults 118
	long := strings.Repeat("é", 499)
	tests := []struct{ name, in, want string }{
		{"plain", `C:\leads "a" <b>`, `C:\leads "a" <b>`},
		{"escape sequence", "\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"line ends", "a\r\nb\tc", `a\r\nb\tc`},
		{"C1 control", "\u009b31m", `\u009b31m`},
		{"NUL and DEL", "\x00\x7f", `\x00\x7f`},
		{"bidi marks", "a\u202eb\u2066c\u200f", `a\u202eb\u2066c\u200f`},
		{"broken UTF-8", "a\xffb\xed\xa0\x80", `a\xffb\xed\xa0\x80`},
		{"500 characters", long + "z", long + "z"},
		{"501 characters", long + "zz", long + "…"},
		{"no half escape at the cut", long[:2*497] + "\u202e", long[:2*497] + "…"},
	}
	for _, tt := range tests {
		must.Same(t, tt.want, spelling.Escape(tt.in), tt.in, tt.name)
	}
}

func TestDefuseStopsFormulas(t *testing.T) { // faults m29, 117
	for _, lead := range []string{"=", "+", "-", "@", "\t", "\r", "\n", "\x00", "＝", "＋", "－", "＠"} {
		in := lead + "1+1"
		must.Same(t, "'"+in, defuse(in), in)
		if got := Cell(in); !strings.HasPrefix(got, "'") {
			t.Errorf("Cell(%q) = %q", in, got)
		}
	}
	for _, in := range []string{"", "HTTP 422: =1", "'=1", "1+1", "é", " =1", "\xff="} {
		must.Same(t, in, defuse(in), "defuse")
	}
}

func checkSafe(t must.TB, in string) {
	t.Helper()
	got := Cell(in)
	if n := utf8.RuneCountInString(got); n > 500 {
		t.Errorf("Cell(%q) has %d characters", in, n)
	}
	for _, r := range got {
		if !unicode.IsGraphic(r) {
			t.Errorf("Cell(%q) shows %q", in, r)
		}
	}
	if !utf8.ValidString(got) || defuse(got) != got || spelling.Escape(got) != got {
		t.Errorf("Cell(%q) = %q is not safe", in, got)
	}
}

func TestNoTextFromOutsideStaysDangerous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkSafe(t, rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text"))
	})
}

func TestEscapeJSONChangesNoMeaning(t *testing.T) { // faults 118
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a\x{7f}\x{9b}\x{202e}\x{2066}\x{e0001}é"\\]*`)).Draw(t, "text")
		b, err := json.Marshal(text)
		must.Do(t, err)
		b = spelling.EscapeJSON(b)
		var back string
		if err := json.Unmarshal(b, &back); err != nil || back != text {
			t.Errorf("%q came back as %q (%v)", text, back, err)
		}
		if strings.IndexFunc(string(b), func(r rune) bool { return !unicode.IsGraphic(r) }) >= 0 {
			t.Errorf("%q holds what a terminal obeys", b)
		}
	})
}
