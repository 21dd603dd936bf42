package mapping

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"leadferry/mapping/texts"
)

// failer is a testing.TB or a *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// stepOf returns the conversion of a step, whose word must be good.
func stepOf(t failer, word string) texts.Conversion {
	t.Helper()
	s, problem := readStep(word)
	if problem != nil {
		t.Fatalf("%s: %v", word, problem)
	}
	return fitting(s)
}

// fitting returns the conversion of one stage.
func fitting(s stage) texts.Conversion {
	stages := []stage{s}
	return func(text string) (string, bool) {
		got, broken := through(stages, text, nil)
		return got, broken == nil
	}
}

// unfit is what a table expects of a text that does not fit a step.
const unfit = "does not fit"

func TestStepsOfTexts(t *testing.T) {
	for in, want := range map[[2]string]string{
		{"trim", "Ann"}: "Ann", {"lower", "ANN Ärger ΣΊΣΥΦΟΣ"}: "ann ärger σίσυφοσ",
		{"upper", "ann ärger"}: "ANN ÄRGER", {"upper", "kısa i"}: "KISA I", {"title", "ann lee"}: "Ann Lee",
		{"title", "O'BRIEN"}: "O'brien", {"title", "MCDONALD"}: "Mcdonald",
		{"title", "jean-luc ÉCOLE"}: "Jean-Luc École", {"title", "ǆ"}: "ǅ", {"squeeze", "a b"}: "a b",
		{"squeeze", "a  b\t\r\nc\u00a0d\u2003\u3000e"}: "a b c d e",
		{"squeeze", "a\u00a0b"}:                        "a b", {"squeeze", "a b "}: "a b", {"squeeze", "a\u200bb"}: "a\u200bb",
		{"digits", "01234"}: "01234", {"digits", "+49 (0)30/12-34"}: "490301234", {"digits", "no"}: "",
		{"digits", "٠١٢ ३४ ５６"}: "0123456", {"digits", "x²Ⅳ½"}: "", {"truncate:3", "abc"}: "abc",
		{"truncate:3", "abcd"}: "abc", {"truncate:3", "ab cd"}: "ab", {"truncate:3", "äöüß"}: "äöü",
		{"truncate:4", "äöüß"}: "äöüß", {"truncate:1", "e\u0301e"}: "e\u0301", {"truncate:2", "👩‍👩‍👧🇩🇪🇫🇷"}: "👩‍👩‍👧🇩🇪",
		{"truncate:1000000000", "abc"}: "abc", {"split:,:1", "a, b,c"}: "a", {"split:,:2", "a, b,c"}: "b",
		{"split:,:-1", "a, b,c"}: "c", {"split:,:-3", "a, b,c"}: "a", {"split:,:4", "a, b,c"}: "",
		{"split:,:-4", "a, b,c"}: "", {"split:,:2", "a"}: "", {"split:,:-1", "a"}: "a",
		{"split:, :1", "a,b, c"}: "a,b", {"split: :2", "Ann Lee"}: "Lee", {"split:::2", "12:30"}: "30",
		{"split::::1", "a::b"}: "a", {"split:1:2", "a1b"}: "b", {"split: - :-1", "Berlin - Mitte"}: "Mitte",
		{"split:aa:1", "aaa"}: "", {"split:aa:-1", "aaa"}: "a", {"split:|:-9223372036854775808", "a|b"}: "",
		{"split:€:2", "5€ 6"}: "6",
	} {
		if got, ok := stepOf(t, in[0])(in[1]); !ok || got != want {
			t.Errorf("%s of %q: %q %t, want %q", in[0], in[1], got, ok, want)
		}
	}
}

