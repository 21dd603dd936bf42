package spelling

import (
	"strings"
	"testing"
)

func TestList(t *testing.T) {
	names := []string{"a", "b", "c"}
	for most, want := range map[int]string{1: "A and 2 more", 2: "A, B and 1 more", 3: "A, B, C", 4: "A, B, C"} {
		if got := List(names, most, strings.ToUpper); got != want {
			t.Errorf("%d: %q, want %q", most, got, want)
		}
	}
	if got := List(names, 2, nil) + List(nil, 2, nil); got != "a, b and 1 more" {
		t.Error(got)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"email", "First Name", "zip", "list", "limit", "from", "format", "organization"}
	for name, want := range map[string]string{
		"emial": "email", "EMAIL": "email", "e-mail": "email", "first_name": "First Name", "zipp": "zip", "limt": "limit", "form": "from",
		"organisatoin": "organization", "": "", "phone": "", "xyz": "", "ema": "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
