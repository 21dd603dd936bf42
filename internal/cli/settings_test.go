package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// shows returns one setting as config show prints it: value and origin.
func (d *desk) shows(name string, args ...string) (value, from string) {
	d.t.Helper()
	out := d.must(0, "", append([]string{"config", "show"}, args...))
	row := regexp.MustCompile(`(?m)^` + name + ` +(\S.*?)(?: {2,}(.*))?$`).FindStringSubmatch(out)
	if row == nil {
		d.t.Fatalf("no setting %s in\n%s", name, out)
	}
	if row[1] == "not set" {
		row[1] = ""
	}
	return row[1], strings.TrimSpace(row[2])
}

const profiles = `profiles:
  us: {base_url: "https://api.us.example.com", client_secret_file: us.secret}
  eu:
    base_url: https://api.eu.example.com
    leads_url: https://leads.eu.example.com
    trunk_id: t-eu
    client_id: c-eu
`

// fault 112: a flag beats the environment, which beats the profile, for each setting and for the secret.
func TestEachSettingSaysWhereItComesFrom(t *testing.T) {
	d := newDesk(t, "")
	path := d.write("config/leadferry/config.yaml", profiles)
	profile := func(line string) string { return "profile eu (" + path + ":" + line + ")" }
	eu, us, secret := []string{"--profile", "eu"}, []string{"--profile", "us"}, d.write("config/leadferry/us.secret", "planted")
	for _, test := range []struct {
		name, env   string // the environment's value; "": not set
		args        []string
		value, from string
	}{
		{"profile", "", nil, "default", "default"},
		{"profile", "eu", nil, "eu", "environment LEADFERRY_PROFILE"},
		{"profile", "us", eu, "eu", "flag --profile"},
		{"config", "", nil, path, "default"},
		{"base-url", "", nil, "", ""},
		{"base-url", "", eu, "https://api.eu.example.com", profile("4")},
		{"base-url", "https://env.example.com", eu, "https://env.example.com", "environment LEADFERRY_BASE_URL"},
		{"base-url", "https://env.example.com", with(eu, "--base-url", "https://f.example.com"), "https://f.example.com", "flag --base-url"},
		{"mapping", "e.yaml", []string{"-m", "f.yaml"}, "f.yaml", "flag --mapping"},
		{"mapping", "e.yaml", nil, "e.yaml", "environment LEADFERRY_MAPPING"},
		{"base-url", " ", eu, "not usable: the base-url is not an address", "environment LEADFERRY_BASE_URL"}, // a blank counts as a value
		{"base-url", "https://u:planted@env.example.com/x", nil, "not usable: the base-url has a user, a query or a fragment in it", "environment LEADFERRY_BASE_URL"},
		{"base-url", "https://env.example.com?planted", nil, "not usable: the base-url has a user, a query or a fragment in it", "environment LEADFERRY_BASE_URL"},
		{"leads-url", "", eu, "https://leads.eu.example.com", profile("5")},
		{"trunk-id", "", eu, "t-eu", profile("6")},
		{"client-id", "", eu, "c-eu", profile("7")},
		{"client-secret", "planted", eu, "set, not shown", "environment LEADFERRY_CLIENT_SECRET"},
		{"client-secret", "", eu, "", ""},
		{"client-secret", "", us, "set, not shown", secret + ", profile us (" + path + ":2)"},
		{"client-secret", "planted", us, "set, not shown", "environment LEADFERRY_CLIENT_SECRET"},
		{"client-secret", "planted", with(us, "--client-secret-file", secret), "set, not shown", secret + ", flag --client-secret-file"},
		{"checkpoint", "", eu, filepath.Join(d.dir, "state", "leadferry", "leads.eu.example.com-t-eu.db"), "default of the target"},
		{"checkpoint", "c.db", eu, "c.db", "environment LEADFERRY_CHECKPOINT"},
		{"mapping", "", []string{"-m", "x.yaml"}, "x.yaml", "flag --mapping"},
		{"sandbox", "", []string{"--sandbox"}, "true", "flag --sandbox"},
	} {
		variable := "LEADFERRY_" + strings.ToUpper(strings.ReplaceAll(test.name, "-", "_"))
		if test.env != "" {
			t.Setenv(variable, test.env)
		}
		value, from := d.shows(test.name, test.args...)
		if value != test.value || from != test.from {
			t.Errorf("%s with %q and %v: %q from %q, want %q from %q", test.name, test.env, test.args, value, from, test.value, test.from)
		}
		os.Unsetenv(variable)
	}
	t.Setenv("LEADFERRY_BASE_URL", "") // an empty variable counts as not set
	if value, _ := d.shows("base-url", eu...); value != "https://api.eu.example.com" {
		t.Errorf("with an empty variable: %q", value)
	}
	table := d.must(0, "", []string{"config", "show", "--profile", "eu"}, "base-url ", profile("4"), "client-secret      not set")
	if !strings.Contains(table, "trunk-id") {
		t.Error("no trunk ID in the table")
	}
}

