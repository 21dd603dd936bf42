package e2e

import (
	"bytes"
	"crypto/x509"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"leadferry/internal/testsupport"
	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// balanced is how long the import behind the balancer is; the long one is
// `go test ./internal/e2e -run TestBehindAProxyAndABalancer -balanced 2000 -v`.
var balanced = flag.Int("balanced", 600, "how many rows TestBehindAProxyAndABalancer imports")

// installed finds a program, also in sbin folders. Without it, the test is skipped.
func installed(t *testing.T, name string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Skipf("%s is not installed (apt-get install %[1]s)", name)
	return ""
}

// daemon is a program between leadferry and the service.
type daemon struct {
	t     *testing.T
	args  []string
	port  string
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has
	said  bytes.Buffer
}

// startDaemon runs a program with a configuration, in which a free port replaces PORT. The system never gives
// that port to a connection, so it is still free at a restart.
func startDaemon(t *testing.T, program, config string, args ...string) *daemon {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(program)+".conf")
	d := &daemon{t: t, args: append(append([]string{program}, args...), path)}
	t.Cleanup(func() { d.stop() })
	for range 20 {
		d.port = strconv.Itoa(20000 + rand.N(10000))
		if c, err := net.Dial("tcp", d.address()); err == nil {
			c.Close() // somebody listens there
			continue
		}
		must.Do(t, os.WriteFile(path, []byte(strings.ReplaceAll(config, "PORT", d.port)), 0o600))
		if d.run() {
			return d
		}
	}
	t.Fatalf("%s does not start:\n%s", program, d.said.String())
	return nil
}

func (d *daemon) address() string { return "127.0.0.1:" + d.port }

// run starts the program and waits until it listens; false: it has ended instead.
func (d *daemon) run() bool {
	d.t.Helper()
	d.cmd, d.ended = exec.Command(d.args[0], d.args[1:]...), make(chan struct{})
	d.cmd.Stdout, d.cmd.Stderr = &d.said, &d.said
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // if the test is killed
	must.Do(d.t, d.cmd.Start())
	cmd, ended := d.cmd, d.ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return false
		case <-time.After(5 * time.Millisecond):
		}
		if c, err := net.Dial("tcp", d.address()); err == nil {
			c.Close()
			return true
		}
	}
}

// stop ends the program as a service manager does: at once, whatever is in flight.
func (d *daemon) stop() {
	if d.cmd != nil {
		_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-d.ended
	}
}

