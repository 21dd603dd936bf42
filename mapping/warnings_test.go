package mapping

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMarkedGuessesAreNamed(t *testing.T) {
	text := `version: 1  # ? really
# ? Nobody knows whether this is right.
# ?not a mark
#  ? nor this
key: "{a #? b}"   # ? unique among few
lead:
  content:
    z: a#b  # ?  spaced
    # ? of the content
    w: "{a #? b}"
    long: "` + strings.Repeat("x", 70) + `" # ? long
`
	m, err := Parse("m.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range m.Unconfirmed() {
		got = append(got, fmt.Sprintf("%d:%d %s: %s", g.Line, g.Column, g.Of, g.Why))
	}
	want := []string{
		"1:11 version: 1: really",
		"2:1 : Nobody knows whether this is right.",
		`5:16 key: "{a #? b}": unique among few`,
		"8:11 z: a#b: spaced",
		"9:1 : of the content",
		`11:83 long: "` + strings.Repeat("x", 53) + "…: long",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Some programs write a byte order mark before one that is there.
func TestByteOrderMarksAreNoPartOfAMapping(t *testing.T) {
	for _, marks := range []string{"\uFEFF", "\uFEFF\uFEFF"} {
		_, err := Parse("m.yaml", []byte(marks+"version: 1\nkye: \"{a}\"\n"), nil)
		if err == nil || !strings.HasPrefix(err.Error(), "m.yaml:2:1: unknown key \"kye\"") {
			t.Error(err)
		}
	}
}
