package external

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestWordsOfACommand(t *testing.T) {
	for text, want := range map[string][]string{
		"pass show crm":                  {"pass", "show", "crm"},
		"  a \t b\n":                     {"a", "b"},
		`op read "op://Team/the secret"`: {"op", "read", "op://Team/the secret"},
		`a 'b "c" d' e"f 'g'"h`:          {"a", `b "c" d`, `ef 'g'h`},
		`C:\bin\tell.exe \"x y\"`:        {`C:\bin\tell.exe`, `\x y\`},
		`a "" ''`:                        {"a", "", ""},
		"a $HOME *.csv; b | c && `d`":    {"a", "$HOME", "*.csv;", "b", "|", "c", "&&", "`d`"},
	} {
		if got, err := Parse("x", text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{`a "b`: "never closed", `a 'b"`: "never closed", " ": "names no command", `"" a`: "names no command"} {
		if got, err := Parse("x", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

// faults 110, 112: no message repeats what the command wrote.
func TestSecretOfACommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such commands")
	}
	for command, want := range map[string]string{
		"echo s3cret":                       "s3cret",
		`printf "\n s3cret\r\n"`:            "s3cret",
		`sh -c "echo planted >&2; echo b"`:  "b",
		`printf "\357\273\277s3cret\n"`:     "s3cret",
		`sh -c "sleep 5 & echo agent"`:      "agent",
		"true":                              "!is no secret",
		`printf "planted\nplanted"`:         "!is no secret",
		`sh -c "yes planted | head -40000"`: "!is no secret",
		"cat /dev/zero":                     "!is no secret",
		`sh -c "echo planted; exit 3"`:      "!exit status 3",
		`sh -c "echo planted; kill -9 $$"`:  "!signal: killed",
		"leadferry-there-is-none":           "!not found",
		"echo 'planted":                     "!never closed",
	} {
		got, err := Secret(t.Context(), command)
		fault, refused := strings.CutPrefix(want, "!")
		if refused != (err != nil) || !refused && got != want {
			t.Errorf("%s: %q, %v", command, got, err)
		}
		if err != nil && (!strings.Contains(err.Error(), fault) || strings.Contains(err.Error(), "planted")) {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestOtherProgramsDoNotInheritSecrets(t *testing.T) {
	got := withoutSecrets([]string{"PATH=/bin", "LEADFERRY_CLIENT_SECRET=a", "LEADFERRY_PASSWORD=b", "leadferry_proxy=c", "LEADFERRY_CLIENT_SECRET_FILE=d", "X"})
	if want := []string{"PATH=/bin", "LEADFERRY_CLIENT_SECRET_FILE=d", "X"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
