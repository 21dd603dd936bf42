package mapping

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"leadferry/mapping/texts"
)

// formatOf returns the check of a format, whose word must be good.
func formatOf(t testing.TB, word string) func(string) bool {
	t.Helper()
	format, problem := readFormat(word)
	if problem != nil {
		t.Fatalf("%s: %v", word, problem)
	}
	return func(s string) bool {
		_, ok := format.do(s)
		return ok
	}
}

func TestFormats(t *testing.T) {
	for word, tests := range map[string]struct{ good, bad []string }{
		"email": {
			good: []string{"a@b.co", "jörg@müller.de", "o'neil@example.com"},
			bad:  []string{"", "a", "a@b", "Ann <a@b.co>", "a@b.co, c@d.co"},
		},
		"phone": {
			good: []string{"+49 30 123456", "+1 (202) 555-0143", "030/123456", "0049 30 123456", "00 123456789012345", "12345", "555-1234", "030 123456 x12", "202-555-0143 ext. 7", "202 555 0143 #7", "tel:+49-30-123456", "٠٣٠١٢٣٤٥٦"},
			bad:  []string{"", "1234", "00 1234", "+1 555", "+999 123456", "n/a", "call me", "030 123456 Max", "1234567890123456", "030 123456; 030 654321", "12345.0", "+", "x12", "1-800-FLOWERS", strings.Repeat("1 ", 100)},
		},
		"uuid": {
			good: []string{"0b1c2d3e-0000-4000-8000-00000000000f", "0B1C2D3E-0000-4000-8000-00000000000F", "00000000-0000-0000-0000-000000000000"},
			bad:  []string{"", "0b1c2d3e000040008000000000000001", "{0b1c2d3e-0000-4000-8000-000000000001}", "0b1c2d3e-0000-4000-8000-00000000000g", "0b1c2d3e-0000-4000-80000-0000000000001", "0b1c2d3e-0000-4000-8000-0000000000010", "0b1c2d3e_0000-4000-8000-000000000001"},
		},
		"url": {
			good: []string{"https://example.com", "http://localhost:8080/a?b=c#d", "HTTPS://EXAMPLE.COM/", "https://müller.de/ä", "http://127.0.0.1/", "http://[::1]:80/", "https://my_shop.example.com", "https://example.com./"},
			bad:  []string{"", "example.com", "www.example.com/a", "ftp://example.com", "https://", "https:///a", "https:example.com", "https://example", "https://exa mple.com", "https://example.com/a b", "https://example..com", "https://.com", "javascript:alert(1)", "https://example.com:x", "mailto:a@b.co", "https://" + strings.Repeat("a.", 2000) + "com", "https://example.com/\n"},
		},
		"date": {
			good: []string{"2024-12-31", "2024-02-29", "2024-12-31T09:05", "2024-12-31T09:05:07", "2024-12-31T09:05:07.5", "2024-12-31T09:05Z", "2024-12-31T09:05:07+05:30", "2024-12-31T23:59:59.999999999-08:00"},
			bad:  []string{"", "2023-02-29", "2024-13-01", "2024-00-01", "24-12-31", "2024-1-1", "20241231", "31.12.2024", "2024-12-31 09:05", "2024-12-31T", "2024-12-31T9:05:07", "2024-12-31T24:00", "2024-12-31T09", "2024-12-31T09:05:60", "2024-12-31Z", "2024-12-31t09:05", "2024-12-31T09:05:07+0530"},
		},
		"integer": {
			good: []string{"0", "7", "-7", "+7", "007", strings.Repeat("9", 100)},
			bad:  []string{"", "+", "-", "1.0", "1,000", "1e3", "٣", "0x1", "1 000", "--1"},
		},
		"number": {
			good: []string{"0", "-7", "+7", "007", "1.50", "-0.5", "1e3", "1.5E-10"},
			bad:  []string{"", "-", ".5", "5.", "1,5", "1.2.3", "1e", "1e+", "e3", "1e1.5", "NaN", "Infinity", "0x1", "1_000", "٣"},
		},
		`/^[0-9]{5}$/`:   {good: []string{"01234"}, bad: []string{"1234", "012345", "x01234", "01234\n"}},
		`/[0-9]{5}/`:     {good: []string{"01234", "x012345"}, bad: []string{"1234"}},
		`/(?i)^a\/b$/`:   {good: []string{"A/b"}, bad: []string{"a", "a/b/"}},
		`/^(?:ä|\pL+)$/`: {good: []string{"ä", "Ann"}, bad: []string{"1"}},
	} {
		check := formatOf(t, word)
		for _, s := range tests.good {
			if !check(s) {
				t.Errorf("%s does not take %q", word, s)
			}
		}
		for _, s := range tests.bad {
			if check(s) {
				t.Errorf("%s takes %q", word, s)
			}
		}
	}
}

