package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// TestPageIsLive watches an import that waits for an answer: the page tells how far it is,
// and its last word is how it ended.
func TestPageIsLive(t *testing.T) {
	t.Parallel()
	watchesItsPage(t, newWorld(t, sandbox.Options{}))
}

func watchesItsPage(t *testing.T, w *world) {
	w.leads(40)
	held := w.hold(1)
	c := w.command("import", "-m", "leads.yaml", "leads.csv", "--out", "run", "--web")
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	address, told := "", bufio.NewScanner(said)
	for address == "" && told.Scan() {
		address, _ = strings.CutPrefix(told.Text(), "page: ")
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
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
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
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := client.Get(address); err == nil {
		t.Error("the page outlives its run")
	}
	w.whole(40)
	if page := w.read("run/report.html"); !strings.Contains(page, fmt.Sprintf("Import complete: %d rows", 40)) {
		t.Error("the page that the run left does not say how it ended")
	}
}
