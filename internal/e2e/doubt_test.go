package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A service that leaves every create in doubt, for example with a lead ID that is known already, puts four rows in
// doubt, however many are in flight. The next run adds one. faults 66, 138
func TestDoubtForEveryCreateCostsFourRows(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]rawAct{
		"503":      {say: answered(503, "<html>", "Content-Type: text/html")},
		"known ID": {say: answered(201, createdBody("lead-of-old-1"))},
		"reset":    {mute: true, end: reset},
		"silence":  {mute: true, end: hold},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRawTrial(t, rawScript{act: act, store: true, from: 1, times: always})
			w.rows(200)
			w.write("known.csv", "key,lead_id\nOLD,lead-of-old-1\n")
			w.must(0, "checkpoint adopt known.csv")
			limit := "1m"
			if act.end == hold {
				limit = "1s"
			}
			for run := range 2 { // the second may begin with a GET, and ends with its first create
				code, out := w.run("import -m leads.yaml leads.csv --out run -c 16 --timeout", limit)
				s := w.summary("run/summary.json")
				if code != 3 || !strings.Contains(s.StopReason, "4 creates in a row") {
					t.Errorf("exit %d, stopped for %q\n%s", code, s.StopReason, out)
				}
				// the second run may end before it reads every row that the first left in doubt
				inDoubt := len(w.exported("in_doubt"))
				if n := w.peer.posted(); n != 4+run || inDoubt != n || s.Rows.InDoubt > n || s.Rows.InDoubt+s.Rows.Pending != s.Rows.Read {
					t.Errorf("%d creates reached the service; %d in doubt in the checkpoint; %+v", n, inDoubt, s.Rows)
				}
			}
		})
	}
}

// A maintenance of the service puts only the creates in doubt that were in flight when it began. No other create leaves
// before a GET is answered; then the run goes on by itself.
func TestMaintenancePutsOnlyCreatesInFlightInDoubt(t *testing.T) {
	t.Parallel()
	const concurrency = 8
	act := rawAct{say: answered(503, "{}", "Retry-After: 1", "Content-Type: application/json")}
	w := newRawTrial(t, rawScript{act: act, store: true, from: 40, times: always, busyGets: 3, closed: true})
	w.rows(200)
	code, out := w.run("import -m leads.yaml leads.csv --out run -c", itoa(concurrency))
	if s := w.summary("run/summary.json"); code != 5 || s.Rows.InDoubt > concurrency || s.Rows.Created != 200-s.Rows.InDoubt || w.peer.posted() != 200 || w.peer.gets < 4 {
		t.Errorf("exit %d, %+v; %d creates and %d GETs reached the service\n%s", code, s.Rows, w.peer.posted(), w.peer.gets, out)
	}
}

// Rows in doubt from earlier runs count for --max-in-doubt, so that a command that is started again and again does not
// put more rows in doubt.
func TestDoubtIsBoundedOverRuns(t *testing.T) {
	t.Parallel()
	w := newRawTrial(t, rawScript{act: rawAct{say: answered(500, "{}")}, store: true, from: 1, times: always})
	w.rows(100)
	args := words("import -m leads.yaml leads.csv --out run --max-in-doubt 6")
	for range 12 {
		w.must(3, args...)
	}
	if n := w.peer.posted(); n != 7 {
		t.Errorf("%d creates reached the service in 12 runs", n)
	}
	if out := w.must(3, args...); !strings.Contains(out, "7 rows are in doubt from earlier runs") || !strings.Contains(out, "checkpoint export --state in_doubt --checkpoint") {
		t.Error(out)
	}
	w.peer.heal()
	w.must(3, args...)
	w.run(append(args, "--in-doubt", "resend")...)
	if n := w.peer.posted(); n != 107 {
		t.Errorf("%d creates reached the service, of 7 rows twice and of 93 once", n)
	}
}