// faults 107
func TestFormatsThatCannotBeRead(t *testing.T) {
	known := "; known here: email, phone, uuid, url, date, integer, number, /regular expression/"
	slashes := "a regular expression is written between slashes, with nothing after them; for example '/^[0-9]{5}$/', with the quotes; (?i) at its beginning takes capitals and small letters alike"
	syntax := "; the syntax is that of RE2: no look-ahead, no back-references"
	for word, want := range map[string]string{
		"":          `unknown format ""` + known,
		"postcode":  `unknown format "postcode"` + known,
		"e-mail":    `unknown format "e-mail"; did you mean "email"?`,
		"Integer":   `unknown format "Integer"; did you mean "integer"?`,
		"/":         slashes,
		"/abc":      slashes,
		"/a/1":      slashes,
		"//":        slashes,
		"/abc/i":    slashes,
		"/a(b/":     `the regular expression cannot be read: missing closing ) in "a(b"` + syntax,
		`/(a)\1/`:   `the regular expression cannot be read: invalid escape sequence in "\\1"` + syntax,
		"/(?=a)/":   `the regular expression cannot be read: invalid or unsupported Perl syntax in "(?="` + syntax,
		"/a{1001}/": `the regular expression cannot be read: invalid repeat count in "{1001}"` + syntax,
	} {
		if _, problem := readFormat(word); problem == nil || problem.Text+"; "+problem.Hint != want {
			t.Errorf("%.40q: %v\nwant %s", word, problem, want)
		}
	}
	formatOf(t, "/"+strings.Repeat("a", 1024)+"/")
	formatOf(t, "/^.{1,1000}$/")
}

// An integer is a number, and what the step e164 makes is a phone number.
func TestFormatsAndStepsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[+-]?[0-9]{0,3}[.e]?[+-]?[0-9]{0,3}`).Draw(t, "text")
		if texts.IsInteger(s) && !texts.IsNumber(s) {
			t.Fatalf("%q is an integer and no number", s)
		}
		phone := rapid.StringMatching(`[+0]?[0-9 ()/-]{5,14}`).Draw(t, "phone")
		if got, ok := stepOf(t, "e164:US")(phone); ok && !texts.IsPhone(got) {
			t.Fatalf("%q became %q, which is no phone number", phone, got)
		}
	})
}

func FuzzFormat(f *testing.F) {
	for _, word := range []string{"email", "phone", "uuid", "url", "date", "integer", "number", "/^a{3}/", "/(", "/a/i"} {
		for _, text := range []string{"", "+49 30 1234", "2024-12-31T09:05:07Z", "https://[::1]/", "-1.5e3", "a@b.co"} {
			f.Add(word, text)
		}
	}
	f.Fuzz(func(t *testing.T, word, text string) {
		format, problem := readFormat(word)
		switch {
		case problem == nil && format.called == "", problem != nil && problem.Text == "":
			t.Fatalf("%q: %v, called %q", word, problem, format.called)
		case problem == nil:
			format.do(text)
		}
	})
}
