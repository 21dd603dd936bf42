package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"leadferry/internal/disk"
	"leadferry/internal/testsupport/must"
)

// typed are lines as typed up to the tab, and what the shell makes of the last word, without a / at its end.
var typed = []struct{ line, want string }{
	{"leadferry imp", "import"},
	{"leadferry checkpoint resol", "resolve"},
	{"leadferry import --encodi", "--encoding"},
	{"leadferry import --in-doubt re", "resend"},
	{"leadferry import --in-doubt=re", "--in-doubt=resend"},
	{"leadferry import -m map", "map of it.yaml"},
	{"leadferry import --results=res", "--results=results.csv"},
	{"leadferry import lea", "leads.txt"},
	{"leadferry import -- lea", "leads.txt"},
	{"leadferry import --out nig", "nightly"},
	{"leadferry import --out=nig", "--out=nightly"},
	{"leadferry completion pow", "powershell"},
	{"leadferry checkpoint forget lea", "lea"},
	{"leadferry import --look-alikes lea", "lea"},
}

// hostile is a line whose commands must not run when it is completed.
const hostile = "leadferry checkpoint forget $(touch ran) `touch ran` KEY --yes -- "

// shellFolder makes a folder with files to complete, and the environment of a shell that
// finds this test binary as leadferry.
func shellFolder(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"map of it.yaml": "", "results.csv": "", "leads.txt": "", "nightly/x": "", "calls": "",
	} {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	self, err := os.Executable()
	must.Do(t, err)
	must.Do(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	must.Do(t, os.Symlink(self, filepath.Join(dir, "bin", "leadferry")))
	return dir, []string{
		"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "TERM=dumb", "PS1=> ",
		"LC_ALL=C.UTF-8", "LEADFERRY_TEST_CALLS=" + filepath.Join(dir, "calls"),
	}
}

// neverRun fails the test if a shell called the program for more than completion, or ran a typed command.
func neverRun(t *testing.T, dir string) {
	t.Helper()
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	must.Do(t, err)
	asked := 0
	for call := range strings.Lines(string(calls)) {
		switch {
		case strings.HasPrefix(call, completeWord+" "):
			asked++
		case !strings.HasPrefix(call, "completion "):
			t.Errorf("the shell ran leadferry %s", call)
		}
	}
	if asked < len(typed) {
		t.Errorf("the shell asked for completions only %d times", asked)
	}
	if disk.Exists(filepath.Join(dir, "ran")) {
		t.Error("a typed command was run")
	}
}

func shellNamed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed here", name)
	}
	return path
}

// fish prints what it would offer.
func TestCompletionInFish(t *testing.T) {
	t.Parallel()
	fish := shellNamed(t, "fish")
	dir, env := shellFolder(t)
	script := "leadferry completion fish | source\n"
	for _, one := range typed {
		script += "echo '=='; complete -C " + `"` + one.line + `"` + "\n"
	}
	c := exec.Command(fish, "--no-config", "-c", script+"complete -C '"+hostile+"'\n")
	c.Dir, c.Env = dir, env
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	offers := strings.Split(string(out), "==\n")[1:]
	if len(offers) != len(typed) {
		t.Fatalf("%s", out)
	}
	for i, one := range typed {
		word, _, _ := strings.Cut(strings.TrimSuffix(offers[i], "\n"), "\t")
		last := one.line[strings.LastIndexByte(one.line, ' ')+1:]
		if one.want == last {
			last = ""
		} else {
			last = one.want
		}
		if word = strings.TrimSuffix(strings.ReplaceAll(word, `\`, ""), "/"); word != last {
			t.Errorf("%s: %q, want %q", one.line, offers[i], one.want)
		}
	}
	neverRun(t, dir)
}

func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	inTerminal(t, "source <(leadferry completion bash); bind 'set bell-style none'", shellNamed(t, "bash"), "--norc", "--noprofile", "-i")
}

func TestCompletionInZsh(t *testing.T) {
	t.Parallel()
	inTerminal(t, "bindkey -e; autoload -U compinit; compinit -u -D; zstyle ':completion:*' insert-tab false; source <(leadferry completion zsh)",
		shellNamed(t, "zsh"), "-f", "-i")
}

// inTerminal types each line and a tab in a terminal. Then it puts the command lastword
// before the line, which prints its last word as the shell has it now.
func inTerminal(t *testing.T, setup string, shell ...string) {
	person, tty := terminalPair(t)
	dir, env := shellFolder(t)
	c := exec.Command(shell[0], shell[1:]...)
	c.Dir, c.Env, c.Stdin, c.Stdout, c.Stderr = dir, env, tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.Do(t, c.Start())
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	heard := new(listener)
	go heard.listen(person)
	const define = `lastword() { local n=${@: -1}; printf '\nlastword %s <%s>\n' "$1" "${n%/}"; }`
	fmt.Fprintf(person, "%s\n%s\nlastword 0 ready\n", define, setup)
	heard.waitFor(t, "lastword 0 <ready>", 1)
	for i, one := range typed {
		const toBeginning = "\x01"
		io.WriteString(person, fmt.Sprintf("%s\t%slastword %d \n", one.line, toBeginning, i+1))
		heard.waitFor(t, fmt.Sprintf("lastword %d <%s>", i+1, one.want), 1)
		if t.Failed() {
			return
		}
	}
	const emptied = "\x01\x0b" // to the beginning, then delete the rest
	io.WriteString(person, hostile+"\t"+emptied+"lastword end here\n")
	heard.waitFor(t, "lastword end <here>", 1)
	neverRun(t, dir)
}
