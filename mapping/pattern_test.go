package mapping

import "testing"

func TestReplaceAndExtract(t *testing.T) {
	for _, tt := range []struct{ word, text, want string }{
		{`replace:/[^0-9]+//`, "a1b22", "122"},
		{`replace:/(\w+), (\w+)/$2 $1/`, "Lee, Ann", "Ann Lee"},
		{`replace:/(\d+)/${1}x/`, "1 2", "1x 2x"},
		{`replace:/€/$$/`, "5€", "5$"},
		{`replace:/a\/b/c\/d/`, "a/b", "c/d"},
		{`replace:/^/+/`, "49", "+49"},
		{`replace:/(?i)x/y/`, "Xx", "yy"},
		{`replace:/x/y/`, "abc", "abc"},
		{`replace:/a*/-/`, "baac", "-b-c-"},
		{`extract:/([0-9]{5})/`, "D-10115 Berlin 20095", "10115"},
		{`extract:/^(?:Dr\. )?(\w+)/`, "Dr. Lee", "Lee"},
		{`extract:/a(b)?/`, "ac", ""},
		{`extract:/(\d+)/`, "none", ""},
	} {
		if got, ok := stepOf(t, tt.word)(tt.text); !ok || got != tt.want {
			t.Errorf("%s of %.20q: %.20q %t, want %q", tt.word, tt.text, got, ok, tt.want)
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
