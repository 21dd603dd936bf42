package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer"
)

func (p *program) adoptCommand(shared []cli.Flag) *cli.Command {
	return &cli.Command{
		Name: "adopt", Usage: "take over leads that exist on the service already", ArgsUsage: "FILE.csv",
		Description: `FILE.csv has the columns key and lead_id and, where known, external_id, status and
organization_id; - is standard input. The leads count as made from then on: no
import makes them again, and a sync finds them and sends them all their content at
first. The file is taken as a whole or not at all; the same file again does no harm.

An export of another checkpoint, CSV or JSONL, can be given as it is: rows in doubt
stay in doubt and partial ones wait for their link; rows that were refused are left
out. Where there is no checkpoint yet, one is made for the target that the flags
name. So a damaged one is replaced:

Example:

   leadferry checkpoint export --sandbox > saved.csv
   (move the damaged file away)
   leadferry checkpoint adopt saved.csv --sandbox

Exit codes: 0 done; 2 the file was refused, nothing was taken over, or no
checkpoint; 3 the disk refused it; 4 locked or damaged.`,
		Flags: shared, Action: p.adopt,
	}
}

func (p *program) adopt(c *cli.Context) (err error) {
	if c.NArg() != 1 {
		return usage("adopt takes one file", "see leadferry checkpoint adopt --help")
	}
	read, err := p.readList(c.Args().First(), "adopt")
	if err != nil {
		return err
	}
	entries := make([]checkpoint.Entry, len(read.rows))
	for i, row := range read.rows {
		if err := read.plausible(i, row.LeadID); err != nil {
			return err
		}
		if entries[i], err = entryOf(&row); err != nil {
			return read.fault(i, err.Error()+"; nothing was taken over", "")
		}
	}
	db, err := openOrMakeCheckpoint(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if db.New() {
		fmt.Fprintf(p.say(c), "checkpoint: %s (new: no lead is known yet)\n", db.Path())
	}
	p.warn(db)
	result, err := db.Adopt(entries)
	if err != nil {
		return read.refused(err, "nothing was taken over")
	}
	p.reportAdopted(result)
	return nil
}

// openOrMakeCheckpoint makes one where there is none, if the flags name a target.
func openOrMakeCheckpoint(c *cli.Context) (*checkpoint.DB, error) {
	path, err := checkpointPath(c)
	if err != nil {
		return nil, err
	}
	target := targetOf(c)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || target.BaseURL == "" || target.LeadsURL == "" || target.TrunkID == "" {
		return openCheckpoint(c, false)
	}
	if err := makeStateDir(path); err != nil {
		return nil, err
	}
	return checkpoint.Open(path, target, checkpoint.Options{Wait: c.Duration("wait"), AnyPlace: anyPlace()})
}

func (p *program) reportAdopted(r checkpoint.AdoptResult) {
	fmt.Fprintf(p.Out, "%s taken over, %d known already\n", plural(r.Leads, "lead"), r.Known)
	if r.InDoubt > 0 {
		fmt.Fprintf(p.Out, "%s in doubt taken over as in doubt: leadferry checkpoint export --state in_doubt lists them\n", plural(r.InDoubt, "row"))
	}
	if r.Rejected > 0 {
		fmt.Fprintf(p.Out, "%s left out that the service refused (state rejected): they have no lead, and the next import sends them again\n", plural(r.Rejected, "row"))
	}
	if r.Forgotten > 0 {
		fmt.Fprintf(p.Out, "%s left out whose key was forgotten: leadferry checkpoint forget --unblock KEY frees one\n", plural(r.Forgotten, "row"))
	}
}

// entryOf is a row of a list as the checkpoint takes it; the reverse of exportedOf.
func entryOf(row *listed) (checkpoint.Entry, error) {
	e := checkpoint.Entry{
		Key: row.Key, LeadID: row.LeadID, Organization: row.OrganizationID, Location: row.Location, Status: row.Status,
	}
	if row.State != "" {
		s, err := stateNamed(row.State)
		if err != nil {
			return e, errors.New("its state is none: an export has created, partial, rejected or in_doubt")
		}
		e.State = s
	}
	if locator, ok := strings.CutPrefix(e.Organization, importer.ForLocator); ok {
		e.Organization, e.Locator = "", locator
	}
	switch e.State {
	case checkpoint.InDoubt:
		e.WantLink, e.File, e.Run = row.ExternalID, row.File, row.RunID
		e.Line, _ = strconv.Atoi(row.Line)
		e.Updated, _ = time.Parse(time.RFC3339, row.UpdatedAt) // else the time of adoption
	case checkpoint.Partial:
		e.WantLink = row.ExternalID
	default:
		e.ExternalID = row.ExternalID
	}
	return e, nil
}
