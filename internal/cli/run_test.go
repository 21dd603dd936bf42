package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/importer"
	"leadferry/internal/testsupport/must"
	"leadferry/mapping"
)

// When nobody reads standard output any more, as after head, a command ends with 3 and prints no error. fault 11
func TestOutputWithoutAReaderIsNoError(t *testing.T) {
	d := newDesk(t, "")
	t.Chdir(d.dir)
	mapping, leads := sampleFile(t, "leads.yaml"), sampleFile(t, "leads.csv")
	d.run("", "import", "--sandbox", "-m", mapping, leads, "--out", "run")
	reader, writer, err := os.Pipe()
	must.Do(t, err)
	reader.Close()
	defer writer.Close()
	for _, args := range [][]string{
		{"--help"},
		{"--version"},
		{"schema"},
		{"explain"},
		{"completion", "bash"},
		{"import", "--help"},
		{"sandbox", "--addr", "127.0.0.1:0"},
		{"config", "show"},
		{"init", leads, "-m", "-"},
		{"checkpoint", "status", "--sandbox"},
		{"checkpoint", "export", "--sandbox"},
		{"checkpoint", "check", "--sandbox"},
		{"checkpoint", "history", "L-104204", "--sandbox"},
		{"report", "run", "-o", "-"},
		{"init", leads},
		{"checkpoint", "forget", "L-104204", "--sandbox"},
	} {
		messages := d.file("messages")
		code := Run(context.Background(), d.interrupt, append([]string{"leadferry"}, args...), Streams{In: d.file("in"), Out: writer, Err: messages})
		b, err := os.ReadFile(messages.Name())
		if err != nil || code != 3 || strings.Contains(string(b), "leadferry:") {
			t.Errorf("%v: exit %d, %v\n%s", args, code, err, b)
		}
	}
}

// The question before the first create counts only the leads of the worker's own shard.
func TestQuestionCountsTheLeadsOfTheShard(t *testing.T) {
	for want, test := range map[string]struct {
		rows  int
		shard mapping.Shard
	}{
		"up to 1,000 leads":                      {1000, mapping.Shard{}},
		"up to 1 lead":                           {1, mapping.Shard{Of: 1}},
		"about 251 leads, the rows of part 3/4,": {251, mapping.Shard{Index: 3, Of: 4}},
		"an unknown number of leads":             {0, mapping.Shard{Index: 3, Of: 4}},
	} {
		v := screen{rows: test.rows, o: &importer.Options{Task: importer.Task{Shard: test.shard}}}
		if v.howMany() != want {
			t.Errorf("%s, want %s", v.howMany(), want)
		}
	}
}

// The sandbox prints its settings before its page: whoever waits for the page has them.
func TestSandboxPrintsItsSettingsFirst(t *testing.T) {
	d := newDesk(t, "")
	close(d.interrupt)
	_, seen := d.run("", "sandbox", "--addr", "127.0.0.1:0", "--web")
	settings, page, found := strings.Cut(seen, "\npage: ")
	if !found || !strings.Contains(settings, "LEADFERRY_CLIENT_SECRET") || strings.Contains(page, "LEADFERRY_") {
		t.Error(seen)
	}
}

// Commands that read inputs refuse an address and say what to do, without its text.
func TestAddressesAreRefusedAsInputs(t *testing.T) {
	d := newDesk(t, "http://127.0.0.1:1")
	t.Chdir(d.dir)
	const address = "https://files.example.com/leads.csv?sig=s3cret"
	for _, command := range []string{"init", "validate", "import"} {
		out := d.must(2, "", []string{command, "-m", sampleFile(t, "leads.yaml"), address}, "an input is an address", "curl ADDRESS")
		if strings.Contains(out, "s3cret") {
			t.Error(out)
		}
	}
}

func sampleFile(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(here, "..", "..", "samples", name)
}

var here = func() string { dir, _ := os.Getwd(); return dir }()
