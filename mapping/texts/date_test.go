package texts

import (
	"strings"
	"testing"
	"time"

	"github.com/go-playground/locales"
	"github.com/go-playground/locales/ar"
	"github.com/go-playground/locales/cs"
	"github.com/go-playground/locales/da"
	"github.com/go-playground/locales/de"
	"github.com/go-playground/locales/es"
	"github.com/go-playground/locales/fr"
	"github.com/go-playground/locales/it"
	"github.com/go-playground/locales/ja"
	"github.com/go-playground/locales/ko"
	"github.com/go-playground/locales/nb"
	"github.com/go-playground/locales/nl"
	"github.com/go-playground/locales/pl"
	"github.com/go-playground/locales/pt"
	"github.com/go-playground/locales/ru"
	"github.com/go-playground/locales/sv"
	"github.com/go-playground/locales/tr"
	"github.com/go-playground/locales/zh"
	"pgregory.net/rapid"
)

// byLayout returns the conversion of texts that have one of these layouts.
func byLayout(t interface{ Fatal(...any) }, layouts string) Conversion {
	do, problem := Date(layouts)
	if problem != nil {
		t.Fatal(problem.Text)
	}
	return do
}

// unfit is what a table expects of a text that does not fit.
const unfit = "does not fit"

func TestDatesBecomeISO8601(t *testing.T) {
	for in, want := range map[[2]string]string{
		{"DD.MM.YYYY", "31.12.2024"}: "2024-12-31", {"dd.mm.yyyy", "31.12.2024"}: "2024-12-31",
		{"dd.MM.yyyy", "31.12.2024"}: "2024-12-31", {"D.M.YYYY", "1.2.2024"}: "2024-02-01",
		{"D.M.YYYY", "01.12.2024"}: "2024-12-01", {"DD.MM.YYYY", "1.2.2024"}: unfit,
		{"DD.MM.YY", "31.12.68"}: "2068-12-31", {"DD.MM.YY", "31.12.69"}: "1969-12-31",
		{"M/D/YYYY", "2/29/2024"}: "2024-02-29", {"M/D/YYYY", "2/29/2023"}: unfit, {"DD.MM.YYYY", "31.02.2024"}: unfit,
		{"DD.MM.YYYY", "01.01.0000"}: unfit, {"DD.MM.YYYY", "00.01.2024"}: unfit, {"DD.MM.YYYY", "31.12.24"}: unfit,
		{"DD.MM.YYYY", "31.12.2024 10:00"}: unfit, {"DD.MM.YYYY", "soon"}: unfit,
		{"DD.MM.YYYY", "2024-12-31"}:          "2024-12-31", // a cell of a workbook that is a date
		{"DD.MM.YYYY", "2024-12-31T10:30:00"}: "2024-12-31T10:30:00",
		{"DD.MM.YYYY", "2024-12-32"}:          unfit, {"DD.MM.YYYY|unix", "2024-12-31"}: "2024-12-31",
		{"YYYYMMDD", "20241231"}: "2024-12-31", {"2006-002", "2024-366"}: "2024-12-31", {"YYYYMMD", "2024123"}: "2024-12-03",
		{"D MMM YYYY", "3 jan 2024"}: "2024-01-03", {"MMMM D, YYYY", "January 3, 2024"}: "2024-01-03",
		{"dddd, D MMMM YYYY", "Wednesday, 3 January 2024"}:                         "2024-01-03",
		{"YYYY年M月D日", "2024年1月3日"}:                                                 "2024-01-03",
		{"DD.MM.YYYY HH:mm", "31.12.2024 09:05"}:                                   "2024-12-31T09:05:00",
		{"dd.mm.yyyy hh:mm A", "31.12.2024 09:05 PM"}:                              "2024-12-31T21:05:00",
		{"DD.MM.YYYY HH:MM:SS|DD.MM.YYYY HH.MM.SS.SSS", "31.12.2024 09.05.07.500"}: "2024-12-31T09:05:07.5",
		{"yyyy-MM-dd'T'HH:mm:ss", "2024-12-31T09:05:07"}:                           "2024-12-31T09:05:07",
		{"YYYY-MM-DDTHH:mm:ss.SSSZ", "2024-12-31T09:05:07.120+0530"}:               "2024-12-31T09:05:07.12+05:30",
		{"YYYY-MM-DDTHH:mm:ssZ", "2024-12-31T09:05:07Z"}:                           "2024-12-31T09:05:07Z",
		{"YYYY-MM-DDTHH:mm:ssXXX", "2024-12-31T09:05:07+00:00"}:                    "2024-12-31T09:05:07Z",
		{"YYYY-MM-DD HH:mm:ss", "2024-12-31 09:05:07.5"}:                           "2024-12-31T09:05:07.5",
		{"M/D/YYYY h:mm A", "1/2/2024 12:00 am"}:                                   "2024-01-02T00:00:00",
		{"M/D/YYYY h:mm tt", "1/2/2024 12:00 PM"}:                                  "2024-01-02T12:00:00",
		{"YYYY-MM-DD HH:mm", "2024-12-31 24:00"}:                                   unfit, {"02.01.2006", "31.12.2024"}: "2024-12-31",
		{"2.1.2006", "1.2.2024"}: "2024-02-01", {"1/2/06", "2/1/24"}: "2024-02-01",
		{"01_02_2006", "02_01_2024"}: "2024-02-01", {"02_2006_01", "01_2024_02"}: "2024-02-01",
		{"Jan _2 2006", "Feb  1 2024"}:                                     "2024-02-01",
		{"2006-01-02T15:04:05Z07:00", "2024-12-31T09:05:07-08:00"}:         "2024-12-31T09:05:07-08:00",
		{"2006-01-02 15:04:05.000 -0700", "2024-12-31 09:05:07.000 +0100"}: "2024-12-31T09:05:07+01:00",
		{"02.01.2006 15:04 Uhr", "31.12.2024 09:05 Uhr"}:                   "2024-12-31T09:05:00",
		{"02.01.2006 15h", "31.12.2024 09h"}:                               "2024-12-31T09:00:00",
		{"DD.MM.YYYY", "2023-03-15 12:00:00"}:                              "2023-03-15T12:00:00", // a workbook's
		{"3:04pm 1/2/2006", "9:05pm 12/31/2024"}:                           "2024-12-31T21:05:00",
	} {
		got, ok := byLayout(t, in[0])(in[1])
		if ok != (want != unfit) || ok && got != want {
			t.Errorf("%s of %q: %q %t, want %q", in[0], in[1], got, ok, want)
		}
	}
}