func TestPhoneNumbersBecomeE164(t *testing.T) {
	for in, want := range map[[2]string]string{
		{"DE", "030 123456"}: "+4930123456", {"DE", "(030) 12 34-56"}: "+4930123456",
		{"DE", "030/123456"}: "+4930123456", {"DE", "+49 (0)30 123456"}: "+4930123456",
		{"DE", "0049 30 123456"}: "+4930123456", {"DE", "49 30 123456"}: "+4930123456",
		{"DE", "+1 202-555-0143"}: "+12025550143", {"DE", "(+49) 30 123456"}: "+4930123456",
		{"DE", "+4930123456"}:                         "+4930123456",
		{"DE", "\u202a+49\u00a030\u2011123456\u202c"}: "+4930123456",
		{"DE", "٠٣٠ ١٢٣٤٥٦"}:                          "+4930123456", {"DE", "＋４９３０１２３４５６"}: "+4930123456",
		{"DE", "tel:+49-30-123456"}: "+4930123456", {"US", "(202) 555-0143"}: "+12025550143",
		{"US", "1.202.555.0143"}: "+12025550143", {"US", "011 49 30 123456"}: "+4930123456",
		{"GB", "07911 123456"}: "+447911123456", {"IT", "02 1234 5678"}: "+390212345678",
		{"FR", "06 12 34 56 78"}:      "+33612345678",
		{"US", "555-1234"}:            unfit, // no area code
		{"US", "(555) 555-5555"}:      unfit, // no such area
		{"US", "0000000000"}:          unfit, //
		{"DE", "110"}:                 unfit, // cannot be called from elsewhere
		{"US", "12/31/2024"}:          unfit, //
		{"US", "202-555-0143 ext. 5"}: unfit, // E.164 has no extensions
		{"US", "202-555-0143 x5"}:     unfit, {"US", "202-555-0143#5"}: unfit, {"US", "202-555-0143~5"}: unfit,
		{"US", "1-800-FLOWERS"}:  unfit,
		{"DE", "030 123456 Max"}: unfit, // letters would be dialled
		{"DE", "n/a"}:            unfit, {"DE", "+"}: unfit, {"DE", "-"}: unfit, {"DE", "030 123456; 030 654321"}: unfit,
		{"DE", "030 123456, 030 654321"}: unfit, {"DE", "+49 30 123456 +49 30 654321"}: unfit,
		{"DE", "4.930123456E+11"}: unfit, {"DE", "4917612345678"}: unfit, // with its code, or without
		{"DE", "4930123456.0"}: unfit, // a column of decimals
		{"DE", "++4930123456"}: unfit, {"DE", "*49 30 123456"}: unfit, {"DE", strings.Repeat("0", 1000)}: unfit,
	} {
		got, ok := stepOf(t, "e164:"+in[0])(in[1])
		if ok != (want != unfit) || ok && got != want {
			t.Errorf("%s of %q: %q %t, want %q", in[0], in[1], got, ok, want)
		}
	}
}

