package cli

import (
	"path/filepath"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
)

func (p *program) initLedgerCommand() *cli.Command {
	return &cli.Command{
		Name: "init", Usage: "prepare a PostgreSQL database to hold checkpoints", ArgsUsage: "ADDRESS",
		Description: `Makes the schema leadferry in the database at ADDRESS, or brings it to this version,
and the roles of those who use it: leadferry_worker for runs, which may not remove
anything, and leadferry_reader for people, who do not see the digests' key. Where this
user may not make roles, it prints what somebody who may has to carry out. A run makes
the schema too, where its user may, and the ledger of its target.

No password may stand in ADDRESS: psql's PGPASSFILE and service files are read.

Example:

   leadferry checkpoint init postgres://owner@db.example.com/leads

Exit codes: 0 done; 2 usage error; 3 the server cannot be reached; 4 it does not
promise what a checkpoint needs, or this user may not.`,
		Flags: []cli.Flag{standbyFlag()},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 || !checkpoint.IsAddress(c.Args().First()) {
				return exit.Usage("init takes the address of a database", "for example leadferry checkpoint init postgres://owner@db.example.com/leads")
			}
			return p.desk(c).Prepare(c.Args().First(), p.ledger(c).ServerOptions())
		},
	}
}

func (p *program) workersCommand() *cli.Command {
	return &cli.Command{
		Name: "workers", Usage: "which runs use a checkpoint in PostgreSQL, and what they hold",
		Description: `Lists the newest runs and workers of fleets, and all that hold rows in doubt: when
each showed life last, whether a newer one has taken its place, and how many rows in
doubt it holds. What a worker holds is its own until it has ended, or was silent for 15
minutes or its --timeout and a minute, if that is longer: until then resolve and
--in-doubt resend refuse these rows, for an answer may still come.

Example:

   leadferry checkpoint workers --checkpoint postgres://db.example.com/leads

Exit codes: 0 done; 2 no checkpoint, or a file; 3 the server cannot be reached; 4 it
cannot be relied on.`,
		Action: func(c *cli.Context) error { return p.desk(c).Workers(c.Context) },
	}
}

func (p *program) copyCommand() *cli.Command {
	return &cli.Command{
		Name: "copy", Usage: "take a checkpoint to another place: from a file to PostgreSQL, or back", ArgsUsage: "FROM TO",
		Description: `Copies all that the checkpoint FROM knows into TO, a file that is not there yet or the
address of a database: leads, rows in doubt, decisions, history, runs, what was forgotten
and the key of the digests. Runs are refused at TO until it is complete, and at FROM from
then on for good: two checkpoints that both grew would make leads twice. The same command
again finishes a copy that was cut off.

Example:

   leadferry checkpoint copy leads.db postgres://db.example.com/leads

Exit codes: 0 done; 2 usage error or no checkpoint; 3 the server cannot be reached, or
the disk refused it; 4 one of them is in use, damaged, or not empty.`,
		Flags: []cli.Flag{standbyFlag()},
		Action: func(c *cli.Context) error {
			from, to := c.Args().Get(0), c.Args().Get(1)
			if c.NArg() != 2 || from == to {
				return exit.Usage("copy takes two places: the checkpoint, and where it goes", "see leadferry checkpoint copy --help")
			}
			at, err := p.ledger(c).Named(from)
			if err != nil {
				return err
			}
			if checkpoint.IsAddress(to) {
				o := p.ledger(c).ServerOptions()
				return p.desk(c).Copy(c.Context, at, to, &o)
			}
			if err := ledger.RefuseName(to); err != nil {
				return err
			}
			if to, err = filepath.Abs(to); err != nil {
				return err
			}
			return p.desk(c).Copy(c.Context, at, to, nil)
		},
	}
}
