package checkpointcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/disk"
	"leadferry/internal/shell"
)

// copy takes all that a checkpoint knows to an empty one elsewhere.
func (d *Command) copy() error {
	from, to := d.C.Args().Get(0), d.C.Args().Get(1)
	if d.C.NArg() != 2 || from == to {
		return exit.Usage("copy takes two places: the checkpoint, and where it goes",
			"see leadferry checkpoint copy --help")
	}
	at, err := d.Named(from)
	if err != nil {
		return err
	}
	if checkpoint.IsAddress(to) {
		o := d.ServerOptions()
		return d.copyTo(d.C.Context, at, to, &o)
	}
	if err = ledger.RefuseName(to); err == nil {
		to, err = filepath.Abs(to)
	}
	if err != nil {
		return err
	}
	return d.copyTo(d.C.Context, at, to, nil)
}

// copyTo copies to an address with server, or to a file. Runs are refused there first, then here for good; the same
// copy again ends one that was cut off.
func (d *Command) copyTo(ctx context.Context, from ledger.Place, to string, server *postgres.Options) (err error) {
	src, err := from.Open(ledger.How{Moved: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	info, moved := src.Info(), src.Moved()
	again := moved == to
	refuse := func(how, hint string) error {
		return &checkpoint.OpenError{
			Path: info.Path, Text: "was copied to " + moved + how, Err: checkpoint.ErrGone,
			Hint: hint + "; if that one is lost for good, " + checkpoint.TakeAgain(info.Path, info.ID),
		}
	}
	const lost, putBack = ", which is not there any more, and may have known more", "put it back"
	switch useIt := "use --checkpoint " + shell.Path(moved); {
	case moved != "" && !again:
		return refuse(" before", useIt)
	case again && server == nil && !disk.Exists(to):
		return refuse(lost, putBack)
	}
	read := func() (*checkpoint.Contents, error) { return src.Contents(ctx) }
	begun := func() error { return src.SetMoved(to) }
	err = d.Attested(ctx, src, false, func() error {
		if server == nil {
			return bolt.Fill(to, read, info.Path, info.Target, begun, from.Options)
		}
		o := *server
		if again {
			o.Resumes = info.ID
		}
		return postgres.Fill(to, read, info.Path, info.Target, begun, o)
	})
	switch {
	case again && errors.Is(err, checkpoint.ErrMissing):
		return refuse(lost, putBack)
	case again && (errors.Is(err, fs.ErrExist) || errors.Is(err, checkpoint.ErrLocked)): // the copy had come to its end
		return refuse(" before", "use --checkpoint "+shell.Path(moved))
	case err != nil:
		return err
	}
	fmt.Fprintf(d.Out, "copied: %s, %d in doubt, and all that is known besides\n%s is used by no run any more; use "+
		"--checkpoint %s from now on\n",
		english.Plural(info.Leads, "lead", ""), info.InDoubt, report.Escape(info.Path), shell.Path(to))
	return nil
}
