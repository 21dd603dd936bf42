package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"
)

// patience is how long a command that a flag names may take.
const patience = time.Minute

// commandWords splits a command in a flag: at white space, quotes group, and a backslash
// is itself. No shell ever sees it.
func commandWords(flag, text string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun, quote := false, rune(0)
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			begun, quote = true, r
		case !unicode.IsSpace(r):
			begun = true
			word.WriteRune(r)
		case begun:
			words = append(words, word.String())
			word.Reset()
			begun = false
		}
	}
	if begun {
		words = append(words, word.String())
	}
	switch {
	case quote != 0:
		return nil, usage("--"+flag+": a quote is never closed", "white space parts the words, quotes keep them together; there is no shell")
	case len(words) == 0 || words[0] == "":
		return nil, usage("--"+flag+" names no command", "for example --"+flag+` "/usr/local/bin/tell 'the team'"`)
	}
	return words, nil
}

// ownSecrets are the variables that other programs need not know.
var ownSecrets = []string{secretVariable, "LEADFERRY_PASSWORD", "LEADFERRY_PROXY"}

// withoutSecrets is the environment without what is secret of ours in it.
func withoutSecrets(environment []string) []string {
	return slices.DeleteFunc(environment, func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc(ownSecrets, func(secret string) bool { return strings.EqualFold(name, secret) })
	})
}

// started is a command that ends with ctx or when its patience is over, though not those
// that it has started itself: nobody waits for them.
func started(ctx context.Context, words []string) (*exec.Cmd, func()) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.WaitDelay, c.Env = time.Second, withoutSecrets(os.Environ())
	return c, cancel
}

// ended says in words how a command failed, without a word of what it wrote.
func ended(err error) string {
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return fmt.Sprintf("ended with exit code %d", exit.ExitCode())
	case errors.As(err, &exit):
		return fmt.Sprintf("was ended by a signal, or took longer than %v", patience)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "was not found"
	}
	return "could not be run: " + err.Error()
}

// maxSecret is how many bytes a command may write for a secret.
const maxSecret = 64 << 10

// secretOf runs the command whose standard output is the client secret. What it writes
// is shown nowhere, whatever becomes of it.
func secretOf(ctx context.Context, command string) (string, error) {
	const flag = "client-secret-command"
	words, err := commandWords(flag, command)
	if err != nil {
		return "", err
	}
	c, cancel := started(ctx, words)
	defer cancel()
	out := &bounded{}
	c.Stdout = out
	// What it left running, like the agent of a key ring, may keep its output open.
	if err := c.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return "", usage("--"+flag+": the command "+ended(err), "run it by hand: its output, which is not shown here, must be the secret and nothing else")
	}
	secret := strings.TrimSpace(out.String())
	if secret == "" || out.Len() > maxSecret || strings.ContainsFunc(secret, unicode.IsControl) {
		return "", usage("--"+flag+": what the command wrote is no secret", "it must write the secret on one line, and nothing else")
	}
	return secret, nil
}

// bounded keeps little more than a secret may have.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len() <= maxSecret {
		b.Buffer.Write(p[:min(len(p), maxSecret+1)])
	}
	return len(p), nil
}
