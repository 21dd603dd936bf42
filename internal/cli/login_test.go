package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// desk is a user with folders of their own and a service to call.
type desk struct {
	t         *testing.T
	dir       string
	interrupt chan struct{}
}

func newDesk(t *testing.T, baseURL string) *desk {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "LEADFERRY_") || strings.HasPrefix(name, "SSL_CERT_") {
			t.Setenv(name, value) // so that it comes back after the test
			os.Unsetenv(name)
		}
	}
	withoutProxies(t)
	d := &desk{t: t, dir: t.TempDir(), interrupt: make(chan struct{})}
	t.Setenv("HOME", d.dir)
	t.Setenv("APPDATA", filepath.Join(d.dir, "config"))
	t.Setenv("LOCALAPPDATA", filepath.Join(d.dir, "state"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(d.dir, "config"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(d.dir, "state"))
	if baseURL != "" {
		t.Setenv("LEADFERRY_BASE_URL", baseURL)
	}
	return d
}

// run runs one command line with a text on its standard input and returns the exit code and all that it printed.
func (d *desk) run(in string, args ...string) (code int, printed string) {
	d.t.Helper()
	input, output := d.file("in"), d.file("out")
	if _, err := input.WriteString(in); err != nil {
		d.t.Fatal(err)
	}
	if _, err := input.Seek(0, io.SeekStart); err != nil {
		d.t.Fatal(err)
	}
	code = Run(context.Background(), d.interrupt, append([]string{"leadferry"}, args...), Streams{In: input, Out: output, Err: output})
	b, err := os.ReadFile(output.Name())
	must.Do(d.t, err)
	return code, string(b)
}

// must calls run and fails the test unless the exit code is right and all texts are printed.
func (d *desk) must(code int, in string, args []string, texts ...string) string {
	d.t.Helper()
	got, out := d.run(in, args...)
	if got != code {
		d.t.Fatalf("%v: exit %d, want %d\n%s", args, got, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			d.t.Errorf("%v: no %q in\n%s", args, text, out)
		}
	}
	return out
}

func (d *desk) file(name string) *os.File {
	d.t.Helper()
	f, err := os.Create(filepath.Join(d.t.TempDir(), name))
	must.Do(d.t, err)
	d.t.Cleanup(func() { f.Close() })
	return f
}

func (d *desk) write(name, text string) string {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	must.Do(d.t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	return path
}

func startSandbox(t *testing.T, faults string) (*sandbox.Server, string) {
	t.Helper()
	server, err := sandbox.New(sandbox.Options{Faults: faults})
	must.Do(t, err)
	l, err := sandbox.Listen("127.0.0.1:0", server, 0)
	must.Do(t, err)
	t.Cleanup(func() {
		must.Do(t, errors.Join(l.Close(), server.Close()))
	})
	return server, l.URL()
}

var logIn = []string{"login", "--email", sandbox.Email}

func with(args []string, more ...string) []string { return append(args[:len(args):len(args)], more...) }

// login reports each of these mistakes before it sends anything.
func TestLoginRefusesMistakesBeforeItSends(t *testing.T) {
	server, address := startSandbox(t, "")
	d := newDesk(t, address)
	for text, args := range map[string][]string{
		"no --email given":          {"login"},
		"takes no file names":       with(logIn, "secret-password"),
		"the sandbox needs no":      with(logIn, "--sandbox"),
		"is plain http":             with(logIn, "--base-url", "http://api.example.com"),
		"has a client already: c-1": with(logIn, "--client-id", "c-1"),
		"no password given":         logIn,
		"is given without a value":  with(logIn, "--base-url", ""),
	} {
		d.must(2, "", args, text, "hint: ")
	}
	t.Setenv("LEADFERRY_PASSWORD", "invalid \xff")
	d.must(2, "", logIn, "no text in UTF-8")
	t.Setenv("LEADFERRY_PASSWORD", sandbox.Password)
	d.write("other/credentials", "a file in the way")
	d.must(2, "", with(logIn, "--config", d.write("other/config.yaml", "profiles: {}")), "credentials")
	if len(server.Counts()) > 0 {
		t.Errorf("requests were sent: %v", server.Counts())
	}
}

// login says whether no client was made, or one may have been. Nothing is stored.
func TestLoginThatFailsSaysWhetherAClientMayExist(t *testing.T) {
	for faults, test := range map[string]struct {
		text    string
		clients int // requests for one
	}{
		"login.401/1":         {"the service refused the login", 0},
		"login.500/1":         {"the login failed", 0},
		"login.301/1":         {"the login failed", 0},
		"client.403/1":        {"no client was made", 1},
		"client.429/1":        {"no client was made", 1},
		"client.500/1":        {"a client may have been made", 1},
		"client.500-stored/1": {"a client may have been made", 1},
		"client.drop/1":       {"a client may have been made", 1},
		"client.cut-body/1":   {"a client may have been made", 1},
	} {
		t.Run(faults, func(t *testing.T) {
			server, address := startSandbox(t, faults)
			d := newDesk(t, address)
			t.Setenv("LEADFERRY_PASSWORD", sandbox.Password)
			d.must(3, "", logIn, test.text)
			n := 0
			for _, times := range server.Counts()["client"] {
				n += times
			}
			if n != test.clients {
				t.Errorf("%d requests for a client, want %d", n, test.clients)
			}
			entries, err := os.ReadDir(filepath.Join(d.dir, "config", "leadferry", "credentials"))
			must.Do(t, err)
			var left []string
			for _, e := range entries {
				if !strings.HasSuffix(e.Name(), ".lock") {
					left = append(left, e.Name())
				}
			}
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// After one Ctrl-C, login still waits for the answer to the request for a client: it holds the client's secret.
func TestInterruptedLoginKeepsTheClient(t *testing.T) {
	for endpoint, want := range map[string]struct {
		text string
		code int
	}{
		"login": {"interrupted: no client was made", 130}, "client": {"stored in", 0},
	} {
		t.Run(endpoint, func(t *testing.T) {
			server, _ := startSandbox(t, "")
			var d *desk
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if path.Base(r.URL.Path) == endpoint {
					close(d.interrupt)
					if endpoint != "client" {
						io.Copy(io.Discard, r.Body)
						<-r.Context().Done() // hangs until its time-out
						return
					}
				}
				server.ServeHTTP(w, r)
			}))
			defer front.Close()
			d = newDesk(t, front.URL)
			d.must(want.code, sandbox.Password, with(logIn, "--timeout", "1s"), want.text)
			_, err := os.Stat(filepath.Join(d.dir, "config", "leadferry", "credentials", "default.json"))
			if stored := err == nil; stored != (endpoint != "login") {
				t.Errorf("stored: %v", err)
			}
		})
	}
}
