package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a hostile service says beside the lead ID grows no checkpoint and reaches no terminal. faults 118, 134
func TestTextsOfAnswersAreBounded(t *testing.T) {
	t.Parallel()
	evil := "=cmd|' /C calc'!A0\\u001b]0;owned\\u0007" + strings.Repeat("x", 400_000)
	answer := fmt.Sprintf(`{"leadID":"%s","assignedOrganizationID":"%s","assignedLocationName":"%s"}`, ownID, evil, evil)
	act := rawAct{say: "HTTP/1.1 201 Said\r\nConnection: close\r\n\r\n" + answer, end: hangUp}
	w := newRawTrial(t, rawScript{act: act, store: true, from: 1, times: always})
	w.peer.elsewhere = "=cmd\x1b]0;owned\a" + strings.Repeat("x", 400_000) // the owner, in answers to updates
	w.rows(60)
	w.write("leads.yaml", rawMapping+linkText)
	code, out := w.run("import", "-m", "leads.yaml", "leads.csv", "--out", "run")
	if code != 0 || len(w.peer.ledger()) != 60 {
		t.Fatalf("exit %d\n%s", code, out)
	}
	_, status := w.run("checkpoint", "status")
	_, export := w.run("checkpoint", "export")
	_, history := w.run("checkpoint", "history", "K1")
	for name, text := range map[string]string{
		"the run": out, "status": status, "export": export, "history": history,
		"results": w.read("run/results.csv"), "summary": w.read("run/summary.json"),
	} {
		if strings.Contains(text, "\x1b") || strings.Contains(text, strings.Repeat("x", 501)) {
			t.Errorf("%s shows what the service sent: %.200q", name, text)
		}
		if strings.Contains(text, ",=cmd") {
			t.Errorf("%s has a formula", name)
		}
	}
	files, err := filepath.Glob(filepath.Join(w.dir, "state", "leadferry", "*.db"))
	if err != nil || len(files) != 1 {
		t.Fatalf("checkpoints: %v, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Size() > 512<<10 {
		t.Errorf("a checkpoint of 60 leads: %v, %v", info, err)
	}
}

// Another organization than asked for is told of, whether or not the lead is linked, and when it could not be linked.
// fault 67
func TestAnotherOrganizationIsToldOf(t *testing.T) {
	t.Parallel()
	const remark = "the service assigned another organization than the row asked for"
	for name, link := range map[string]string{"linked": answered(200, rightLead), "not linked": answered(404, `{"message":"no such lead"}`)} {
		t.Run(name, func(t *testing.T) {
			w := newRawTrial(t, rawScript{act: rawAct{say: link}, update: true, from: 1, times: always})
			w.peer.script.store = name == "linked"
			w.peer.elsewhere = "org-of-others"
			w.rows(2)
			w.write("leads.yaml", rawMapping+linkText)
			_, out := w.run("import", "-m", "leads.yaml", "leads.csv", "--out", "run")
			for _, r := range w.results("run/results.csv") {
				if !strings.Contains(r["error"], remark) || r["organization_id"] != "org-of-others" {
					t.Errorf("%s: %s with %q\n%s", r["key"], r["outcome"], r["error"], out)
				}
			}
			if !strings.Contains(w.read("run/summary.json"), remark) {
				t.Error("the summary does not say so")
			}
		})
	}
}