// After a create without an answer, no create leaves before the service has answered a GET. fault 138
func TestASilentServiceGetsAGETFirst(t *testing.T) {
	t.Parallel()
	w := newRawTrial(t, rawScript{act: rawAct{mute: true, end: hold}, from: 1, times: 2, deaf: true})
	w.rows(40)
	code, out := w.run("import -m leads.yaml leads.csv --out run --timeout 1s --max-wait 4s")
	if s := w.summary("run/summary.json"); code != 3 || s.Rows.InDoubt != 1 || w.peer.posted() != 1 || w.peer.gets < 2 {
		t.Errorf("exit %d, %+v; %d creates and %d GETs reached the service\n%s", code, s.Rows, w.peer.posted(), w.peer.gets, out)
	}
	w.peer.hear()
	w.must(3, "import -m leads.yaml leads.csv --out run --timeout 3s") // its first create gets no answer either
	code, out = w.run("import -m leads.yaml leads.csv --out run --timeout 3s")
	if s := w.summary("run/summary.json"); code != 5 || s.Rows.InDoubt != 2 || s.Rows.Created != 38 {
		t.Errorf("exit %d, %+v\n%s", code, s.Rows, out)
	}
}

// If the answer to that GET asks for a wait, no create leaves meanwhile. fault 139
func TestRetryAfterOfAGETHoldsCreatesBack(t *testing.T) {
	t.Parallel()
	w := newRawTrial(t, rawScript{act: rawAct{mute: true, end: reset}, from: 5, times: 1, busyGets: 1})
	w.rows(20)
	code, out := w.run("import -m leads.yaml leads.csv --out run -c 1")
	if s := w.summary("run/summary.json"); code != 5 || s.Rows.InDoubt != 1 || s.Rows.Created != 19 {
		t.Errorf("exit %d, %+v\n%s", code, s.Rows, out)
	}
	if gap := w.peer.posts[5].at.Sub(w.peer.posts[4].at); gap < time.Second {
		t.Errorf("a create left %v after one without an answer, though the GET between was asked to wait a second", gap)
	}
}

// hear makes the peer answer GETs from now on.
func (p *rawPeer) hear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script.deaf = false
}

// While the service asks to wait, nothing leaves, not even creates that --rate has let through already. fault 139
func TestNothingLeavesWhileTheServiceAsksToWait(t *testing.T) {
	t.Parallel()
	const wait = 2 * time.Second
	for rate, rows := range map[string]int{"0": 400, "5": 18} { // at 5 a second, 8 creates take longer than a second
		t.Run("at "+rate+" a second", func(t *testing.T) {
			t.Parallel()
			w := newRawTrial(t, rawScript{act: rawAct{say: answered(429, "{}", "Retry-After: 2")}, from: 10, times: 1})
			w.rows(rows)
			if code, out := w.run("import -m leads.yaml leads.csv --out none -c 8 --rate", rate); code != 0 {
				t.Fatalf("exit %d\n%s", code, out)
			}
			asked, beside := w.peer.posts[9].at, 0
			for _, p := range w.peer.posts[10:] {
				switch after := p.at.Sub(asked); {
				case after < wait/2:
					beside++ // was under way; a busy machine reads the answer late
				case after < wait:
					t.Errorf("a create arrived %v after the service asked for %v", after, wait)
				}
			}
			if beside > rows/2 {
				t.Errorf("%d creates arrived beside the one that was answered with a wait", beside)
			}
			if n := len(w.peer.ledger()); n != rows {
				t.Errorf("%d leads, want %d", n, rows)
			}
		})
	}
}

