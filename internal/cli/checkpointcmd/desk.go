// Package checkpointcmd is what the commands of `leadferry checkpoint` do: they show what a
// checkpoint knows, and let people say what they know of its leads. The flags are
// internal/cli's; an error of the command line or of a file brings its hint in a line of its
// own.
package checkpointcmd

import (
	"errors"
	"fmt"
	"io"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/internal/cli/ledger"
)

// Desk is where a command works: its streams, the checkpoint that its flags name, and the
// person before it.
type Desk struct {
	In       io.Reader
	Out, Err io.Writer
	Say      io.Writer // for announcements
	// Find says where the checkpoint lies, which must be there, and how it is opened.
	Find func() (ledger.Place, error)
	// MayAsk says that a person can be asked, or has said yes already.
	MayAsk bool
	// Confirm asks a person. Its error, of whatever is no yes, says that nothing was done.
	Confirm func(question, nothing, hint string) error
	// Hold says that the command sees to signals itself from here on. Its error is one that
	// has come already.
	Hold func() error
	// Witness is what the run whose files lie in a folder tells of its checkpoint.
	Witness func(folder string) checkpoint.Witness
}

// with opens the checkpoint as long as f takes.
func (d *Desk) with(readOnly bool, f func(ledger.Ledger) error) error {
	at, err := d.Find()
	if err != nil {
		return err
	}
	db, err := at.Open(ledger.How{ReadOnly: readOnly})
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}

func (d *Desk) warn(warnings []string) {
	for _, text := range warnings {
		fmt.Fprintf(d.Err, "warning: %s\n", report.Escape(text))
	}
}

func (d *Desk) printCounts(counts map[checkpoint.State]int) {
	for s := checkpoint.Created; s <= checkpoint.Forgotten; s++ {
		if s <= checkpoint.InDoubt || counts[s] > 0 {
			fmt.Fprintf(d.Out, "%-10s  %d\n", s, counts[s])
		}
	}
}

// counted is a number and what it counts.
type counted struct {
	n    int
	text string
}

// tellCounts prints those that are not 0.
func (d *Desk) tellCounts(list []counted, number func(int) string) {
	for _, one := range list {
		if one.n > 0 {
			fmt.Fprintln(d.Out, number(one.n)+" "+one.text)
		}
	}
}