func TestLayoutsThatCannotBeUsed(t *testing.T) {
	const whole = "the layout tells no whole date, or part of a time without the larger ones"
	for layout, want := range map[string]string{
		"DD.MM": whole, "MM.YYYY": whole,
		"YYYY":             whole,
		"DD.MM.YYYY mm:ss": whole,
		"DD.MM.YYYY hh:mm": whole,
		"DD.MM.YYYY hh":    whole,
		"DD.MM.YYYY ss":    whole,
		"DD.MM.YYYY HH ss": whole,
		"DD.MM.YYYY A":     whole,
		"DMYYYY":           whole,
		"YYYY-DDD":         `"DDD" means no part of a date`, "DD.MM.YYY": `"YYY" means no part of a date`,
		"DD.MMMMM.YYYY": `"MMMMM" means no part of a date`, "DD_MM_YYYY": `"_" means no part of a date`,
		"ISO": `"I" means no part of a date`, "DD. MM. YYYY um HH": `"u" means no part of a date`,
		" DD.MM.YYYY":               "the layout begins or ends with white space",
		"31.12.2024":                whole,
		"2024-12-31":                whole,
		"12/25/2024":                whole,
		"02.01.2007":                whole,
		"02.01.2006 15:04 MST":      "names of time zones have several meanings",
		"Janx 2 2006":               whole,
		"2.1.2006 3:04":             whole,
		strings.Repeat("D.M.Y", 30): "the layout is too long",
	} {
		_, problem := Date(layout)
		if problem == nil || problem.Text != "step date: "+want || problem.Hint == "" {
			t.Errorf("%s: %v, want %q and a hint", layout, problem, want)
		}
	}
}

