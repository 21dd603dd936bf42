package cli

import (
	"bufio"
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
	var alike []checkpoint.Likeness
	var r checkpoint.ForgetResult
	inSandbox, target := 0, checkpoint.Target{}
	err = p.withCheckpoint(c, false, func(db *bolt.Store) (err error) {
		if !p.hold.take() { // half of it would leave a copy of the file
			return errInterrupted
		}
		found, similar, err := lookUp(c.Context, db, keys...) // first: nothing of them is known afterwards
		if alike, target = similar, db.Info().Target; err == nil && target == sandboxTarget {
			inSandbox, err = forgetInSandbox(found, db.Info().Path)
		}
		if err == nil {
			r, err = db.Forget(c.Context, keys, c.Bool("unblock"))
		}
		return err
	})
	if err != nil {
		return err
	}
	p.reportForgotten(&r, inSandbox, target == sandboxTarget, c.Bool("unblock"))
	for i, l := range alike {
		if l.File != "" {
			fmt.Fprintf(p.Out, "%s is not known, but looks like the key of %s:%d, of which nothing was removed: forget that one by its own key\n", report.Escape(keys[i]), report.Escape(l.File), l.Line)
		}
	}
	return nil
}

func (p *program) reportForgotten(r *checkpoint.ForgetResult, inSandbox int, sandboxed, unblock bool) {
	then := "not sent again"
	if unblock {
		then = "may be sent again"
	}
	fmt.Fprintf(p.Out, "%s forgotten, %s: %d with a lead, %d refused, %d in doubt, %d not known, %d forgotten before\n",
		english.Plural(r.Leads+r.Rejected+r.InDoubt+r.Unknown+r.Already, "key", ""), then, r.Leads, r.Rejected, r.InDoubt, r.Unknown, r.Already)
	if inSandbox > 0 {
		fmt.Fprintf(p.Out, "%s removed from the sandbox's own data\n", english.Plural(inSandbox, "lead", ""))
	}
	switch {
	case r.InDoubt > 0 && sandboxed:
		fmt.Fprintln(p.Out, "of those in doubt a lead may stand in the sandbox's own data: a run with --sandbox --sandbox-reset empties them")
	case r.InDoubt > 0:
		fmt.Fprintln(p.Out, "of those in doubt a lead may exist on the service: look in the console, nobody will be reminded of them")
	}
	if n := r.Leads - inSandbox; n > 0 && unblock {
		fmt.Fprintf(p.Out, "the service has %s of these rows still, and the next import makes another: delete it in the console first\n", english.Plural(n, "lead", ""))
	}
	if r.Unknown > 0 && !unblock {
		fmt.Fprintln(p.Out, "keys that are not known are blocked all the same: check that they are spelt as `leadferry checkpoint export` lists keys, with their namespace")
	}
}

// forgetInSandbox removes what leads of the entries the data of --sandbox have, and returns
// how many there were.
func forgetInSandbox(found []checkpoint.Entry, checkpointPath string) (int, error) {
	var ids []string
	for i := range found {
		ids = append(ids, found[i].LeadID)
	}
	return sandbox.Forget(sandboxData(checkpointPath), ids)
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
