package checkpointcmd

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/checkpoint/postgres"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/disk"
	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// everythingIn lists all that a checkpoint holds, except the numbers of commits.
func everythingIn(t *testing.T, l ledger.Ledger) (all []string) {
	t.Helper()
	ctx := t.Context()
	err := checkpoint.Each(ctx, l, checkpoint.Filter{}, func(e checkpoint.Entry) error {
		e.Seq = 0
		events, err := checkpoint.History(ctx, l, e.Key)
		all = append(all, fmt.Sprintf("%+v %+v", e, events))
		return err
	})
	runs, noRuns := checkpoint.Runs(ctx, l)
	i := l.Info()
	all = append(all, fmt.Sprintf("%+v %v %x %v", runs, i.Keys, l.Digests().Sum([]byte("a value")), i.Incomplete))
	audit, noAudit := checkpoint.AuditOf(ctx, l)
	for _, d := range audit {
		all = append(all, fmt.Sprint(d.Decision, d.At, d.Against))
	}
	known, kin, noted := checkpoint.Noted(ctx, l, checkpoint.Shape{Columns: []string{"id", "name"}, Key: "{id}"})
	must.Do(t, errors.Join(err, noRuns, noAudit, noted))
	return append(all, fmt.Sprint(known, kin))
}

// eventful makes a checkpoint file that holds something of every kind.
func eventful(t *testing.T, path string, target checkpoint.Target) {
	t.Helper()
	d, err := bolt.Open(path, target, bolt.Options{AnyPlace: true})
	must.Do(t, err)
	ctx := context.Background()
	do := func(kind checkpoint.ChangeKind, e checkpoint.Entry) {
		t.Helper()
		c := &checkpoint.Change{Kind: kind, Entry: e, Resend: true, Shape: &checkpoint.Shape{Columns: []string{"id", "name"}, Key: "{id}"}}
		must.Do(t, errors.Join(d.Commit(ctx, []*checkpoint.Change{c}), c.Err))
	}
	at := time.UnixMilli(1_780_000_000_123).UTC()
	for i := range 5000 {
		if i%10 == 0 || i > 4990 {
			do(checkpoint.Settle, checkpoint.Entry{Key: fmt.Sprintf("Key-%04d", i), State: checkpoint.Created, LeadID: fmt.Sprintf("lead-%d", i), ExternalID: "crm", Status: "open", Run: "run", Updated: at, File: "a.csv", Line: i, Content: []checkpoint.ContentDigest{{Name: [4]byte{1}, Value: [4]byte{2}}}})
		}
	}
	for _, key := range []string{"none", "given", "exists", "doubt", "again", "gone"} {
		do(checkpoint.Claim, checkpoint.Entry{Key: key, Organization: "org", WantLink: "crm-" + key, Run: "run", Updated: at, File: "a.csv", Line: 7})
	}
	do(checkpoint.Settle, checkpoint.Entry{Key: "again", State: checkpoint.InDoubt, Code: 504, Reason: "server_error", RequestID: "id"})
	do(checkpoint.Claim, checkpoint.Entry{Key: "again", Run: "run-2", Updated: at.Add(time.Hour)})
	do(checkpoint.Settle, checkpoint.Entry{Key: "refused", State: checkpoint.Rejected, Code: 422, Updated: at})
	_, decided := checkpoint.Resolve(ctx, d, []checkpoint.Decision{{Key: "none"}, {Key: "given", LeadID: "lead-g"}, {Key: "exists", Exists: true}})
	do(checkpoint.Settle, checkpoint.Entry{Key: "other", State: checkpoint.Created, LeadID: "lead-g", Updated: at})
	do(checkpoint.Mark, checkpoint.Entry{Key: "Key-0010", LeadID: "lead-10", Unsettled: "run-2", Sought: "onHold", Seen: checkpoint.Sight{At: at, Status: "closedWon", Against: "open"}})
	_, forgotten := checkpoint.Forget(ctx, d, []string{"gone"}, false)
	put := checkpoint.PutRun(ctx, d, checkpoint.RunInfo{ID: "run", Command: "import", Started: at, Finished: at.Add(time.Minute), Outcome: "complete", Counts: map[string]int{"created": 3}})
	must.Do(t, errors.Join(decided, forgotten, put, d.Close()))
}

// unwitnessed is a command that finds no witnesses and takes files from anywhere.
func unwitnessed(t *testing.T) *Command {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("LEADFERRY_ANY_FILESYSTEM", "1")
	line := flag.NewFlagSet("", flag.PanicOnError)
	line.Bool("sandbox", true, "")
	return &Command{Selection: ledger.Selection{C: cli.NewContext(cli.NewApp(), line, nil)}, Out: &bytes.Buffer{}}
}

