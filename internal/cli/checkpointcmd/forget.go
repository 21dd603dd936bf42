package checkpointcmd

import (
	"bufio"
	"context"
	"fmt"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/rowkey"
)

// Sandbox is the imitation of the service, whose leads can be removed.
type Sandbox struct {
	Target checkpoint.Target
	Forget func(checkpointPath string, leadIDs []string) (leads int, err error)
}

// Forget removes what is known of keys, but for a hash that keeps their leads from being
// made again; unblock removes that, too. An argument - is standard input.
func (d *Desk) Forget(ctx context.Context, args []string, unblock bool, sandbox Sandbox) error {
	keys, err := d.keys(args)
	if err != nil {
		return err
	}
	var alike []checkpoint.Likeness
	var r checkpoint.ForgetResult
	inSandbox, sandboxed, kept := 0, false, false
	err = d.with(false, func(db ledger.Ledger) (err error) {
		if err := d.Hold(); err != nil { // half of it would leave a copy of the file
			return err
		}
		found, similar, err := lookUp(ctx, db, keys...) // first: nothing of them is known afterwards
		_, kept = db.(*postgres.Store)
		if alike, sandboxed = similar, db.Info().Target == sandbox.Target; err == nil && sandboxed {
			var ids []string
			for i := range found {
				ids = append(ids, found[i].LeadID)
			}
			inSandbox, err = sandbox.Forget(db.Info().Path, ids)
		}
		if err == nil {
			r, err = db.Forget(ctx, keys, unblock)
		}
		return err
	})
	if err != nil {
		return err
	}
	d.reportForgotten(&r, inSandbox, sandboxed, unblock)
	if kept {
		fmt.Fprintln(d.Out, "the server's log of changes (WAL), its standbys and its backups keep what they have until they are recycled: ask whoever runs it how long")
	}
	for i, l := range alike {
		if l.File != "" {
			fmt.Fprintf(d.Out, "%s is not known, but looks like the key of %s:%d, of which nothing was removed: forget that one by its own key\n", report.Escape(keys[i]), report.Escape(l.File), l.Line)
		}
	}
	return nil
}

func (d *Desk) reportForgotten(r *checkpoint.ForgetResult, inSandbox int, sandboxed, unblock bool) {
	then := "not sent again"
	if unblock {
		then = "may be sent again"
	}
	fmt.Fprintf(d.Out, "%s forgotten, %s: %d with a lead, %d refused, %d in doubt, %d not known, %d forgotten before\n",
		english.Plural(r.Leads+r.Rejected+r.InDoubt+r.Unknown+r.Already, "key", ""), then, r.Leads, r.Rejected, r.InDoubt, r.Unknown, r.Already)
	if inSandbox > 0 {
		fmt.Fprintf(d.Out, "%s removed from the sandbox's own data\n", english.Plural(inSandbox, "lead", ""))
	}
	switch {
	case r.InDoubt > 0 && sandboxed:
		fmt.Fprintln(d.Out, "of those in doubt a lead may stand in the sandbox's own data: a run with --sandbox --sandbox-reset empties them")
	case r.InDoubt > 0:
		fmt.Fprintln(d.Out, "of those in doubt a lead may exist on the service: look in the console, nobody will be reminded of them")
	}
	if n := r.Leads - inSandbox; n > 0 && unblock {
		fmt.Fprintf(d.Out, "the service has %s of these rows still, and the next import makes another: delete it in the console first\n", english.Plural(n, "lead", ""))
	}
	if r.Unknown > 0 && !unblock {
		fmt.Fprintln(d.Out, "keys that are not known are blocked all the same: check that they are spelt as `leadferry checkpoint export` lists keys, with their namespace")
	}
}

// keys are the arguments; - is standard input, one a line.
func (d *Desk) keys(args []string) (keys []string, err error) {
	if len(args) == 0 {
		return nil, exit.Usage("no key given", "see leadferry checkpoint forget --help")
	}
	for _, a := range args {
		if a != "-" {
			keys = append(keys, rowkey.Trim(a))
			continue
		}
		lines := bufio.NewScanner(d.In)
		for lines.Scan() {
			if key := rowkey.Trim(lines.Text()); key != "" { // rows have their keys so
				keys = append(keys, key)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, exit.Usage(fmt.Sprintf("standard input cannot be read: %v", err), "one key a line")
		}
	}
	return keys, nil
}
