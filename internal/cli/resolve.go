package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/gocarina/gocsv"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
)

// decided is a line of a resolve file.
type decided struct {
	Key    string `csv:"key"`
	LeadID string `csv:"lead_id"`
}

func (p *program) resolveCommand(shared []cli.Flag) *cli.Command {
	return &cli.Command{
		Name: "resolve", Usage: "settle rows in doubt by what a person found in the console", ArgsUsage: "FILE.csv",
		Description: `FILE.csv has the columns key and lead_id. A lead ID settles the row; the word
exists says that the lead was made but its ID is not known, so that it is never
sent again; an empty lead_id says that it was not made and may be sent.

Example:

   leadferry checkpoint export --state in_doubt --sandbox > doubt.csv
   (look each row up in the console and write its lead ID into lead_id)
   leadferry checkpoint resolve doubt.csv --sandbox

Exit codes: 0 all settled; 2 the file was refused, nothing was settled, or no
checkpoint; 4 locked or damaged.`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "none-created", Usage: "say of all rows in doubt that they were not made and may be sent"},
		}, shared...),
		Action: p.resolve,
	}
}

func (p *program) resolve(c *cli.Context) (err error) {
	if c.NArg() > 1 || c.Bool("none-created") == c.Args().Present() {
		return usage("resolve takes one file, or --none-created", "see leadferry checkpoint resolve --help")
	}
	var decisions []checkpoint.Decision
	if path := c.Args().First(); path != "" {
		if decisions, err = readDecisions(path); err != nil {
			return err
		}
	}
	db, err := openCheckpoint(c, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if c.Bool("none-created") {
		err := db.Each(checkpoint.InDoubt, func(e checkpoint.Entry) error {
			decisions = append(decisions, checkpoint.Decision{Key: e.Key})
			return nil
		})
		if err != nil {
			return err
		}
	}
	var refused *checkpoint.DecisionError
	if err := db.Resolve(decisions); errors.As(err, &refused) {
		return usage(fmt.Sprintf("row %d of the file: %s; nothing was settled", refused.Index+1, refused.Text),
			"leadferry checkpoint export --state in_doubt lists what is in doubt")
	} else if err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "%s settled, %d still in doubt; run the import again to send what may be sent and to link what was found\n",
		plural(len(decisions), "row"), db.InDoubt())
	return nil
}

// maxDecisions bounds a resolve file, in bytes.
const maxDecisions = 64 << 20

// readDecisions reads the file; further columns, such as those of an export, are
// allowed and ignored. A column that is missing must not read as "not made".
func readDecisions(path string) ([]checkpoint.Decision, error) {
	const hint = "resolve takes a CSV file, separated by commas, with the columns key and lead_id"
	f, err := os.Open(path)
	if err != nil {
		return nil, usage(fmt.Sprintf("the file cannot be read: %v", err), hint)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDecisions+1))
	if err != nil || len(data) > maxDecisions {
		return nil, usage(path+": cannot be read or is too large", hint)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	header, err := csv.NewReader(bytes.NewReader(data)).Read()
	if err != nil || !slices.Contains(header, "key") || !slices.Contains(header, "lead_id") {
		return nil, usage(path+":1: the columns key and lead_id are not both there", hint)
	}
	var lines []decided
	if err := gocsv.UnmarshalBytes(data, &lines); err != nil {
		return nil, usage(fmt.Sprintf("%s: %v", path, err), hint)
	}
	decisions := make([]checkpoint.Decision, len(lines))
	for i, l := range lines {
		d := checkpoint.Decision{Key: strings.TrimSpace(l.Key), LeadID: strings.TrimSpace(l.LeadID)}
		if d.LeadID == "exists" {
			d.LeadID, d.Exists = "", true
		}
		decisions[i] = d
	}
	return decisions, nil
}
