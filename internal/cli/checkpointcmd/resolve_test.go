package checkpointcmd

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
)

// Somebody who writes the row's own key or ExternalID as lead_id has not found the lead. fault 127
func TestResolveRefusesARowsOwnKeyAsLeadID(t *testing.T) {
	for row, wrong := range map[string]bool{
		"C-1,C-1,": true, "dealers/17,dealers/17,": true, "row-1,0031,0031": true,
		"C-1,C-10,": false, "C-1,none,": false, "C-1,exists,C-1": false, "C-1,,C-1": false, "17,L-17,": false,
	} {
		l := &list{path: "found.csv", command: "resolve", in: bytes.NewReader([]byte("key,lead_id,external_id\n" + row + "\n"))}
		_, _, _, err := decisionsOf(l)
		if got := err != nil && strings.Contains(err.Error(), "the row's own key or ExternalID"); got != wrong {
			t.Errorf("%s: %v", row, err)
		}
	}
}

// A list that was cut off decides nothing: its last row may now name another key or another lead.
func TestAListThatIsCutOffIsRefused(t *testing.T) {
	const id = "0b1c2d3e-0000-4000-8000-000000000001"
	refused := func(command, text string) error {
		l := &list{path: "found.csv", command: command, in: bytes.NewReader([]byte(text))}
		err := l.detect()
		if err == nil {
			for _, err = range (&lists{all: []*list{l}}).entries {
			}
		}
		if err == nil && command == "resolve" {
			_, _, _, err = decisionsOf(l)
		}
		return err
	}
	for _, command := range []string{"resolve", "adopt"} {
		for _, begin := range []string{
			"key,lead_id\nC-1,L-1\nC-20,", "lead_id,key\n" + id + ",C-1", "key,lead_id,external_id\nC-1," + id + ",crm-1", "key,lead_id\nC-1,exist",
		} {
			whole := "" // what the last row ends with
			if strings.HasSuffix(begin, ",") {
				whole = id
			}
			for n := range len(whole) {
				for _, end := range []string{"", "\n"} {
					if err := refused(command, begin+whole[:n]+end); err == nil && n > 0 {
						t.Errorf("%s took %q, cut after %d characters", command, begin, n)
					}
				}
			}
			if err := refused(command, begin+whole); (err == nil) != (whole != "") {
				t.Errorf("%s: %q: %v", command, begin+whole, err)
			}
		}
		for text, why := range map[string]string{
			"key,outcome,lead_id,error\nC-1,in_doubt,,\nC-2,in_d": "found.csv:3 (row 2 of the file): the file ends in it",
			"key,lead_id,error\nC-1," + id + ",\"no":              "found.csv:2 (row 1 of the file): the file ends in it",
			"key,lead_id,external_id\nC-1," + id + "\nC-2,,\n":    "found.csv:2: wrong number of fields",
			"key,lead_id\nC-1," + id + id + "\n":                  "72 characters instead of 36",
		} {
			if err := refused(command, text); err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %q: %v, want %s", command, text, err, why)
			}
		}
	}
	for _, text := range []string{"key,lead_id\nC-1,none", "key,lead_id\nC-1,EXISTS", "key,lead_id,note\nC-1," + id + ",cut o"} {
		l := &list{path: "found.csv", command: "resolve", in: bytes.NewReader([]byte(text))}
		must.Do(t, l.detect())
		if _, _, _, err := decisionsOf(l); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// --none-created decides about the sends that were in doubt when the person was asked, not about later ones.
func TestNoneMadeDecidesOnlyWhatThePersonWasAsked(t *testing.T) {
	address := pgtest.Shared(t).Database(t)
	target := checkpoint.Target{BaseURL: "https://api.example.com", LeadsURL: "https://leads.example.com", TrunkID: "5f0c1a52-7d0b-4a3e-9a1e-3a1c6d1f0b77"}
	send := func(run string, at time.Time) {
		t.Helper()
		s, err := postgres.Open(address, target, postgres.Options{Run: run})
		must.Do(t, err)
		c := &checkpoint.Change{Kind: checkpoint.Claim, Resend: true, Entry: checkpoint.Entry{Key: "a", Run: run, Updated: at}}
		must.Do(t, errors.Join(s.Commit(t.Context(), []*checkpoint.Change{c}), c.Err, s.Close()))
	}
	at := time.Now()
	send("11111111", at)
	person, err := postgres.Open(address, target, postgres.Options{})
	must.Do(t, err)
	defer person.Close()
	decisions, err := noneMade(t.Context(), person)
	if err != nil || len(decisions) != 1 {
		t.Fatal(decisions, err)
	}
	send("22222222", at) // while the person is asked
	if _, err := checkpoint.Resolve(t.Context(), person, decisions); !errors.As(err, new(*checkpoint.ListError)) {
		t.Errorf("a send that nobody was asked about was decided: %v", err)
	}
	if decisions, err = noneMade(t.Context(), person); err == nil {
		_, err = checkpoint.Resolve(t.Context(), person, decisions)
	}
	if err != nil {
		t.Error(err)
	}
}
