package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
	runpage "leadferry/importer/report/page"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/cli/terminal"
)

func (p *program) report(c *cli.Context) error {
	to, fleet := c.String("output"), c.String("fleet")
	switch {
	case c.NArg() > 1:
		return exit.Usage("report takes one run", "its folder, its summary or its ID; without one it is the last")
	case to == "-" && c.Bool("open"):
		return exit.Usage("--open opens a file, and -o - writes none", "leave one of them out")
	case fleet != "" && c.Args().Present():
		return exit.Usage("--fleet names what the report is about, and RUN does too", "leave one of them out")
	case fleet != "":
		return p.reportFleet(c, to)
	}
	from, err := runNamed(c.Args().First())
	if err != nil {
		return err
	}
	const hint = "RUN is the folder that a run left, its summary.json or its ID; without it the last run is meant"
	s, err := report.Read(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exit.Usage(from+" is not there, or no finished run is in it", hint)
	case err != nil:
		return exit.Usage(err.Error(), hint)
	case to == "" && report.RunFile(filepath.Base(s.SummaryPath)) != "summary":
		return exit.Usage("the summary "+s.SummaryPath+" lies in no run's folder",
			"name a file with -o FILE, such as -o page.html")
	}
	to = cmp.Or(to, filepath.Join(filepath.Dir(s.SummaryPath), "report.html"))
	if err := p.writePage(c, s, to); err != nil || to == "-" {
		return err
	}
	return p.print(report.EscapeLine(to) + "\n")
}

// runNamed is the folder or the summary of a run that is named by it or by its ID, or of the last one.
func runNamed(name string) (string, error) {
	if name == "" {
		last := report.Newest([]string{report.RunsFolder}, 1)
		if len(last) == 0 {
			return "", exit.Usage("there is no finished run in "+report.RunsFolder+" here", "name the run's folder")
		}
		return last[0].SummaryPath, nil
	}
	if _, err := os.Stat(name); err != nil {
		if found, _ := filepath.Glob(filepath.Join(report.RunsFolder, "*-"+name)); len(found) == 1 {
			return found[0], nil
		}
	}
	return name, nil
}

// writePage makes the page, in the place of an older one, and opens it where that is asked for.
func (p *program) writePage(c *cli.Context, s *report.Summary, to string) error {
	if to == "-" {
		return runpage.Write(&p.out, s)
	}
	if err := p.keepApart(c, []place{placeAt(to, "-o")}, nil); err != nil {
		return err
	}
	if err := report.WriteFile(to, func(w io.Writer) error { return runpage.Write(w, s) }); err != nil {
		return exit.Stopped(fmt.Sprintf("the page could not be written: %v", err), "name another place with -o FILE")
	}
	if c.Bool("open") {
		p.warnOf("the page could not be opened", terminal.OpenFile(to))
	}
	return nil
}

// reportFleet writes summary and page of a fleet, as a run would have left them, and ends as that run would have.
func (p *program) reportFleet(c *cli.Context, to string) error {
	s, err := p.summarizeFleet(c)
	if err != nil {
		return err
	}
	dir := filepath.Join(report.RunsFolder, "fleets", s.Fleet) // not among the runs, which are witnesses
	s.SummaryPath, s.PagePath = filepath.Join(dir, "summary.json"), cmp.Or(to, filepath.Join(dir, "report.html"))
	if err = os.MkdirAll(dir, 0o700); err == nil {
		err = report.WriteFile(s.SummaryPath, s.WriteJSON)
	}
	if err != nil {
		return exit.Stopped(fmt.Sprintf("the report could not be written: %v", err), "start this where it can be made")
	}
	if err := p.writePage(c, s, s.PagePath); err != nil {
		return err
	}
	if p.code = s.ExitCode; to != "-" {
		p.show(c, s, c.String("summary") == "-")
	}
	return nil
}

// summarizeFleet sums up the workers of a fleet from their ledger.
func (p *program) summarizeFleet(c *cli.Context) (*report.Summary, error) {
	name := c.String("fleet")
	if !checkpoint.IsAddress(c.String("checkpoint")) {
		return nil, exit.Usage("--checkpoint does not name the ledger of the fleet",
			"add --checkpoint postgres://HOST/DATABASE")
	}
	at, err := p.ledger(c).Existing()
	if err != nil {
		return nil, err
	}
	db, err := at.Open(ledger.How{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	store := db.(*postgres.Store)
	shards, members, err := store.Members(context.Background(), name)
	if err != nil {
		return nil, err
	}
	if shards == 0 {
		return nil, exit.Usage("the ledger knows no fleet "+name,
			"leadferry checkpoint workers lists workers with the names of their fleets")
	}
	s, err := report.Fleet(name, shards, members)
	if err == nil {
		s.Target = report.Target(at.Target)
	}
	return s, err
}