// A copy in PostgreSQL, and one back in a file, hold what the first file held. What was copied away refuses runs. If a
// copy was cut off, the same command finishes it. faults 128
func TestCopyThereAndBack(t *testing.T) {
	address := pgtest.Shared(t).Database(t)
	target := checkpoint.Target{BaseURL: "https://api.example.com", LeadsURL: "https://leads.example.com", TrunkID: "5f0c1a52-7d0b-4a3e-9a1e-3a1c6d1f0b77"}
	dir := t.TempDir()
	first, last := filepath.Join(dir, "first.db"), filepath.Join(dir, "last.db")
	eventful(t, first, target)
	d := unwitnessed(t)
	file := func(path string) ledger.Place { return d.At(path, target) }
	server := d.At(address, target)
	knows := func(at ledger.Place) []string {
		t.Helper()
		l, err := at.Open(ledger.How{ReadOnly: true})
		must.Do(t, err)
		defer l.Close()
		return everythingIn(t, l)
	}
	refusesRuns := func(at ledger.Place, kind error) {
		t.Helper()
		l, err := at.Open(ledger.How{})
		if err == nil {
			l.Close()
		}
		if !errors.Is(err, kind) {
			t.Errorf("%s accepts a run: %v", at.Path, err)
		}
	}
	want := knows(file(first))

	// Cut off after both places are marked.
	cut := errors.New("cut off")
	err := postgres.Fill(address, func() (*checkpoint.Contents, error) { return nil, cut }, first, target, postgres.Options{})
	if !errors.Is(err, cut) && (err == nil || err.Error() != cut.Error()) {
		t.Fatal(err)
	}
	refusesRuns(server, checkpoint.ErrLocked)
	must.Do(t, d.copyTo(file(first), address))
	must.Same(t, want, knows(server), "in PostgreSQL")
	refusesRuns(file(first), checkpoint.ErrGone)
	must.Do(t, d.copyTo(server, last))
	refusesRuns(server, checkpoint.ErrGone)
	must.Same(t, want, knows(file(last)), "back in a file")
	must.Same(t, want, knows(file(first)), "the first one")
	at := file(last)
	refused, err := at.Open(ledger.How{Check: true})
	must.Do(t, err)
	refused.Close()
	lostCopyIsNotMadeAgain(t, d, server, last)
}

func lostCopyIsNotMadeAgain(t *testing.T, d *Command, from ledger.Place, to string) {
	t.Helper()
	must.Do(t, os.Remove(to))
	for range 2 {
		if err := d.copyTo(from, to); !errors.Is(err, checkpoint.ErrGone) || disk.Exists(to) {
			t.Fatalf("copied once more: %v", err)
		}
	}
	l, err := from.Open(ledger.How{Moved: true})
	must.Do(t, err)
	took, err := checkpoint.TakeOlder(t.Context(), l, nil, l.Info().ID, l.Info().Moved)
	if info := l.Info(); err != nil || !took || !info.Incomplete || !info.MayLack(&checkpoint.Entry{Key: "new"}) || info.Leads == 0 {
		t.Errorf("taken again: %v, %+v", err, info)
	}
	l.Close()
	if l, err = from.Open(ledger.How{}); err != nil || !l.Info().Incomplete {
		t.Fatal("opened again: ", err)
	}
	l.Close()
	must.Do(t, d.copyTo(from, to+".new"))
}

// A ledger that was copied to a server and lost there is not copied a second time.
func TestLostLedgerIsNotFilledAgain(t *testing.T) {
	server := pgtest.Shared(t)
	address := server.Database(t)
	target := checkpoint.Target{BaseURL: "https://api.example.com", LeadsURL: "https://leads.example.com", TrunkID: "5f0c1a52-7d0b-4a3e-9a1e-3a1c6d1f0b77"}
	from := filepath.Join(t.TempDir(), "from.db")
	eventful(t, from, target)
	d := unwitnessed(t)
	at := d.At(from, target)
	must.Do(t, d.copyTo(at, address))
	for _, loss := range []string{`DELETE FROM leadferry.ledgers`, `DROP SCHEMA leadferry CASCADE`, ``} {
		server.Exec(t, address, loss)
		if loss == "" { // somebody tried a run there
			l, err := postgres.Open(address, target, postgres.Options{Run: "run"})
			must.Do(t, err)
			l.Close()
		}
		err := d.copyTo(at, address)
		if !errors.Is(err, checkpoint.ErrGone) || !strings.Contains(err.Error(), "if that one is lost for good") {
			t.Errorf("%s: copied once more: %v", loss, err)
		}
	}
}