// restart stops the program and starts it again, on the same port.
func (d *daemon) restart() {
	d.t.Helper()
	d.stop()
	for range 20 {
		if d.run() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	d.t.Fatalf("%s does not start again:\n%s", d.args[0], d.said.String())
}

// reload makes the program read its configuration again. A new process takes over; the old
// one closes idle connections, and the others half a second later.
func (d *daemon) reload() {
	d.t.Helper()
	must.Do(d.t, d.cmd.Process.Signal(syscall.SIGUSR2))
}

const balancerConfig = `global
    maxconn 512
    hard-stop-after 500ms
defaults
    mode http
    timeout connect 2s
    timeout client 30s
    timeout server 30s
    timeout http-keep-alive 1s
frontend company
    bind 127.0.0.1:PORT ssl crt %s alpn http/1.1
    default_backend service
backend service
    balance roundrobin
    server one %s
    server two %s
`

const proxyConfig = `Port PORT
Listen 127.0.0.1
Timeout 60
MaxClients 200
BasicAuth ann proxy-password
LogLevel Error
`

// An import goes over a real proxy to a real balancer, which are reloaded and restarted meanwhile. Every row becomes
// one lead, or is in doubt and reported so. Once a person has settled those, every row is one lead. faults 43, 140
func TestBehindAProxyAndABalancer(t *testing.T) {
	t.Parallel()
	haproxy, tinyproxy := installed(t, "haproxy"), installed(t, "tinyproxy")
	const inFlight = 8
	rows := *balanced
	w := newWorld(t, sandbox.Options{Latency: time.Millisecond})
	other, err := sandbox.Listen("127.0.0.1:0", w.service, 0)
	must.Do(t, err)
	t.Cleanup(func() { other.Close() })
	balancer := startDaemon(t, haproxy, fmt.Sprintf(balancerConfig, balancerCertificate(w), w.address(), strings.TrimPrefix(other.URL(), "http://")), "-W", "-f")
	proxy := startDaemon(t, tinyproxy, proxyConfig, "-d", "-c")
	w.env = append(w.env, "LEADFERRY_BASE_URL=https://"+balancer.address(), "LEADFERRY_LEADS_URL=https://"+balancer.address(),
		"LEADFERRY_PROXY=http://ann:proxy-password@"+proxy.address(), "LEADFERRY_CA_FILE=ca.pem")
	w.leads(rows)
	w.write("leads.yaml", mappingText+"  external_id: \"{id}\"\n")

	args := words("import -m leads.yaml leads.csv --out run -c", strconv.Itoa(inFlight), "--max-in-doubt", "0")
	c := w.command(args...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	must.Do(t, c.Start())
	ended := make(chan struct{})
	go func() {
		_ = c.Wait() // its exit code is checked below
		close(ended)
	}()
	acts := []func(){balancer.reload, balancer.restart, balancer.reload, proxy.restart, balancer.reload, balancer.restart}
	for i, act := range acts {
		for w.creates() < rows*(i+1)/(len(acts)+1) {
			select {
			case <-ended:
				t.Fatalf("the import ended before it should have met everything\n%s", out.String())
			case <-time.After(time.Millisecond):
			}
		}
		act()
	}
	<-ended
	w.keep(args, out.String())

	s, code := w.summary("run/summary.json"), c.ProcessState.ExitCode()
	t.Logf("%d reloads and restarts: %d of %d rows in doubt, %d failed, %d partial; %d retries", len(acts), s.Rows.InDoubt, rows, s.Rows.Failed, s.Rows.Partial, s.Requests.Retries)
	if want := map[bool]int{true: 5, false: 0}[s.Rows.InDoubt > 0]; s.Rows.Failed+s.Rows.Partial+s.Rows.Pending == 0 && code != want {
		t.Errorf("exit %d, want %d", code, want)
	}
	if s.Rows.Read != rows || s.Rows.Created+s.Rows.InDoubt+s.Rows.Partial+s.Rows.Failed+s.Rows.Pending != rows || s.Rows.InDoubt > inFlight*len(acts) || code == 3 {
		t.Errorf("exit %d, %+v\n%s", code, s.Rows, out.String())
	}
	if n := len(w.exported("in_doubt")); n != s.Rows.InDoubt || n > 0 && !strings.Contains(out.String(), fmt.Sprintf("%d  in_doubt", n)) {
		t.Errorf("%d rows in doubt in the checkpoint, %d in the summary\n%s", n, s.Rows.InDoubt, out.String())
	}
	if !strings.Contains(out.String(), "over the proxy http://"+proxy.address()) || strings.Contains(out.String(), "proxy-password") {
		t.Errorf("the output lacks the proxy or holds its password:\n%s", out.String())
	}
	w.settle()
	w.complete(rows)
	leads := w.made()
	for _, l := range leads {
		if l.ExternalID != l.Content["importRef"] {
			t.Errorf("the lead of %v is linked to %q", l.Content["importRef"], l.ExternalID)
		}
	}
}

// balancerCertificate writes the authority to trust as ca.pem, and returns the file with the
// balancer's certificate and key.
func balancerCertificate(w *world) string {
	w.t.Helper()
	authority := testsupport.Sign(w.t, x509.Certificate{}, nil)
	trusted, _ := testsupport.PEM(w.t, authority)
	w.write("ca.pem", trusted)
	certificate, key := testsupport.PEM(w.t, testsupport.Sign(w.t, x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, authority))
	path := filepath.Join(w.t.TempDir(), "balancer.pem")
	must.Do(w.t, os.WriteFile(path, []byte(certificate+key), 0o600))
	return path
}
