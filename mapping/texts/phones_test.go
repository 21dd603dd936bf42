package texts

import (
	"encoding/csv"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"
	"pgregory.net/rapid"

	"leadferry/internal/testsupport/must"
)

var update = flag.Bool("update", false, "write phones.csv anew, from the library")

func TestPhonesAreThoseOfTheLibrary(t *testing.T) {
	all, err := phonenumbers.MetadataCollection()
	must.Do(t, err)
	plans := map[string]*phonenumbers.PhoneMetadata{}
	codes := map[int]bool{}
	for _, m := range all.GetMetadata() {
		plans[fmt.Sprint(m.GetId(), m.GetCountryCode())] = m
		codes[int(m.GetCountryCode())] = true
	}
	rows := [][]string{{"region", "code", "idd", "prefix", "transform", "leading", "general", "valid", "lengths", "local"}}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		for _, region := range phonenumbers.GetRegionCodesForCountryCode(code) {
			m := plans[fmt.Sprint(region, code)]
			var valid []string
			for _, d := range []*phonenumbers.PhoneNumberDesc{
				m.GetFixedLine(), m.GetMobile(), m.GetTollFree(), m.GetPremiumRate(), m.GetSharedCost(), m.GetVoip(), m.GetPersonalNumber(), m.GetPager(), m.GetUan(), m.GetVoicemail(),
			} {
				if p := d.GetNationalNumberPattern(); p != "" && p != "NA" && !slices.Contains(valid, p) {
					valid = append(valid, p)
				}
			}
			rows = append(rows, []string{
				region, fmt.Sprint(code), m.GetInternationalPrefix(), m.GetNationalPrefixForParsing(), m.GetNationalPrefixTransformRule(), m.GetLeadingDigits(),
				m.GetGeneralDesc().GetNationalNumberPattern(), strings.Join(valid, "|"),
				strings.Trim(fmt.Sprint(m.GetGeneralDesc().GetPossibleLength()), "[]"), strings.Trim(fmt.Sprint(m.GetGeneralDesc().GetPossibleLengthLocalOnly()), "[]"),
			})
		}
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	must.Do(t, w.WriteAll(rows))
	if *update {
		must.Do(t, os.WriteFile("phones.csv", []byte(b.String()), 0o644))
	} else if b.String() != phonesText {
		t.Error("phones.csv is not what the library has: go test ./mapping/texts -update writes it")
	}
}

// theirs returns the number that the library makes of a text.
func theirs(s, country string) string {
	n, err := phonenumbers.Parse(s, country)
	if err != nil || !phonenumbers.IsValidNumber(n) {
		return ""
	}
	return phonenumbers.Format(n, phonenumbers.E164)
}

// The numbers are of every region, dialled in all ways and with mistakes.
func TestNumbersAreReadAsTheLibraryReadsThem(t *testing.T) {
	regions := append(slices.Sorted(maps.Keys(phonenumbers.GetSupportedRegions())), "ZZ")
	var examples []*phonenumbers.PhoneNumber
	for _, region := range regions {
		for kind := phonenumbers.FIXED_LINE; kind <= phonenumbers.VOICEMAIL; kind++ {
			if n := phonenumbers.GetExampleNumberForType(region, kind); n != nil {
				examples = append(examples, n)
			}
		}
	}
	check := func(t interface{ Fatalf(string, ...any) }, s, region string) {
		dialled := dial(s)
		if len(strings.TrimPrefix(dialled, "+")) < 3 {
			return
		}
		if got, _ := phones().international(dialled, region); got != theirs(dialled, region) {
			t.Fatalf("%s in %s: %q, the library has %q", dialled, region, got, theirs(dialled, region))
		}
	}
	for _, n := range examples {
		home := phonenumbers.GetRegionCodeForNumber(n)
		for _, form := range []phonenumbers.PhoneNumberFormat{phonenumbers.E164, phonenumbers.NATIONAL} {
			for _, region := range []string{home, "US", "DE", "IT", "AR", "MX", "BR", "RU", "ZZ"} {
				check(t, phonenumbers.Format(n, form), region)
				check(t, phonenumbers.FormatOutOfCountryCallingNumber(n, region), region)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom(examples).Draw(t, "number")
		s := []byte(phonenumbers.Format(n, phonenumbers.E164))
		if rapid.Bool().Draw(t, "national") {
			s, _ = []byte(phonenumbers.GetNationalSignificantNumber(n)), any(nil)
		}
		for range rapid.IntRange(0, 3).Draw(t, "mistakes") {
			at := rapid.IntRange(0, len(s)).Draw(t, "at")
			digit := byte('0' + rapid.IntRange(0, 9).Draw(t, "digit"))
			switch {
			case at < len(s) && rapid.Bool().Draw(t, "other"):
				s[at] = digit
			case at > 0 && rapid.Bool().Draw(t, "lacks"):
				s = slices.Delete(s, at-1, at)
			default:
				s = slices.Insert(s, at, digit)
			}
		}
		prefix := rapid.SampledFrom([]string{"", "", "0", "00", "8", "1", "011", "15", "044"}).Draw(t, "prefix")
		check(t, prefix+string(s), rapid.SampledFrom(regions).Draw(t, "region"))
		check(t, prefix+string(s), phonenumbers.GetRegionCodeForNumber(n))
	})
}
