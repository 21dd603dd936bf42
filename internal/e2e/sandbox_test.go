package e2e

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// serveSandbox starts leadferry sandbox and puts the settings that it prints into the world's
// environment, as pasting them into a shell does. said are its other lines; stop ends it.
func (w *world) serveSandbox(args ...string) (said *bufio.Scanner, stop func()) {
	w.t.Helper()
	c := w.command(append([]string{"sandbox", "--addr", "127.0.0.1:0"}, args...)...)
	out, err := c.StdoutPipe()
	must.Do(w.t, err)
	words, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	must.Do(w.t, err)
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			w.t.Fatal("the settings have no end")
		}
		if names, end := strings.CutPrefix(lines.Text(), "unset "); end {
			for name := range strings.FieldsSeq(names) {
				w.env = append(w.env, name+"=")
			}
			break
		}
		setting, ok := strings.CutPrefix(lines.Text(), "export ")
		if !ok {
			w.t.Fatalf("not a setting: %s", lines.Text())
		}
		w.env = append(w.env, setting)
	}
	return bufio.NewScanner(words), func() {
		w.t.Helper()
		must.Do(w.t, c.Process.Signal(os.Interrupt))
		_, _ = io.Copy(io.Discard, words)
		if err := c.Wait(); err != nil {
			w.t.Errorf("the sandbox ended with %v", err)
		}
	}
}

// visitor looks at a page as a browser does.
type visitor struct {
	t    *testing.T
	page string
	http.Client
}

// visit opens the page whose address the sandbox prints.
func visit(t *testing.T, said *bufio.Scanner) *visitor {
	t.Helper()
	for said.Scan() {
		_, address, found := strings.Cut(said.Text(), "page: ")
		if !found {
			continue
		}
		v := &visitor{t: t, page: address, Client: http.Client{Transport: new(http.Transport)}}
		t.Cleanup(v.CloseIdleConnections)
		if text := v.get(""); strings.Contains(text, path.Base(address)) {
			t.Error("the page holds its token")
		}
		return v
	}
	t.Fatal("the sandbox printed no page")
	return nil
}

func (v *visitor) get(address string) string {
	v.t.Helper()
	r, err := v.Get(v.page + address)
	must.Do(v.t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		v.t.Fatalf("%s: %s, %v, at %s", address, r.Status, err, r.Request.URL)
	}
	return string(b)
}

// leadOf searches the page for a name and returns the lead ID beside it, "" if there is none.
func (v *visitor) leadOf(name string) string {
	v.t.Helper()
	text := v.get("?" + url.Values{"q": {name}}.Encode())
	found := regexp.MustCompile(`<bdi>`+name+`</bdi><br><small><span class="nowrap"><code class="pick">([^<]+)</code>`).FindAllStringSubmatch(text, -1)
	switch len(found) {
	case 0:
		return ""
	case 1:
		return found[0][1]
	}
	v.t.Fatalf("the page has %s %d times", name, len(found))
	return ""
}

// Answers are lost, of creates that were stored and of others. A person looks up on the sandbox's page which leads
// exist. In the end, every row has one lead.
func TestDoubtIsSettledWithTheSandboxsPage(t *testing.T) {
	t.Parallel()
	const rows = 40
	data := t.TempDir() + "/service.db"
	w := newWorld(t, sandbox.Options{})
	said, stop := w.serveSandbox("--web", "--data", data, "--faults", "create.drop-stored/6,create.drop/11")
	v := visit(t, said)
	w.leads(rows)
	exists, missing := 0, 0
	for round := 0; ; round++ {
		code, out := w.run("import -m leads.yaml leads.csv --out none")
		if code == 0 {
			break
		}
		if code != 5 || round == 9 {
			t.Fatalf("round %d: exit %d\n%s", round, code, out)
		}
		var found strings.Builder
		found.WriteString("key,lead_id,updated_at\n")
		for _, d := range w.exported("in_doubt") {
			var line int
			fmt.Sscan(d["line"], &line)
			id := v.leadOf(fmt.Sprintf("Person %d", line-2))
			if id == "" {
				missing++
			} else {
				exists++
			}
			found.WriteString(d["key"] + "," + cmp.Or(id, "none") + "," + d["updated_at"] + "\n")
		}
		w.write("found.csv", found.String())
		w.must(0, "checkpoint resolve found.csv")
	}
	stop()
	if exists < 4 || missing < 2 {
		t.Errorf("%d in doubt were made and %d not: too few to try", exists, missing)
	}
	service, err := sandbox.New(sandbox.Options{Path: data})
	must.Do(t, err)
	defer service.Close()
	leads, err := service.Leads()
	if err != nil || len(leads) != rows {
		t.Fatalf("%d leads, want %d: %v", len(leads), rows, err)
	}
	people := map[string]string{}
	for _, l := range leads {
		people[l.ID] = l.DisplayName
	}
	for i, e := range w.exported("created") { // in the order of their keys
		if want := fmt.Sprintf("Person %d", i); e["key"] != fmt.Sprintf("L%05d", i) || people[e["lead_id"]] != want {
			t.Errorf("%s has the lead of %q, want that of %s", e["key"], people[e["lead_id"]], want)
		}
		delete(people, e["lead_id"])
	}
	if len(people) > 0 {
		t.Errorf("leads of no row: %v", people)
	}
}

// While an import waits for an answer, its page shows that it runs. The last event of the page shows how it ended.
func TestLivePageFollowsAnImport(t *testing.T) {
	t.Parallel()
	watchesItsPage(t, newWorld(t, sandbox.Options{}))
}

func watchesItsPage(t *testing.T, w *world) {
	w.leads(40)
	held := w.hold(1)
	c := w.command("import -m leads.yaml leads.csv --out run --web")
	said, err := c.StderrPipe()
	must.Do(t, err)
	must.Do(t, c.Start())
	address, lines := "", bufio.NewScanner(said)
	for address == "" && lines.Scan() {
		address, _ = strings.CutPrefix(lines.Text(), "page: ")
		if !strings.HasPrefix(address, "http") {
			address = ""
		}
	}
	if address == "" {
		t.Fatalf("no page: %v", c.Wait())
	}
	go io.Copy(io.Discard, said)
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	get := func(accept string) *http.Response {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, address, nil)
		must.Do(t, err)
		r.Header.Set("Accept", accept)
		answer, err := client.Do(r)
		must.Do(t, err)
		return answer
	}
	answer := get("text/html")
	page, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if text := string(page); err != nil || !strings.Contains(text, "Import is ") {
		t.Errorf("at %s: %v\n%s", address, err, text)
	}
	stream := get("text/event-stream")
	defer stream.Body.Close()
	r := bufio.NewReader(stream.Body)
	until := func(what string) string {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatalf("never: %s: %v", what, err)
			}
			if strings.Contains(line, what) {
				return line
			}
		}
	}
	close(held.let)
	until("event: end")
	if last := until("data: "); !strings.Contains(last, "Import complete: 40 rows") || strings.Contains(last, "L00007") || strings.Contains(last, "Person 7") {
		t.Errorf("the last word is %s", last)
	}
	must.Do(t, c.Wait())
	if _, err := client.Get(address); err == nil {
		t.Error("the page outlives its run")
	}
	w.whole(40)
	if page := w.read("run/report.html"); !strings.Contains(page, fmt.Sprintf("Import complete: %d rows", 40)) {
		t.Error("the page that the run left does not say how it ended")
	}
}