// A layout reads what it has written as the same time. The format date accepts the result.
func TestDatesAreReadBackByTheirLayouts(t *testing.T) {
	layouts := map[string]string{ // in letters, in Go's form
		"DD.MM.YYYY": "02.01.2006", "D/M/YYYY": "2/1/2006", "YYYYMMDD": "20060102", "MMMM D, YYYY": "January 2, 2006",
		"DD MMM YYYY HH:mm": "02 Jan 2006 15:04", "M/D/YYYY h:mm:ss A": "1/2/2006 3:04:05 PM",
		"YYYY-MM-DDTHH:mm:ssZ": "2006-01-02T15:04:05Z07:00", "YYYYMMDDHHmmss": "20060102150405",
	}
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(-60_000_000_000, 250_000_000_000).Draw(t, "seconds")
		minutes := rapid.IntRange(-14*60, 14*60).Draw(t, "minutes from UTC")
		moment := time.Unix(seconds, 0).In(time.FixedZone("", minutes*60))
		for letters, form := range layouts {
			want := moment.Format(time.DateOnly)
			switch {
			case strings.Contains(form, "Z07"):
				want = moment.Format(time.RFC3339)
			case strings.Contains(form, "05"):
				want = moment.Format("2006-01-02T15:04:05")
			case strings.Contains(form, "04"):
				want = moment.Format("2006-01-02T15:04:00")
			}
			for _, layout := range []string{letters, form} {
				got, ok := byLayout(t, layout)(moment.Format(form))
				if !ok || got != want || !IsDate(got) {
					t.Fatalf("%s of %s: %q %t, want %s", layout, moment.Format(form), got, ok, want)
				}
			}
		}
	})
}

func TestSeveralLayoutsCountsOfSecondsOrDaysAndLanguages(t *testing.T) {
	for in, want := range map[[2]string]string{
		{"DD.MM.YYYY|YYYY-MM-DD", "31.12.2025"}:             "2025-12-31",
		{"DD.MM.YYYY|YYYY-MM-DD", "2025-12-31"}:             "2025-12-31",
		{"DD.MM.YYYY|YYYY-MM-DD HH:mm", "2025-12-31 07:05"}: "2025-12-31T07:05:00",
		{"DD.MM.YYYY|YYYY-MM-DD", "12/31/2025"}:             unfit, {"unix", "1700000000"}: "2023-11-14T22:13:20Z",
		{"unix", "1700000000.0"}: "2023-11-14T22:13:20Z", {"unix", "-1"}: "1969-12-31T23:59:59Z",
		{"unix", "1e9"}: unfit, {"unix", "9223372036854775807"}: unfit,
		{"unix_ms", "1700000000123"}: "2023-11-14T22:13:20.123Z", {"unix_ms", "-1"}: "1969-12-31T23:59:59.999Z",
		{"unix_ms", "1296000000"}: "1970-01-16T00:00:00Z", {"unix_ms", "1700000001"}: unfit, // seconds
		{"unix", "1700000000123"}: unfit,
		{"unix", "-315619200000"}: unfit, {"unix", "-2208988800"}: "1900-01-01T00:00:00Z",
		{"unix", "253402214400"}:      "9999-12-31T00:00:00Z",
		{"unix", "32503680000"}:       "3000-01-01T00:00:00Z", // never, as other systems write it
		{"unix_ms", "32503680000000"}: "3000-01-01T00:00:00Z", {"unix", "-62135596800"}: "0001-01-01T00:00:00Z",
		{"unix_ms", "-62135596800000"}: "0001-01-01T00:00:00Z",
		{"excel", "45000"}:             "2023-03-15", {"excel", "45000.75"}: "2023-03-15T18:00:00",
		{"excel", "45000.7083333333"}: "2023-03-15T17:00:00", {"excel", "1"}: unfit,
		{"excel", "60"}: unfit, // a day that never was
		{"excel", "61"}: "1900-03-01", {"excel", "2958465"}: "9999-12-31", {"excel", "2958466"}: unfit,
		{"excel", "0"}: unfit, {"excel", "0x1p10"}: unfit, {"D. MMMM YYYY@de", "5. März 2024"}: "2024-03-05",
		{"D. MMMM YYYY@de", "5. MÄRZ 2024"}: "2024-03-05", {"D. MMM YYYY@de", "5. Sept. 2024"}: "2024-09-05",
		{"D. MMM YYYY@de", "5. Okt 2024"}: "2024-10-05", {"D. MMM. YYYY@de", "5. Okt. 2024"}: "2024-10-05",
		{"D. MMMM YYYY@de", "5. March 2024"}:                  "2024-03-05", // English is always known
		{"D. MMMM YYYY@de", "5. Märzen 2024"}:                 unfit,
		{"D 'de' MMMM 'de' YYYY@es", "5 de enero de 2024"}:    "2024-01-05",
		{"D 'de' MMMM 'de' YYYY@pt", "5 de dezembro de 2024"}: "2024-12-05",
		{"D MMMM YYYY@fr", "5 août 2024"}:                     "2024-08-05", {"D MMMM YYYY@fr", "5 juillet 2024"}: "2024-07-05",
		{"D MMM YYYY@fr", "5 juil. 2024"}: "2024-07-05", {"D MMMM YYYY@ru", "5 января 2024"}: "2024-01-05",
		{"D MMMM YYYY@pl", "5 września 2024"}: "2024-09-05", {"D MMMM YYYY@tr", "5 Mayıs 2024"}: "2024-05-05",
		{"D MMMM YYYY@tr", "5 EKIM 2024"}: "2024-10-05", {"D MMMM YYYY@ar", "٥ يناير ٢٠٢٤"}: "2024-01-05",
		{"YYYY年MMMMD日@zh", "2024年十二月5日"}: "2024-12-05", {"YYYY年M月D日", "2024年12月5日"}: "2024-12-05",
		{"02 January 2006@it", "05 gennaio 2024"}:       "2024-01-05",
		{"D. MMMM YYYY@de|D MMMM YYYY", "5 March 2024"}: "2024-03-05",
	} {
		if got, ok := byLayout(t, in[0])(in[1]); ok != (want != unfit) || ok && got != want {
			t.Errorf("%s of %q: %q %t, want %q", in[0], in[1], got, ok, want)
		}
	}
	for _, layouts := range []string{
		"DD/MM/YYYY|MM/DD/YYYY", "YY-MM-DD|DD-MM-YY", "unix|unix_ms", "YYYYMMDD|unix", "unix|excel", "YYYY-MM-DD|YYYY-DD-MM", "D. MMMM YYYY@xx", "unix@de", "DD.MM.YYYY|", "|unix",
	} {
		if _, problem := Date(layouts); problem == nil || problem.Hint == "" {
			t.Errorf("%s: %v", layouts, problem)
		}
	}
}

