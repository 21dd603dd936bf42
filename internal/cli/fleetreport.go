package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
	runpage "leadferry/importer/report/page"
)

// fleetReportFlags name the ledger in which a fleet's report is.
func fleetReportFlags() []cli.Flag {
	return []cli.Flag{
		nameFlag(running, "fleet", "all workers of the fleet `NAME` as one run, from the ledger"),
		nameFlag(running, "checkpoint", "the postgres:// `ADDRESS` of the fleet's ledger"),
		textFlag(files, "summary", "with --fleet: - prints the summary as JSON"),
	}
}

// summarizeFleet sums up the workers of a fleet from their ledger.
func (p *program) summarizeFleet(c *cli.Context) (*report.Summary, error) {
	name, address := c.String("fleet"), c.String("checkpoint")
	if !postgres.IsAddress(address) {
		return nil, usage("the report of a fleet comes from its ledger, which --checkpoint does not name", "add --checkpoint postgres://HOST/DATABASE")
	}
	target := p.target()
	if target.LeadsURL == "" || target.TrunkID == "" {
		at, err := p.existing(c) // the only one in the database, if it is
		if err != nil {
			return nil, err
		}
		target = at.Target
	}
	store, err := postgres.Open(address, target, postgres.Options{ReadOnly: true, Require: true, Command: "report"})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	shards, members, err := store.Members(context.Background(), name)
	if err != nil {
		return nil, err
	}
	if shards == 0 {
		names, err := store.Fleets(context.Background())
		hint := "the ledger knows no fleet yet"
		if err == nil && len(names) > 0 {
			hint = "the newest fleets are " + strings.Join(names, ", ")
		}
		return nil, usage("the ledger knows no fleet "+name, hint)
	}
	var workers []report.Worker
	for _, m := range members {
		w := report.Worker{Shard: m.Shard, Run: m.Run, Started: m.Started, Last: m.Last, Newest: m.Newest}
		if err := report.ParseWorker(&w, m.Rows, m.Summary); err != nil {
			return nil, err
		}
		workers = append(workers, w)
	}
	s := report.Fleet(name, shards, workers)
	s.Target = report.Target(target)
	return s, nil
}

// reportFleet writes summary and page of a fleet, as a run would have left them, and ends as that run would have.
func (p *program) reportFleet(c *cli.Context, to string) error {
	if c.Args().Present() {
		return usage("--fleet names what the report is about, and RUN does too", "leave one of them out")
	}
	s, err := p.summarizeFleet(c)
	if err != nil {
		return err
	}
	dir := filepath.Join(runsFolder, "fleets", s.Fleet) // not among the runs, which tell what they have seen of the ledger
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return stopped(fmt.Sprintf("the report's folder could not be made: %v", err), "start this where it can be made")
	}
	s.SummaryPath, s.PagePath = filepath.Join(dir, "summary.json"), cmp.Or(to, filepath.Join(dir, "report.html"))
	write := func(path string, content func(io.Writer) error) {
		if err == nil {
			err = report.WriteFile(path, content)
		}
	}
	write(s.SummaryPath, s.WriteJSON)
	if to != "-" {
		if err == nil {
			err = p.keepPage(s.PagePath)
		}
		write(s.PagePath, func(w io.Writer) error { return runpage.Write(w, s) })
	}
	if err != nil {
		return stopped(fmt.Sprintf("the report could not be written: %v", err), "name another place with -o FILE")
	}
	p.code = s.ExitCode
	if to == "-" {
		return runpage.Write(p.Out, s)
	}
	if c.Bool("open") {
		p.warnOf("the page could not be opened", openFile(s.PagePath))
	}
	return p.show(c, s, c.String("summary") == "-")
}