func TestStepsThatCannotBeRead(t *testing.T) {
	for word, want := range map[string]string{
		"":              `unknown step ""` + "; known here: trim, lower, upper, title, squeeze, digits, e164:CC, date:LAYOUT, truncate:N, split:SEP:N, replace:/RE/TEXT/, extract:/RE/",
		"Lower":         `unknown step "Lower"; did you mean "lower"?`,
		"lowr:x":        `unknown step "lowr:x"; did you mean "lower"?`,
		"e146:US":       `unknown step "e146:US"; did you mean "e164"?`,
		"e146":          `unknown step "e146"; did you mean "e164"?`,
		"lower:x":       `this step takes nothing after its name; leave "x" out`,
		"e164":          `step e164 needs a country, and "" is none; write the two letters of the country, for example "e164:US"`,
		"date:":         "step date: the layout tells no whole date, or part of a time without the larger ones",
		"e164:us":       `step e164 needs a country, and "us" is none; write the two letters of the country, for example "e164:US"`,
		"e164: US":      `step e164 needs a country, and " US" is none; write the two letters of the country, for example "e164:US"`,
		"e164:UK":       `step e164 needs a country, and "UK" is none; write the two letters of the country, for example "e164:US"`,
		"e164:DEU":      `step e164 needs a country, and "DEU" is none; write the two letters of the country, for example "e164:US"`,
		"e164:49":       `step e164 needs a country, and "49" is none; write the two letters of the country, for example "e164:US"`,
		"e164:+1":       `step e164 needs a country, and "+1" is none; write the two letters of the country, for example "e164:US"`,
		"e164:Germany":  `step e164 needs a country, and "Germany" is none; write the two letters of the country, for example "e164:US"`,
		"e164:ZZ":       `step e164 needs a country, and "ZZ" is none; write the two letters of the country, for example "e164:US"`,
		"e164:800":      `step e164 needs a country, and "800" is none; write the two letters of the country, for example "e164:US"`,
		"truncate":      `step truncate needs a number of characters, at least 1; for example "truncate:80"`,
		"truncate:0":    `step truncate needs a number of characters, at least 1; for example "truncate:80"`,
		"truncate:x":    `step truncate needs a number of characters, at least 1; for example "truncate:80"`,
		"truncate:1e30": `step truncate needs a number of characters, at least 1; for example "truncate:80"`,
		"split::1":      "step split needs a separator and the number of a part: 1 is the first, -1 the last",
		"split:,":       "step split needs a separator and the number of a part: 1 is the first, -1 the last",
		"split:1":       "step split needs a separator and the number of a part: 1 is the first, -1 the last",
		"split:,:":      "step split needs a separator and the number of a part: 1 is the first, -1 the last",
		"split:,:0":     "step split needs a separator and the number of a part: 1 is the first, -1 the last",
		"split:,:x":     "step split needs a separator and the number of a part: 1 is the first, -1 the last",
	} {
		_, problem := readStep(word)
		if problem == nil {
			t.Errorf("%q was taken", word)
			continue
		}
		got := problem.Text + "; " + problem.Hint
		if got != want && !(strings.Contains("split date", word[:min(len(word), 4)]) && problem.Text == want && problem.Hint != "") {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

// someSteps are words of every kind of step.
var someSteps = []string{
	"trim", "lower", "upper", "title", "squeeze", "digits", "e164:US", "e164:DE",
	"date:DD.MM.YYYY", "date:01/02/2006 3:04 PM", "truncate:1", "truncate:5", "split: :1", "split:a:-2",
}

func TestStepsLeaveTextsTrimmed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.TrimSpace(rapid.OneOf(rapid.String(), rapid.StringMatching(`[a ,.\t\x{A0}1-3]{0,20}`)).Draw(t, "text"))
		for _, word := range someSteps {
			f := stepOf(t, word)
			got, ok := f(s)
			if got != strings.TrimSpace(got) || !ok && got != "" {
				t.Fatalf("%s of %q: %q %t", word, s, got, ok)
			}
		}
	})
}

func TestStepsThatChangeNothingTheSecondTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[aB ,\t\x{A0}1-3äÉ٣]{0,20}`), rapid.StringMatching(`[+0]?[0-9 ()/-]{5,14}`)).Draw(t, "text")
		for _, word := range []string{"trim", "lower", "upper", "squeeze", "digits", "e164:US", "e164:DE", "truncate:3"} {
			f := stepOf(t, word)
			once, ok := f(s)
			if twice, _ := f(once); ok && twice != once {
				t.Fatalf("%s of %q: %q, then %q", word, s, once, twice)
			}
		}
	})
}

func TestTitleOfLettersChangesNothingTheSecondTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[\p{Lu}\p{Ll} '.-]{0,20}`).Draw(t, "text")
		once := title(s)
		if twice := title(once); twice != once {
			t.Fatalf("%q: %q, then %q", s, once, twice)
		}
	})
}

