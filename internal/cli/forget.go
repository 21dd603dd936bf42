package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/importer/report"
	"leadferry/internal/rowkey"
	"leadferry/leadapi/sandbox"
)

func (p *program) forgetCommand() *cli.Command {
	return &cli.Command{
		Name: "forget", Usage: "remove every trace of a person from the checkpoint", ArgsUsage: "KEY...",
		Description: `Removes what the checkpoint holds under each KEY, also from the unused parts of its
file, and keeps only a keyed hash, so that the next file does not make the lead
again: such rows are skipped. KEY - reads keys from standard input, one a line, so
that they show in no process list. --unblock removes the hash too: the row counts
as new. The lead on the service stays: delete it in the console; that of the sandbox
goes.

Example:

   leadferry checkpoint forget L-104204 --sandbox

Run folders, exports and copies of the checkpoint that hold the person are yours to
remove.

Exit codes: 0 done; 2 usage error or no checkpoint; 3 the disk refused it, or has no
room for the compacted copy; 4 locked or damaged.`,
		Flags: []cli.Flag{
			boolFlag("", "unblock", "remove the keyed hash too, so that the row may be sent again"),
		},
		Action: p.forget,
	}
}

func (p *program) forget(c *cli.Context) error {
	keys, err := p.keys(c.Args().Slice())
	if err != nil {
		return err
	}
	db, err := p.openCheckpoint(c, false)
	if err != nil {
		return err
	}
	if !p.hold.take() { // half of it would leave a copy of the file
		return errors.Join(errInterrupted, db.Close())
	}
	_, alike, err := lookUp(c.Context, db, keys...) // first: nothing of them is known afterwards
	inSandbox := 0
	if err == nil {
		inSandbox, err = forgetInSandbox(db, keys)
	}
	var r checkpoint.ForgetResult
	if err == nil {
		r, err = db.Forget(c.Context, keys, c.Bool("unblock"))
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	then := "not sent again"
	if c.Bool("unblock") {
		then = "may be sent again"
	}
	fmt.Fprintf(p.Out, "%s forgotten, %s: %d with a lead, %d refused, %d in doubt, %d not known, %d forgotten before\n",
		english.Plural(r.Leads+r.Rejected+r.InDoubt+r.Unknown+r.Already, "key", ""), then, r.Leads, r.Rejected, r.InDoubt, r.Unknown, r.Already)
	if inSandbox > 0 {
		fmt.Fprintf(p.Out, "%s removed from the sandbox's own data\n", english.Plural(inSandbox, "lead", ""))
	}
	switch {
	case r.InDoubt > 0 && db.Info().Target == sandboxTarget:
		fmt.Fprintln(p.Out, "of those in doubt a lead may stand in the sandbox's own data: a run with --sandbox --sandbox-reset empties them")
	case r.InDoubt > 0:
		fmt.Fprintln(p.Out, "of those in doubt a lead may exist on the service: look in the console, nobody will be reminded of them")
	}
	if n := r.Leads - inSandbox; n > 0 && c.Bool("unblock") {
		fmt.Fprintf(p.Out, "the service has %s of these rows still, and the next import makes another: delete it in the console first\n", english.Plural(n, "lead", ""))
	}
	for i, l := range alike {
		if l.File != "" {
			fmt.Fprintf(p.Out, "%s is not known, but looks like the key of %s:%d, of which nothing was removed: forget that one by its own key\n", report.Escape(keys[i]), report.Escape(l.File), l.Line)
		}
	}
	if r.Unknown > 0 && !c.Bool("unblock") {
		fmt.Fprintln(p.Out, "keys that are not known are blocked all the same: check that they are spelt as `leadferry checkpoint export` lists keys, with their namespace")
	}
	return nil
}

// forgetInSandbox removes the leads of keys from the data of --sandbox, where the checkpoint
// is its, and returns how many there were.
func forgetInSandbox(db *bolt.Store, keys []string) (int, error) {
	if db.Info().Target != sandboxTarget {
		return 0, nil
	}
	found, _, err := lookUp(context.Background(), db, keys...)
	if err != nil {
		return 0, err
	}
	var ids []string
	for i := range found {
		ids = append(ids, found[i].LeadID)
	}
	return sandbox.Forget(sandboxData(db.Info().Path), ids)
}

// keys are the arguments; - is standard input, one a line.
func (p *program) keys(args []string) (keys []string, err error) {
	if len(args) == 0 {
		return nil, usage("no key given", "see leadferry checkpoint forget --help")
	}
	for _, a := range args {
		if a != "-" {
			keys = append(keys, rowkey.Trim(a))
			continue
		}
		lines := bufio.NewScanner(p.In)
		for lines.Scan() {
			if key := rowkey.Trim(lines.Text()); key != "" { // rows have their keys so
				keys = append(keys, key)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, usage(fmt.Sprintf("standard input cannot be read: %v", err), "one key a line")
		}
	}
	return keys, nil
}