// Whole and short names, as the library has them, are read as their month.
func TestNamesOfMonthsAreReadInAllLanguages(t *testing.T) {
	library := []locales.Translator{
		ar.New(), cs.New(), da.New(), de.New(), es.New(), fr.New(), it.New(), ja.New(), ko.New(), nb.New(), nl.New(), pl.New(),
		pt.New(), ru.New(), sv.New(), tr.New(), zh.New(),
	}
	if len(library) != len(languages()) {
		t.Errorf("%d languages, want %d", len(languages()), len(library))
	}
	for _, l := range library {
		read := byLayout(t, "D MMMM YYYY@"+l.Locale())
		for i, names := range [][]string{l.MonthsWide(), l.MonthsAbbreviated()} {
			for m, name := range names {
				want := time.Date(2024, time.Month(m+1), 5, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
				if got, ok := read("5 " + name + " 2024"); !ok || got != want {
					t.Errorf("%s, form %d: %q is %q %t, want %s", l.Locale(), i, name, got, ok, want)
				}
			}
		}
	}
}

// FuzzDate reads any text by any layouts.
func FuzzDate(f *testing.F) {
	f.Add("D. MMMM YYYY@de|unix", "5. März 2024")
	f.Add("D 'de' MMM YYYY@es|excel", "45000.5")
	f.Fuzz(func(t *testing.T, layouts, text string) {
		read, problem := Date(layouts)
		if problem != nil {
			if problem.Text == "" {
				t.Fatal("no word of what is wrong")
			}
			return
		}
		if got, fits := read(text); fits && !IsDate(got) {
			t.Fatalf("%q of %q by %s", got, text, layouts)
		}
	})
}
