package checkpointcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
	"leadferry/internal/cli/ledger"
)

// source is a checkpoint that can be copied to another place.
type source interface {
	ledger.Ledger
	Moved() string
	SetMoved(to string) error
	Contents(ctx context.Context) (*checkpoint.Contents, error)
}

// Copy takes all that a checkpoint knows to an empty one elsewhere: to is an address with server, or a
// file. Runs are refused there first, then here for good; the same copy again ends one that was cut off.
func (d *Desk) Copy(ctx context.Context, from ledger.Place, to string, server *postgres.Options) (err error) {
	opened, err := from.Open(ledger.How{Moved: true})
	if err != nil {
		return err
	}
	src := opened.(source)
	defer func() { err = errors.Join(err, src.Close()) }()
	info := src.Info()
	moved := src.Moved()
	before := func() error {
		return &checkpoint.OpenError{Path: info.Path, Text: "was copied to " + moved + " before", Hint: "use --checkpoint " + report.Quote(moved), Err: checkpoint.ErrGone}
	}
	if moved != "" && moved != to {
		return before()
	}
	read := func() (*checkpoint.Contents, error) { return src.Contents(ctx) }
	begun := func() error { return src.SetMoved(to) }
	if server != nil {
		err = postgres.Fill(to, read, info.Path, info.Target, begun, *server)
	} else {
		err = bolt.Fill(to, read, info.Path, info.Target, begun, from.Options)
	}
	if moved == to && (errors.Is(err, fs.ErrExist) || errors.Is(err, checkpoint.ErrLocked)) { // the copy had come to its end
		return before()
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "copied: %s, %d in doubt, and all that is known besides\n%s is used by no run any more; use --checkpoint %s from now on\n",
		english.Plural(info.Leads, "lead", ""), info.InDoubt, report.Escape(info.Path), report.Quote(to))
	return nil
}