func FuzzSteps(f *testing.F) {
	for _, word := range someSteps {
		f.Add(word, "31.12.2024 1:30 PM")
		f.Add(word, "+49 (0)30 123456")
	}
	f.Fuzz(func(t *testing.T, word, text string) {
		s, problem := readStep(word)
		if problem != nil {
			if problem.Text == "" {
				t.Fatalf("%q: a fault without text", word)
			}
			return
		}
		// Upper may make a letter longer (ŉ becomes ʼN). A byte that is no UTF-8 becomes three.
		if got, _ := fitting(s)(text); len(got) > 3*len(text)+40 {
			t.Fatalf("%q made %d bytes of %d", word, len(got), len(text))
		}
	})
}

func TestPhoneNumbersOfTheCountryInAnotherColumn(t *testing.T) {
	file := "version: 1\nkey: '{id}'\nlead: {content: {x: {from: '{phone}', apply: ['e164:{country}']}, '*': rest}}\n"
	for in, want := range map[[2]string]string{
		{"DE", "030 123456"}: "+4930123456", {"de", "030 123456"}: "+4930123456", {"DEU", "030 123456"}: "+4930123456",
		{"us", "(202) 555-0143"}: "+12025550143", {"", "+49 30 123456"}: "+4930123456", {"", "030 123456"}: unfit,
		{"Germany", "030 123456"}: unfit, {"XX", "030 123456"}: unfit, {"DE", ""}: "",
	} {
		rec, problems := cells{"id", "1", "phone", in[1], "country", in[0]}.in(t, file)
		got := ""
		if problems != nil {
			got = unfit
		} else if len(rec.Content) > 0 {
			got = rec.Content[0].Value
		}
		if got != want || len(rec.Content) > 1 {
			t.Errorf("%q in %q: %q %v, want %q", in[1], in[0], got, rec.Content, want)
		}
	}
	if _, err := Parse("m", []byte("version: 1\nkey: {from: '{phone}', apply: ['e164:{country}']}\n"), nil); err == nil {
		t.Error("a key may change with another column")
	}
}

func TestReplaceAndExtract(t *testing.T) {
	for in, want := range map[[2]string]string{
		{`replace:/[^0-9]+//`, "a1b22"}: "122", {`replace:/(\w+), (\w+)/$2 $1/`, "Lee, Ann"}: "Ann Lee",
		{`replace:/(\d+)/${1}x/`, "1 2"}: "1x 2x", {`replace:/€/$$/`, "5€"}: "5$",
		{`replace:/a\/b/c\/d/`, "a/b"}: "c/d", {`replace:/^/+/`, "49"}: "+49", {`replace:/(?i)x/y/`, "Xx"}: "yy",
		{`replace:/x/y/`, "abc"}: "abc", {`replace:/a*/-/`, "baac"}: "-b-c-",
		{`extract:/([0-9]{5})/`, "D-10115 Berlin 20095"}: "10115", {`extract:/^(?:Dr\. )?(\w+)/`, "Dr. Lee"}: "Lee",
		{`extract:/a(b)?/`, "ac"}: "", {`extract:/(\d+)/`, "none"}: "",
	} {
		if got, ok := stepOf(t, in[0])(in[1]); !ok || got != want {
			t.Errorf("%s of %.20q: %.20q %t, want %q", in[0], in[1], got, ok, want)
		}
	}
	for _, word := range []string{
		"replace:", "replace:/a/", "replace:/a/b", "replace:a/b/", "replace://b/", "replace:/a/b/c/", "replace:/(/b/", `replace:/a/$1/`, `replace:/(a)/$1x/`, "replace:/(a)/${name}/", `replace:/(a)/US$ 5/`,
		"extract:", "extract:/a/", "extract:/(a/", "extract:(a)", "extract:/(a)/i",
	} {
		if _, problem := readStep(word); problem == nil || problem.Text == "" {
			t.Errorf("%s was taken", word)
		}
	}
}
