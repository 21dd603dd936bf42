package e2e

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"leadferry/importer/report"
	"leadferry/leadapi/sandbox"
)

// outcomeRow is one row of the table: how the peer answers a create, and how the row must end.
type outcomeRow struct {
	name   string
	faults string // numbers of the faults that it shows
	act    rawAct
	both   bool // tried with the lead stored before the fault, and without
	stored bool // tried only with the lead stored
	want   rowWant
}

// rowWant is how a row must end.
type rowWant struct {
	outcome string
	http    string
	text    string // in the column error of the results; for a rejected row, of the rejects
	posts   int    // creates of the row that reached the peer
}

// always makes every create meet the fault.
const always = 1 << 20

// rawTrial is one run of the program against a raw peer.
type rawTrial struct {
	*world
	peer *rawPeer
}

const rawMapping = mappingText + `    email: "{mail}"
    note: "{note}"
`

func newRawTrial(t *testing.T, s rawScript) *rawTrial {
	p := newRawPeer(t, s)
	w := &world{t: t, dir: t.TempDir(), given: map[string]bool{}}
	w.env = append(os.Environ(),
		"XDG_STATE_HOME="+filepath.Join(w.dir, "state"), "XDG_CONFIG_HOME="+filepath.Join(w.dir, "config"),
		"LEADFERRY_BASE_URL="+p.api.url(), "LEADFERRY_LEADS_URL="+p.leads.url(), "LEADFERRY_TRUNK_ID="+sandbox.TrunkID,
		"LEADFERRY_CLIENT_ID="+sandbox.ClientID, "LEADFERRY_CLIENT_SECRET="+rawSecret,
	)
	return &rawTrial{world: w, peer: p}
}

// rawValues are values of a row. Only the rejects may show them.
func rawValues(n int) []string {
	return []string{fmt.Sprintf("Quillon%d Brathwick", n), fmt.Sprintf("quillon%d@planted.example", n), fmt.Sprintf("wants a plum-coloured tandem no %d", n)}
}

func (w *rawTrial) rows(n int) {
	var b strings.Builder
	b.WriteString("id,org,name,mail,note\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "K%d,%s,%s\n", i, rawOrg, strings.Join(rawValues(i), ","))
	}
	w.write("leads.csv", b.String())
	w.write("leads.yaml", rawMapping)
}

// One import gets all answers of the table, each after a row whose create is answered rightly. Each row ends as the
// table says, and none changes the outcome of another. The peer's own leads are the judge. faults 111, 114-116
func TestOutcomeOfEachAnswerToACreate(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]bool{"kept connections": false, "connections cut": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meetRows(t, cut)
		})
	}
}

// meetRows tries the answers that cut their connection, or those that keep it.
func meetRows(t *testing.T, cut bool) {
	target := openDoor(t, listenRaw(t), func(net.Conn, *bufio.Reader) {}) // where redirects lead
	var turns []rawTurn
	n, met := 0, map[string]*outcomeRow{} // how many rows, and rows of the table by key
	for _, row := range slices.Concat(statusRows(), waitRows(), redirectRows(target.url()), bodyRows(), headRows()) {
		variants := []bool{row.stored}
		if row.both {
			variants = []bool{true, false}
		}
		for _, stored := range variants {
			if cut != (row.act.flood != "" || row.act.end != keepOpen) {
				continue
			}
			n += 2
			act := row.act
			for i, value := range rawValues(ofTheRow) {
				act.say = strings.ReplaceAll(act.say, value, rawValues(n)[i])
			}
			turns = append(turns, rawTurn{}, rawTurn{act, true, stored})
			if row.want.posts > 1 {
				turns = append(slices.Concat(turns, slices.Repeat([]rawTurn{{act, true, stored}}, row.want.posts-2)), rawTurn{})
			}
			met["K"+itoa(n)] = &row
		}
	}
	w := newRawTrial(t, rawScript{turns: turns})
	w.rows(n)
	code, out := w.run("import -m leads.yaml leads.csv --out run -c 1 --log-level debug --max-in-doubt 0 --max-rejects 0")
	got := w.results("run/results.csv")
	for _, r := range got {
		name, want := "well", &rowWant{outcome: "created", http: "201", posts: 1}
		if row := met[r["key"]]; row != nil {
			name, want = row.name, &row.want
		}
		if r["outcome"] != want.outcome {
			t.Errorf("%s: row %s is %s (%s), want %s", name, r["key"], r["outcome"], r["error"], want.outcome)
		}
		want.check(w, r)
		if n := w.peer.seen(r["key"], false); n != want.posts {
			t.Errorf("%s: %d POSTs of row %s, want %d", name, n, r["key"], want.posts)
		}
	}
	s := w.summary("run/summary.json")
	if code != 5 || s.ExitCode != 5 || len(got) != n {
		t.Errorf("exit %d, %+v\n%s", code, s.Rows, out)
	}
	w.agrees(&s, got)
	if n := target.visits(); n > 0 {
		t.Errorf("%d connections to the target of redirects", n)
	}
	w.peersLedger(got)
	w.nothingShows(n)
	w.nextRun(got)
}

