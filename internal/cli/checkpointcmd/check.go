package checkpointcmd

import (
	"context"
	"errors"
	"fmt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
)

// check reads the whole checkpoint and says whether it can be relied on. Flags have it change the checkpoint besides.
func (d *Command) check() (err error) {
	older, loss := d.C.String("accept-older"), d.C.Bool("accept-loss")
	writes := older != "" || loss || d.C.Bool("moved-here")
	if older != "" && loss {
		return exit.Usage("--accept-older and --accept-loss exclude one another",
			"first take the older copy and look at what is held, then give up what is missing")
	}
	at, err := d.Existing()
	if err != nil {
		return err
	}
	at.Options.Check = true
	db, err := at.Open(ledger.How{ReadOnly: !writes, Accept: older, Moved: older != ""})
	if err != nil {
		if errors.Is(err, checkpoint.ErrDamaged) && at.Server == nil {
			d.readable(at.Path)
		}
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	whole := "every page, record, index and count"
	if server, is := db.(*postgres.Store); is { // a file is checked when it is opened
		if err := server.Check(d.C.Context); err != nil {
			return err
		}
		whole = "every row, index and count"
	}
	checked := func() error { return d.checked(d.C.Context, db, whole, writes) }
	if !writes {
		return checked()
	}
	return d.Attested(d.C.Context, db, true, checked)
}

// checked tells of a checkpoint that is in order, and changes what is to be changed.
func (d *Command) checked(ctx context.Context, db ledger.Ledger, whole string, writes bool) error {
	ws := d.Witnesses()
	if !writes {
		if ws != nil {
			ws.Looks = true
		}
		v, err := checkpoint.Judge(ctx, db, ws, false, nil)
		if err == nil {
			err = v.RefuseOlder()
		}
		if err != nil {
			return err
		}
	}
	s, err := db.Status()
	if err != nil {
		return err
	}
	d.warn(s.Warnings)
	d.printf("checkpoint  %s\nin order    %s\n", db.Info().Path, whole)
	d.printCounts(s.Keys)
	if older := d.C.String("accept-older"); older != "" {
		err = d.takeOlder(ctx, db, ws, older)
	}
	if d.C.Bool("accept-loss") {
		if err = d.acceptLoss(ctx, db); err == nil {
			s, err = db.Status()
		}
	}
	if err == nil && d.C.Bool("moved-here") {
		if err = checkpoint.OnThisMachine(ctx, db, d.Machine, true); err == nil {
			fmt.Fprintln(d.Out, "\naccepted: the checkpoint is used on this machine from now on. Never use the copy "+
				"on the other machine again.")
		}
	}
	if err == nil {
		d.followUp(&s)
	}
	return err
}

// takeOlder takes a checkpoint that is older than known.
func (d *Command) takeOlder(ctx context.Context, db ledger.Ledger, ws *checkpoint.Witnesses, answer string) error {
	took, err := checkpoint.TakeOlder(ctx, db, ws, answer, db.Moved())
	if err != nil {
		return err
	}
	// which is taken when it is opened, where its server has lost some of it
	if server, is := db.(*postgres.Store); is {
		took = took || server.Accepted()
	}
	if !took {
		return exit.Usage("--accept-older="+answer+
			" answers nothing: the checkpoint is not older than known, or the ID is another one",
			"leadferry checkpoint check shows its state")
	}
	fmt.Fprintf(d.Out, "\naccepted: the checkpoint has a new ID and is incomplete: it lacks %s.\n"+
		"Rows that it does not know are held in doubt by the next run, not sent.\n", db.Info().Missing)
	return nil
}

// acceptLoss asks before rows may be sent whose leads may exist.
func (d *Command) acceptLoss(ctx context.Context, db ledger.Ledger) error {
	if !db.Info().Incomplete {
		fmt.Fprintln(d.Out, "\nnothing to accept: the checkpoint is complete")
		return nil
	}
	const hint = "answer y, or add --yes; leadferry checkpoint resolve settles what is held row by row"
	missing := "the checkpoint is incomplete: it lacks " + db.Info().Missing
	if !d.Person.CanAnswer() {
		return exit.Usage(missing+"; to give that up would make their leads a second time", hint)
	}
	question := "T" + missing[1:] + ".\nTheir rows are made a second time when they come again. Give up what is " +
		"missing?"
	if err := d.Person.Confirm(question, "nothing was given up", hint); err != nil {
		return err
	}
	freed, err := checkpoint.AcceptLoss(ctx, db)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "\naccepted: what is missing was given up; rows that were held for it and may be sent now: %d\n",
		freed)
	return nil
}