const oneLead = "id,org,name\nL1,%ORG%,Ann\n"

// leads writes a file of one good row with its mapping and returns an import of it.
func (d *desk) leads() []string {
	d.t.Helper()
	m := d.write("m.yaml", `version: 1
key: "{id}"
assign: [{organization: "{org}"}]
lead: {type_key: form, type_label: Form, content: {name: "{name}"}}
`)
	f := d.write("l.csv", strings.ReplaceAll(oneLead, "%ORG%", sandbox.TrunkID))
	return []string{"import", "-m", m, f, "--out", "none"}
}

// answerOf is the ID behind --new-checkpoint in a refusal.
func answerOf(t *testing.T, said string) string {
	t.Helper()
	_, rest, found := strings.Cut(said, "--new-checkpoint=")
	if !found {
		t.Fatalf("no ID in:\n%s", said)
	}
	return strings.FieldsFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') })[0]
}

// N11: a login and two imports need one token. Each profile signs in at its own service, with the client made there.
func TestImportUsesTheStoredClient(t *testing.T) {
	eu, euURL := startSandbox(t, "")
	us, usURL := startSandbox(t, "")
	d := newDesk(t, "")
	region := func(name, url string) string {
		return "  " + name + ": {base_url: " + url + "/, leads_url: " + url + ", trunk_id: " + sandbox.TrunkID + "}\n"
	}
	d.write("config/leadferry/config.yaml", "profiles:\n"+region("eu", euURL)+region("us", usURL))
	t.Setenv("LEADFERRY_PASSWORD", sandbox.Password)
	importing := d.leads()
	d.must(2, "", with(importing, "--checkpoint", "c.db"), "name a --profile (eu, us)")
	d.must(2, "", with(importing, "--profile", "eu"), "no --client-id given", "leadferry login")
	for _, name := range []string{"eu", "us"} {
		d.must(0, "", with(logIn, "--profile", name))
		answer := importing
		if name == "us" { // the same trunk at another address: a person has to agree once
			answer = with(importing, "--new-checkpoint", answerOf(t, d.must(4, "", with(importing, "--profile", name), "another checkpoint is in use")))
		}
		d.must(0, "", with(answer, "--profile", name), "1  created")
		d.must(0, "", with(importing, "--profile", name), "1  unchanged")
	}
	for _, server := range []*sandbox.Server{eu, us} {
		if c := server.Counts(); c["token"][200] != 1 || c["create"][201] != 1 || len(c["create"]) != 1 {
			t.Errorf("requests: %v", c)
		}
	}
	// The secret of one service never goes to another, nor to another client.
	d.must(2, "", with(importing, "--profile", "eu", "--base-url", usURL), "was made at "+euURL)
	d.must(2, "", with(importing, "--profile", "eu", "--client-id", "c-2"), "no client secret given")
	if c := us.Counts(); c["token"][200] != 1 || len(c["token"]) != 1 {
		t.Errorf("requests: %v", c)
	}
}

// A misspelt variable, or one that no flag reads, has no effect. Without a warning, its checkpoint would not be used
// and a dry run would be live.
func TestVariablesWithoutEffectAreWarnedOf(t *testing.T) {
	d := newDesk(t, "https://api.example.com")
	t.Setenv("LEADFERRY_CHEKPOINT", "mine.db")
	t.Setenv("LEADFERRY_HOME", "/opt/leadferry")
	t.Setenv("LEADFERRY_DRY_RUN", "1")
	out := d.must(0, "", []string{"config", "show", "--quiet"},
		"warning: LEADFERRY_CHEKPOINT is set but has no effect: is LEADFERRY_CHECKPOINT meant?\n",
		"warning: LEADFERRY_DRY_RUN is set but has no effect: --dry-run works on the command line only\n")
	if strings.Count(out, "warning") != 2 || strings.Contains(out, "mine.db") {
		t.Error(out)
	}
}
