package cli

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"unicode/utf8"

	"leadferry/internal/cli/reference"
)

// A question has numbers that people can read, and breaks between words.
func TestQuestionsAreReadable(t *testing.T) {
	if got := leads(1234567); got != "1,234,567 leads" {
		t.Error(got)
	}
	long := strings.Repeat("word ", 40) + "é\nsecond line"
	for line := range strings.SplitSeq(reference.Wrap(long, 80), "\n") {
		if utf8.RuneCountInString(line) > 80 || strings.Contains(line, "  ") {
			t.Errorf("%q", line)
		}
	}
	if got, want := strings.Join(strings.Fields(reference.Wrap(long, 80)), " "), strings.Join(strings.Fields(long), " "); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The runtime is set once, and set back; what somebody has set stands.
func TestSending(t *testing.T) {
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	processors, garbage := runtime.GOMAXPROCS(0), percent()
	for _, test := range []struct {
		processorsSet, garbageSet string
		processors, garbage       int
	}{
		{"", "", processors + moreProcessors, moreGarbage},
		{"3", "", processors, moreGarbage},
		{"", "50", processors + moreProcessors, garbage},
	} {
		t.Setenv("GOMAXPROCS", test.processorsSet)
		t.Setenv("GOGC", test.garbageSet)
		is := func(when string, processors, garbage int) {
			t.Helper()
			if p, g := runtime.GOMAXPROCS(0), percent(); p != processors || g != garbage {
				t.Errorf("GOMAXPROCS=%s GOGC=%s, %s: %d and %d, want %d and %d", test.processorsSet, test.garbageSet, when, p, g, processors, garbage)
			}
		}
		begin, end := sending()
		is("before the first request", processors, garbage)
		begin()
		begin()
		is("while sending", test.processors, test.garbage)
		end()
		is("afterwards", processors, garbage)
	}
}