// Token requests wait, too, if the service asks for it, at sign-in and later. faults 75, 139
func TestRetryAfterOfATokenRequestIsKept(t *testing.T) {
	t.Parallel()
	w := newRawTrial(t, rawScript{act: rawAct{say: answered(401, "{}")}, from: 5, times: 1, busyTokens: []int{1, 3}})
	w.rows(40)
	if code, out := w.run("import -m leads.yaml leads.csv --out none -c 8"); code != 0 || len(w.peer.ledger()) != 40 {
		t.Errorf("exit %d with %d leads\n%s", code, len(w.peer.ledger()), out)
	}
	asked := w.peer.asked
	if len(asked) != 4 {
		t.Fatalf("%d token requests, want 4", len(asked))
	}
	for _, n := range w.peer.script.busyTokens {
		if gap := asked[n].Sub(asked[n-1]); gap < tokenWait {
			t.Errorf("token request %d came %v after one was answered with a wait", n+1, gap)
		}
		for _, p := range w.peer.posts {
			if after := p.at.Sub(asked[n-1]); after > tokenWait/2 && after < tokenWait {
				t.Errorf("a create arrived %v after a token request was answered with a wait", after)
			}
		}
	}
}

// A run with --in-doubt resend sends each row in doubt at most once, also if its key is twice in the file. It never
// suggests the same command again.
func TestResendSendsEachRowOnceARun(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 4} {
		w := newRawTrial(t, rawScript{act: rawAct{say: answered(500, "{}")}, store: true, from: 1, times: always})
		w.rows(n)
		w.run("import -m leads.yaml leads.csv --out first")
		b := w.read("leads.csv")
		_, rows, _ := strings.Cut(b, "\n")
		w.write("twice.csv", b+rows)
		before := w.peer.posted()
		for run := 1; run <= 2; run++ {
			code, out := w.run("import -m leads.yaml twice.csv --out again --in-doubt resend --max-in-doubt 0")
			sent := w.peer.posted() - before
			if before = w.peer.posted(); code != 3 && code != 5 || sent == 0 || sent > n {
				t.Errorf("%d rows, run %d: exit %d, %d creates reached the service\n%s", n, run, code, sent, out)
			}
			if strings.Contains(out, "resend") || strings.Contains(out, "same command again") || code == 3 && !strings.Contains(out, "--in-doubt hold") {
				t.Errorf("%s", out)
			}
		}
	}
}

// --resend-on names the statuses after which a create is sent again. With none, 429 is not one. faults 61, 63, 64
func TestResendOn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status, resend string
		posts, code    int
	}{{"429", "none", 1, 5}, {"500", "500", 2, 0}, {"503", "503", 2, 0}, {"502", "500", 1, 5}} {
		act := rawAct{say: strings.Replace(answered(200, "{}", "Retry-After: 0"), "200", test.status, 1)}
		w := newRawTrial(t, rawScript{act: act, from: 1, times: 1})
		w.rows(1)
		w.must(test.code, "import -m leads.yaml leads.csv --out none --resend-on", test.resend)
		if n := w.peer.posted(); n != test.posts {
			t.Errorf("%s with --resend-on %s: %d creates, want %d", test.status, test.resend, n, test.posts)
		}
	}
}

// A row in doubt stays in doubt if the run stops before it sends the row again, or if the service refuses it this time,
// which says nothing about the first send.
func TestFailedResendLeavesRowsInDoubt(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]rawAct{
		"stopped": {say: answered(500, "{}")}, "not applied": {say: answered(429, "{}")}, "refused": {say: answered(422, `{"error":"x"}`)},
	} {
		turns := slices.Concat(slices.Repeat([]rawTurn{{act: rawAct{say: answered(500, "{}")}, store: true}}, 4), slices.Repeat([]rawTurn{{act: second}}, 40))
		w := newRawTrial(t, rawScript{turns: turns})
		w.rows(4)
		w.must(3, "import -m leads.yaml leads.csv --out first")
		code, out := w.run("import -m leads.yaml leads.csv --out again --in-doubt resend --retries 0")
		for _, row := range w.results("again/results.csv") {
			if row["outcome"] != "in_doubt" {
				t.Errorf("%s: exit %d, %v\n%s", name, code, row, out)
			}
		}
		if name == "refused" && !strings.Contains(w.text("again/rejects.csv"), "; sent again: HTTP 422") {
			t.Errorf("the rejects do not say why: %s", w.text("again/rejects.csv"))
		}
	}
}
