// Package external runs programs that flags name: the one to run when a command ends, and the one that knows the OAuth
// secret. Their environment holds no secret of leadferry.
package external

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"

	"leadferry/internal/cli/exit"
	"leadferry/internal/spelling"
)

// Command is a program that a flag names, with its arguments. It runs without a shell.
type Command []string

// word matches a word of a command, and quoted its parts between quotes.
var (
	word   = spelling.Form(`(?:"[^"]*"|'[^']*'|[^\s"'])+`)
	quoted = spelling.Form(`"([^"]*)"|'([^']*)'`)
)

// Parse splits a flag's text at white space. Quotes keep words together; a backslash is an ordinary character.
func Parse(flag, text string) (Command, error) {
	words := Command(word().FindAllString(text, -1))
	for i, w := range words {
		words[i] = quoted().ReplaceAllString(w, "$1$2")
	}
	switch {
	case strings.ContainsAny(word().ReplaceAllString(text, ""), `"'`):
		return nil, exit.Usage("--"+flag+": a quote is never closed",
			"white space separates words, quotes keep them together")
	case len(words) == 0 || words[0] == "":
		return nil, exit.Usage("--"+flag+" names no command", "for example --"+flag+` "/usr/local/bin/tell 'the team'"`)
	}
	return words, nil
}

// patience is how long a command may run.
const patience = time.Minute

// Run waits until the command ends, but not for programs that it started, which may keep its output open. The error
// says how the command failed, without any of its output.
func (c Command) Run(ctx context.Context, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	x := exec.CommandContext(ctx, c[0], c[1:]...)
	x.WaitDelay, x.Env = time.Second, withoutSecrets(os.Environ())
	x.Stdout, x.Stderr = stdout, stderr
	if err := x.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("the command failed: %w", err)
	}
	return nil
}

// withoutSecrets returns the environment without leadferry's secrets.
func withoutSecrets(environment []string) []string {
	secrets := []string{"LEADFERRY_CLIENT_SECRET", "LEADFERRY_PASSWORD", "LEADFERRY_PROXY"}
	return slices.DeleteFunc(environment, func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(secrets, strings.ToUpper(name))
	})
}

// Secret runs the command whose standard output is the client secret. It never shows the output.
func Secret(ctx context.Context, text string) (string, error) {
	const flag = "client-secret-command"
	c, err := Parse(flag, text)
	if err != nil {
		return "", err
	}
	var out bounded
	err = c.Run(ctx, &out, nil)
	// PowerShell may write a byte order mark
	secret := strings.TrimSpace(strings.TrimPrefix(out.kept.String(), "\ufeff"))
	switch {
	case out.full || err == nil && (secret == "" || strings.ContainsFunc(secret, unicode.IsControl)):
		return "", exit.Usage("--"+flag+": what the command wrote is no secret",
			"it must write the secret on one line, and nothing else")
	case err != nil:
		return "", exit.Usage("--"+flag+": "+err.Error(),
			"run it by hand: its output, which is not shown here, must be the secret alone")
	}
	return secret, nil
}

// bounded keeps a command's output, and fails once it is longer than any secret.
type bounded struct {
	kept bytes.Buffer
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.full = b.full || b.kept.Len()+len(p) > 64<<10; b.full {
		return 0, errors.New("too long for a secret")
	}
	return b.kept.Write(p)
}
