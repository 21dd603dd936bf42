package texts

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

func TestEmailAddresses(t *testing.T) {
	for s, want := range map[string]bool{
		"a@b.co": true, "a.b+c@x-y.example.org": true, "jörg@müller.de": true, "o'neil@a.com": true, "a@b.c1": true,
		"": false, "a": false, "@b.co": false, "a@": false, "a@b": false, "a@b@c.de": false, "a b@c.de": false, "a@b..c": false,
		".a@b.co": false, "a.@b.co": false, "a@-b.co": false, "a@b-.co": false, "a@1.2.3.4": false, "A <a@b.co>": false,
		"a@b.co,c@d.ef": false, "a@b.co\n": false, "a\u2026b@c.de": false, "mailto:a@b.co": false, "a@b.co.": false, "a\x00@b.co": false, "a@b_c.de": false,
		strings.Repeat("a", 65) + "@b.co": false, "a@" + strings.Repeat("b", 64) + ".co": false, "a@" + strings.Repeat("bbb.", 64) + "co": false,
	} {
		if got := IsEmail(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

// Unicode says of some digits which ASCII digit they are. All others must come in blocks of ten, from 0 to 9.
func TestDigitsOfAllScriptsBecomeASCII(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		d := ASCIIDigit(r)
		if (d >= 0) != unicode.IsDigit(r) || d >= 0 && (d < '0' || d > '9') {
			t.Fatalf("%U became %q", r, d)
		}
		if d < 0 {
			continue
		}
		if plain := norm.NFKC.String(string(r)); plain[0] < 0x80 && plain != string(d) {
			t.Errorf("%U became %c, want %s", r, d, plain)
		}
		if next := ASCIIDigit(r + 1); d < '9' && next != d+1 || d == '9' && next > '0' {
			t.Errorf("after %U, %c, comes %c", r, d, next)
		}
	}
}
