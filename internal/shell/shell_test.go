package shell

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"leadferry/internal/testsupport/must"
)

// faults 118: a shell reads the word back as the same path, and it holds nothing that controls a terminal.
func TestPathIsOneHarmlessWordOfAShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	const paths = 30
	for _, path := range []string{"a b.csv", "it's.csv", "-m.csv", "-", "", "=1+2\x1b[2J\u202e\u009b\n'\\n\\'.csv", "\xff\x00"[:1] + "é東.csv", "a\u2028\tb"} {
		checkWord(t, bash, path)
	}
	rapid.Check(t, func(t *rapid.T) {
		if rapid.IntRange(0, paths).Draw(t, "one of many") > 0 {
			return // a shell for each would take long
		}
		checkWord(t, bash, strings.ReplaceAll(rapid.String().Draw(t, "path"), "\x00", ""))
	})
}

func TestWordOfWindowsShells(t *testing.T) {
	for text, want := range map[string]string{
		`leads.csv`: `leads.csv`, `C:\Users\Ann Lee\c.db`: `"C:\Users\Ann Lee\c.db"`, `D:\runs\`: `"D:\runs\\"`,
		`a&b,c.csv`: `"a&b,c.csv"`, `it's.csv`: `"it's.csv"`, ``: `""`, `say "x"`: `"say \"x\""`, "é\u202e.csv": `"é\u202e.csv"`, `50%.csv`: `"50%.csv"`,
	} {
		if got := wordOnWindows(text); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func checkWord(t rapid.TB, bash, path string) {
	t.Helper()
	word := Path(path)
	if strings.IndexFunc(word, func(r rune) bool { return !unicode.IsGraphic(r) }) >= 0 {
		t.Errorf("%q holds characters that control a terminal", word)
	}
	c := exec.Command(bash, "-c", "printf %s "+word)
	c.Env = []string{"LC_ALL=C.UTF-8"}
	out, err := c.Output()
	must.Do(t, err)
	if strings.HasPrefix(path, "-") && path != "-" {
		path = "./" + path
	}
	if string(out) != path {
		t.Errorf("%s is %q to a shell, want %q", word, out, path)
	}
}
