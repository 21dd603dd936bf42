package spelling

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"email", "First Name", "zip", "organization"}
	if got := Nearest("ue", []string{"us", "eu"}); got != "eu" {
		t.Errorf("ue: %q: swapped letters are the likelier slip", got)
	}
	for name, want := range map[string]string{
		"emial": "email", "EMAIL": "email", "e-mail": "email", "first_name": "First Name", "zap": "zip",
		"organisatoin": "organization", "": "", "phone": "", "xyz": "", "ema": "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
