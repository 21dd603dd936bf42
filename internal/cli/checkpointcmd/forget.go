package checkpointcmd

import (
	"bufio"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
	"leadferry/internal/cli/connection"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/rowkey"
	"leadferry/internal/shell"
	"leadferry/leadapi/sandbox"
)

// forget removes all that is known of keys except a hash that keeps their leads from being made again, or with
// --unblock that, too. An argument - is standard input. Leads of the sandbox are removed beside its checkpoint.
func (d *Command) forget() error {
	ctx, unblock := d.C.Context, d.C.Bool("unblock")
	keys, err := d.keys(d.C.Args().Slice())
	if err != nil {
		return err
	}
	var alike []checkpoint.Likeness
	var r checkpoint.ForgetResult
	inSandbox, sandboxed, kept := 0, false, false
	var leads []string
	err = d.with(false, func(db ledger.Ledger) (err error) {
		if !d.Hold() { // half of it would leave a copy of the file
			return exit.ErrInterrupted
		}
		found, similar, err := lookUp(ctx, db, keys...) // first: nothing of them is known afterwards
		_, kept = db.(*postgres.Store)
		for i := range found {
			if found[i].LeadID != "" {
				leads = append(leads, found[i].LeadID)
			}
		}
		if alike, sandboxed = similar, db.Info().Target == connection.SandboxTarget; err == nil && sandboxed {
			inSandbox, err = sandbox.Forget(ledger.SandboxData(db.Info().Path), leads)
		}
		if err == nil {
			r, err = checkpoint.Forget(ctx, db, keys, unblock)
		}
		if why := (*checkpoint.ListError)(nil); errors.As(err, &why) {
			return exit.Usage(fmt.Sprintf("key %d: %s; nothing was forgotten", why.Index+1, why.Text), why.Hint)
		}
		return err
	})
	if err != nil {
		return err
	}
	d.reportForgotten(&r, inSandbox, sandboxed, unblock)
	if len(leads) > 0 && !sandboxed {
		fmt.Fprintln(d.Out, "lead IDs, for the person who can remove the leads at the vendor: "+
			strings.Join(leads, " "))
	}
	d.reportTraces(keys)
	if kept {
		fmt.Fprintln(d.Out, "the server's log of changes (WAL), its standbys and its backups keep what they have "+
			"until they are recycled: ask its administrator how long")
	}
	for i, l := range alike {
		if l.File != "" {
			d.printf("%s is not known, but looks like the key of %s:%d. Nothing of that one was removed: forget it "+
				"by its own key\n",
				keys[i], l.File, l.Line)
		}
	}
	return nil
}

// reportTraces names the files of runs that still hold the rows, and how to remove them. What witnesses need holds no
// cell.
func (d *Command) reportTraces(keys []string) {
	wanted := func(namespace, key string) bool { return slices.Contains(keys, rowkey.Effective(namespace, key)) }
	paths, _ := filepath.Glob(filepath.Join(report.RunsFolder, "*", "*"))
	held := slices.DeleteFunc(paths, func(path string) bool {
		kind := report.RunFile(filepath.Base(path))
		return !slices.Contains([]string{"results", "reconciliation", "rejects"}, kind) || !report.Holds(path, wanted)
	})
	if len(held) == 0 {
		return
	}
	remove := "rm"
	if runtime.GOOS == "windows" {
		remove = "del"
	}
	fmt.Fprintf(d.Out, "%s of runs here still %s these rows, and those of others. To remove:\n",
		english.Plural(len(held), "file", ""), english.PluralWord(len(held), "holds", "hold"))
	for _, path := range held {
		fmt.Fprintf(d.Out, "  %s %s\n", remove, shell.Path(path))
	}
}

func (d *Command) reportForgotten(r *checkpoint.ForgetResult, inSandbox int, sandboxed, unblock bool) {
	then := "not sent again"
	if unblock {
		then = "may be sent again"
	}
	fmt.Fprintf(d.Out, "%s forgotten, %s: %d with a lead, %d refused, %d in doubt, %d not known, %d forgotten before\n",
		english.Plural(r.Leads+r.Rejected+r.InDoubt+r.Unknown+r.Already, "key", ""), then, r.Leads, r.Rejected,
		r.InDoubt, r.Unknown, r.Already)
	if inSandbox > 0 {
		fmt.Fprintf(d.Out, "%s removed from the sandbox's own data\n", english.Plural(inSandbox, "lead", ""))
	}
	switch {
	case r.InDoubt > 0 && sandboxed:
		fmt.Fprintln(d.Out, "of those in doubt a lead may stand in the sandbox's own data: a run with --sandbox "+
			"--sandbox-reset empties them")
	case r.InDoubt > 0:
		fmt.Fprintln(d.Out, "of those in doubt a lead may exist on the service: look in the console, nobody will be "+
			"reminded of them")
	}
	if n := r.Leads + r.Already - inSandbox; n > 0 && unblock {
		fmt.Fprintf(d.Out, "the service may have %s of these rows still, and the next import makes another: have it "+
			"removed at the vendor first\n",
			english.Plural(n, "lead", ""))
	}
	if r.Unknown > 0 && !unblock {
		fmt.Fprintln(d.Out, "keys that are not known are blocked, too: check that they are spelt as `leadferry "+
			"checkpoint export` lists keys, and give --namespace where keys have one")
	}
}

// keys are the arguments; - is standard input, one a line.
func (d *Command) keys(args []string) (keys []string, err error) {
	if len(args) == 0 {
		return nil, exit.Usage("no key given", "see leadferry checkpoint forget --help")
	}
	namespace := d.C.String("namespace")
	for _, a := range args {
		if rowkey.Trim(a) == "" {
			return nil, exit.Usage("a key is empty", "is a variable not set?")
		}
		if a != "-" {
			keys = append(keys, rowkey.Effective(namespace, rowkey.Trim(a)))
			continue
		}
		lines := bufio.NewScanner(d.In)
		for lines.Scan() {
			if key := rowkey.Trim(lines.Text()); key != "" { // rows have their keys so
				keys = append(keys, rowkey.Effective(namespace, key))
			}
		}
		if err := lines.Err(); err != nil {
			return nil, exit.Usage(fmt.Sprintf("standard input cannot be read: %v", err), "one key a line")
		}
	}
	return keys, nil
}
