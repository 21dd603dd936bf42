package e2e

import (
	"slices"
	"strings"
	"testing"
)

// --in-doubt resend sends a row once more for each time that it was in doubt before the run, also where its key stands
// twice in the file, and never says that the command may be repeated as it is.
func TestResendIsOnceARun(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 4} {
		w := newRawTrial(t, rawScript{act: rawAct{say: answered(500, "{}")}, store: true, from: 1, times: always})
		w.rows(n)
		w.run("import", "-m", "leads.yaml", "leads.csv", "--out", "first")
		b := w.read("leads.csv")
		_, rows, _ := strings.Cut(b, "\n")
		w.write("twice.csv", b+rows)
		before := w.peer.posted()
		for run := 1; run <= 2; run++ {
			code, out := w.run("import", "-m", "leads.yaml", "twice.csv", "--out", "again", "--in-doubt", "resend", "--max-in-doubt", "0")
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

// A row that stands in doubt stays so where a run stops before it could send it again, or is refused this time.
func TestWhatIsNotResentStaysInDoubt(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]rawAct{"stopped": {say: answered(500, "{}")}, "refused": {say: answered(429, "{}")}} {
		turns := slices.Concat(slices.Repeat([]rawTurn{{act: rawAct{say: answered(500, "{}")}, store: true}}, 4), slices.Repeat([]rawTurn{{act: second}}, 40))
		w := newRawTrial(t, rawScript{turns: turns})
		w.rows(4)
		w.must(3, "import", "-m", "leads.yaml", "leads.csv", "--out", "first")
		code, out := w.run("import", "-m", "leads.yaml", "leads.csv", "--out", "again", "--in-doubt", "resend", "--retries", "0")
		for _, row := range w.results("again/results.csv") {
			if row["outcome"] != "in_doubt" {
				t.Errorf("%s: exit %d, %v\n%s", name, code, row, out)
			}
		}
	}
}

// Attempts, and the rows that --max-rejects is a share of, are those of which a byte left.
func TestWhatNeverLeftIsNoAttempt(t *testing.T) {
	t.Parallel()
	w := newRawTrial(t, rawScript{})
	w.rows(3)
	w.peer.leads.Close()
	w.must(3, "import", "-m", "leads.yaml", "leads.csv", "--out", "run", "--max-wait", "300ms")
	for _, row := range w.results("run/results.csv") {
		if row["attempts"] != "0" || row["outcome"] != "pending" {
			t.Errorf("%v", row)
		}
	}
}