// agrees compares the summary with the results.
func (w *rawTrial) agrees(s *report.Summary, got []map[string]string) {
	w.t.Helper()
	counts := map[string]int{"read": len(got)}
	for _, r := range got {
		counts[r["outcome"]]++
	}
	for name, rows := range s.Rows.ByName() {
		if counts[name] != rows {
			w.t.Errorf("the summary counts %d %s, the results %d", rows, name, counts[name])
		}
	}
	for _, r := range got {
		if r["outcome"] == "in_doubt" && !slices.ContainsFunc(s.InDoubt, func(d report.Doubt) bool {
			return d.File == r["file"] && strconv.Itoa(d.Line) == r["line"] && d.OrganizationID == rawOrg && d.Reason != "" && !d.SentAt.IsZero()
		}) {
			w.t.Errorf("the summary's doubts %v lack the one of line %s", s.InDoubt, r["line"])
		}
	}
}

// check compares what the results and the rejects say of a row.
func (want *rowWant) check(w *rawTrial, r map[string]string) {
	w.t.Helper()
	said := r["error"]
	if r["outcome"] == "rejected" { // only the rejects have the service's own words
		if class := "HTTP " + want.http + " (refused)"; said != class+", see the rejects" && said != class+": no message was given" {
			w.t.Errorf("the results say %q, want %q and no word of the service's", said, class)
		}
		for _, line := range w.table(w.read("run/rejects.csv")) {
			if line["id"] == r["key"] {
				said = line["leadferry_error"]
			}
		}
	}
	if r["http_status"] != want.http || !strings.Contains(said, want.text) {
		w.t.Errorf("row %s: HTTP %s, %q; want %s, %q", r["key"], r["http_status"], said, want.http, want.text)
	}
}

// peersLedger compares the peer's leads with the results. The next run shows what the checkpoint holds.
func (w *rawTrial) peersLedger(got []map[string]string) {
	w.t.Helper()
	ids := w.peer.ledger()
	for _, r := range got {
		made := ids[r["key"]]
		if len(made) > 1 {
			w.t.Errorf("the peer holds %d leads of row %s", len(made), r["key"])
		}
		switch {
		case r["outcome"] == "in_doubt":
		case r["outcome"] != "created" && len(made) > 0:
			w.t.Errorf("row %s is %s, and the peer holds its lead", r["key"], r["outcome"])
		case r["outcome"] == "created" && !slices.Equal(made, []string{r["lead_id"]}):
			w.t.Errorf("row %s: results say %s, the peer %s", r["key"], r["lead_id"], made)
		}
	}
}

// nextRun imports the same file again, now with right answers, and checks what each outcome becomes.
func (w *rawTrial) nextRun(before []map[string]string) {
	w.t.Helper()
	w.peer.heal()
	posts := w.peer.posted()
	_, out := w.run("import -m leads.yaml leads.csv --out again -c 1")
	next := map[string]string{"created": "unchanged", "rejected": "rejected", "in_doubt": "in_doubt", "failed": "created", "pending": "created"}
	sent := 0
	now := map[string]map[string]string{}
	for _, r := range w.results("again/results.csv") {
		now[r["key"]] = r
	}
	for _, r := range before {
		want := next[r["outcome"]]
		if want == "created" {
			sent++
		}
		if now[r["key"]]["outcome"] != want {
			w.t.Errorf("the next run says row %s is %s, want %s\n%s", r["key"], now[r["key"]]["outcome"], want, out)
		}
	}
	sent += len(now) - len(before)
	if n := w.peer.posted() - posts; n != sent {
		w.t.Errorf("the next run made %d POSTs, want %d", n, sent)
	}
	for key, made := range w.peer.ledger() {
		if len(made) > 1 {
			w.t.Errorf("after the next run the peer holds %d leads of row %s", len(made), key)
		}
	}
}

// nothingShows looks for secrets and values of rows in all output and files. Invariant 7; faults 111, 114-116
func (w *rawTrial) nothingShows(rows int, secrets ...string) {
	w.t.Helper()
	canaries := []canary{{rawSecret, true}, {rawAccess, true}, {rawRefresh, true}}
	for _, s := range secrets {
		canaries = append(canaries, canary{s, true})
	}
	for i := 1; i <= rows; i++ {
		for _, value := range rawValues(i) {
			canaries = append(canaries, canary{value: value})
		}
	}
	w.scan(newFinder(canaries))
}

// seen counts the creates of a row that reached the peer, or all.
func (p *rawPeer) seen(ref string, all bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, post := range p.posts {
		if all || post.ref == ref || post.ref == "" {
			n++
		}
	}
	return n
}

func (p *rawPeer) posted() int { return p.seen("", true) }

// ledger returns the IDs of the leads that the peer holds, by importRef.
func (p *rawPeer) ledger() map[string][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := map[string][]string{}
	for id, l := range p.held {
		ref, _ := l.Content["importRef"].(string)
		ids[ref] = append(ids[ref], id)
	}
	return ids
}
