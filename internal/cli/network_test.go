package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// proxyVariables are all variables that name proxies, for any program.
var proxyVariables = []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"}

func withoutProxies(t *testing.T) {
	t.Helper()
	for _, name := range proxyVariables {
		t.Setenv(name, "")
	}
}

// fault 43: config show says which proxy is used for which address, and why. It never shows the password.
func TestWhichProxyIsUsed(t *testing.T) {
	d := newDesk(t, "")
	path := d.write("config/leadferry/config.yaml", `profiles:
  p: {base_url: "https://api.example.com", leads_url: "https://leads.example.net:8443", proxy: "http://u:pl4nted@profile:1"}
  local: {base_url: "http://localhost:1", leads_url: "https://leads.example.net", ca_file: no.pem, client_key: key.pem}
  free: {base_url: "https://api.example.com", leads_url: "https://leads.example.net:8443"}
`)
	const secured = " with a user and a password, not shown"
	p, local := []string{"--profile", "p"}, []string{"--profile", "local"}
	without := func() []string { return []string{"--profile", "free"} }
	type env map[string]string
	for _, test := range []struct {
		env               env
		args              []string
		row, value, fromA string
	}{
		{nil, p, "base-url-proxy", "http://profile:1" + secured, "profile p (" + path + ":2)"},
		{env{"LEADFERRY_PROXY": "https://e"}, p, "leads-url-proxy", "https://e:443", "environment LEADFERRY_PROXY"},
		{env{"LEADFERRY_PROXY": "https://e"}, with(p, "--proxy", "socks5://f"), "leads-url-proxy", "socks5://f:1080", "flag --proxy"},
		{env{"LEADFERRY_PROXY": "None", "HTTPS_PROXY": "http://x"}, p, "leads-url-proxy", "none", "environment LEADFERRY_PROXY"},
		{env{"HTTPS_PROXY": "http://u:pl4nted@x:1"}, without(), "leads-url-proxy", "http://x:1" + secured, "environment HTTPS_PROXY"},
		{env{"https_proxy": "y:1", "HTTPS_PROXY": "http://x"}, without(), "base-url-proxy", "http://y:1", "environment HTTPS_PROXY"},
		{env{"HTTPS_PROXY": "http://x", "NO_PROXY": ".example.com"}, without(), "base-url-proxy", "none", "no proxy of the environment counts for this address (NO_PROXY, or this machine itself)"},
		{env{"HTTPS_PROXY": "http://x", "NO_PROXY": ".example.com"}, without(), "leads-url-proxy", "http://x:80", "environment HTTPS_PROXY"},
		{env{"HTTPS_PROXY": "http://x", "no_proxy": "*"}, without(), "leads-url-proxy", "none", "no proxy of the environment counts for this address (NO_PROXY, or this machine itself)"},
		{env{"HTTPS_PROXY": "http://x", "NO_PROXY": "*"}, with(p, "--proxy", "f:1"), "leads-url-proxy", "http://f:1", "flag --proxy"},
		{env{"HTTPS_PROXY": "http://x"}, local, "base-url-proxy", "none", "no proxy of the environment counts for this address (NO_PROXY, or this machine itself)"},
		{env{"LEADFERRY_PROXY": "http://x"}, local, "base-url-proxy", "http://x:80", "environment LEADFERRY_PROXY"},
		{env{"HTTP_PROXY": "http://x"}, without(), "base-url-proxy", "none", "default"},
		{nil, without(), "base-url-proxy", "none", "default"},
		{nil, nil, "base-url-proxy", "", ""},
		{nil, []string{"--sandbox", "--request-id-header", "X-Request-ID"}, "request-id-header", "X-Request-ID", "flag --request-id-header"},
		{env{"HTTPS_PROXY": "ftp://u:pl4nted@x"}, without(), "base-url-proxy", "not usable: environment HTTPS_PROXY: the proxy must begin with http://, https:// or socks5://", "environment HTTPS_PROXY"},
		{nil, local, "ca-file", filepath.Join(filepath.Dir(path), "no.pem"), "profile local (" + path + ":3)"},
		{nil, local, "client-cert", "", ""},
		{nil, local, "client-key", filepath.Join(filepath.Dir(path), "key.pem"), "profile local (" + path + ":3)"},
	} {
		for name, value := range test.env {
			t.Setenv(name, value)
		}
		value, from := d.shows(test.row, test.args...)
		if value != test.value || from != test.fromA {
			t.Errorf("%v %v: %s is %q from %q, want %q from %q", test.env, test.args, test.row, value, from, test.value, test.fromA)
		}
		if out := d.must(0, "", append([]string{"config", "show"}, test.args...)); strings.Contains(out, "pl4nted") {
			t.Errorf("the password is shown:\n%s", out)
		}
		for name := range test.env {
			os.Unsetenv(name)
		}
	}
}

// A setting that cannot be used ends the command at once, and the message holds no password.
func TestUnusableNetworkSettingsAreRefused(t *testing.T) {
	d := newDesk(t, "https://api.example.com")
	t.Setenv("LEADFERRY_LEADS_URL", "https://leads.example.com")
	t.Setenv("LEADFERRY_TRUNK_ID", "t-1")
	t.Setenv("LEADFERRY_PASSWORD", "pass word")
	mapping := d.write("leads.yaml", "version: 1\nlead: {content: {id: \"{id}\"}}\n")
	leads := d.write("leads.csv", "id\n1\n")
	for _, test := range []struct{ args, says []string }{
		{[]string{"--proxy", "http://u:pl4nted@proxy:0"}, []string{"flag --proxy: the proxy is not an address", "hint: it looks like http://proxy.example.com:3128"}},
		{[]string{"--proxy", "http://u:pl4nted/x@proxy"}, []string{"flag --proxy: the proxy ", "hint: "}},
		{[]string{"--ca-file", "no-such.pem"}, []string{"no-such.pem: file does not exist", "hint: check the path"}},
		{[]string{"--client-key", "no-such.pem"}, []string{"no certificate", "hint: name it with --client-cert"}},
		{[]string{"--request-id-header", "Authorization"}, []string{"flag --request-id-header: the header for request IDs cannot carry an ID", "hint: letters, digits and - only, ID at the end, such as X-Request-ID"}},
		{[]string{"--client-cert", mapping}, []string{"is not the key of the certificate", "hint: "}},
	} {
		for _, command := range [][]string{{"import", "-m", mapping, leads}, {"import", "-m", mapping, leads, "--dry-run"}, {"login", "--email", "a@example.com"}, {"config", "check"}} {
			out := d.must(2, "", append(command, test.args...), test.says...)
			if strings.Contains(out, "pl4nted") {
				t.Errorf("the password is shown:\n%s", out)
			}
		}
	}
}
