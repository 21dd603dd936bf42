package cli

import (
	"runtime"
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

// Processors are added once, and given back; a number that somebody set stands.
func TestProcessors(t *testing.T) {
	usual := runtime.GOMAXPROCS(0)
	for _, test := range []struct {
		set  string
		want int
	}{{"", usual + moreProcessors}, {"3", usual}} {
		t.Setenv("GOMAXPROCS", test.set)
		add, restore := processors()
		if got := runtime.GOMAXPROCS(0); got != usual {
			t.Errorf("%d before the first request, want %d", got, usual)
		}
		add()
		add()
		if got := runtime.GOMAXPROCS(0); got != test.want {
			t.Errorf("GOMAXPROCS=%s: %d, want %d", test.set, got, test.want)
		}
		restore()
		if got := runtime.GOMAXPROCS(0); got != usual {
			t.Errorf("%d afterwards, want %d", got, usual)
		}
	}
}
