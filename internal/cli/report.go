package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
	runpage "leadferry/importer/report/page"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/spelling"
)

func (p *program) reportCommand() *cli.Command {
	output := flags.Name("", "output", "write the page to `FILE`; - is standard output (default: report.html in the run's folder)")
	output.Aliases = []string{"o"}
	return &cli.Command{
		Name: "report", Usage: "the page of a finished run: whether it worked, how fast, what needs you", ArgsUsage: "[RUN]",
		Flags: slices.Concat([]cli.Flag{
			output,
			flags.Bool("", "open", "open the page in the browser"),
		}, connectionFlags(), fleetReportFlags()),
		Action: p.report,
	}
}

func (p *program) report(c *cli.Context) error {
	if c.Args().Len() > 1 {
		return exit.Usage("report takes one run", "its folder, its summary or its ID; without one it is the last")
	}
	to := c.String("output")
	if to == "-" && c.Bool("open") {
		return exit.Usage("--open opens a file, and -o - writes none", "leave one of them out")
	}
	if c.String("fleet") != "" {
		return p.reportFleet(c, to)
	}
	from, err := runNamed(c.Args().First())
	if err != nil {
		return err
	}
	s, err := report.Read(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exit.Usage(from+" is not there, or no finished run is in it", "RUN is the folder that a run left, its summary.json or its ID; leadferry report alone takes the last of "+report.RunsFolder)
	case err != nil:
		return exit.Usage(err.Error(), "RUN is the folder that a run left, or its summary.json; runs of another version have a report.html of their own in it")
	}
	if to == "" {
		if to, err = besides(s.SummaryPath); err != nil {
			return err
		}
	}
	if err := p.writePage(c, s, to); err != nil || to == "-" {
		return err
	}
	fmt.Fprintln(&p.out, report.EscapeLine(to))
	return nil
}

// writePage makes the page, in the place of an older one at most, and opens it where that is asked for.
func (p *program) writePage(c *cli.Context, s *report.Summary, to string) error {
	if to == "-" {
		return runpage.Write(&p.out, s)
	}
	if err := p.keepPage(to); err != nil {
		return err
	}
	if err := report.WriteFile(to, 0o600, func(w io.Writer) error { return runpage.Write(w, s) }); err != nil {
		return exit.Stopped(fmt.Sprintf("the page could not be written: %v", err), "name another place with -o FILE")
	}
	if c.Bool("open") {
		p.warnOf("the page could not be opened", terminal.OpenFile(to))
	}
	return nil
}

// runIDs are those of runs: eight hexadecimal digits.
var runIDs = spelling.Form(`^[0-9a-f]{8}$`)

// runNamed is the folder or the summary of a run that is named by it or by its ID, or of the
// last one.
func runNamed(name string) (string, error) {
	if name == "" {
		last := report.Newest([]string{report.RunsFolder}, 1)
		if len(last) == 0 {
			return "", exit.Usage("there is no finished run in "+report.RunsFolder+" here", "name the run's folder, or start this where its "+report.RunsFolder+" stands")
		}
		return last[0].SummaryPath, nil
	}
	if _, err := os.Stat(name); err != nil && runIDs().MatchString(name) {
		if found, _ := filepath.Glob(filepath.Join(report.RunsFolder, "*-"+name)); len(found) == 1 {
			return found[0], nil
		}
	}
	return name, nil
}

// besides is where a page stands whose summary lies in its run's folder.
func besides(summary string) (string, error) {
	if report.RunFile(filepath.Base(summary)) != "summary" {
		return "", exit.Usage("the summary "+summary+" lies in no run's folder, so that the page has no place of its own", "name a file with -o FILE, such as -o page.html")
	}
	return filepath.Join(filepath.Dir(summary), "report.html"), nil
}

// keepPage refuses to write over a file that is no page.
func (p *program) keepPage(to string) error {
	named := placeAt(to, "-o")
	for _, q := range p.keptPlaces(nil, nil) {
		if named.is(&q) {
			return exit.Usage("-o "+to+" would take the place of "+q.path+", which is "+q.what, "name another place")
		}
	}
	f, err := os.Open(to)
	if err != nil {
		return nil // nothing is there, or writing says why not
	}
	defer f.Close()
	const page = "<!doctype html>"
	head := make([]byte, len(page))
	if n, _ := io.ReadFull(f, head); n == 0 || bytes.EqualFold(head, []byte(page)) {
		return nil
	}
	return exit.Usage(to+" is there already, and is no page", "name a file that is not there yet, or move that one away")
}

// fleetReportFlags name the ledger in which a fleet's report is.
func fleetReportFlags() []cli.Flag {
	return []cli.Flag{
		flags.Name(running, "fleet", "report all workers of the fleet `NAME` as one run, from the ledger"),
		flags.Name(running, "checkpoint", "read the ledger at this postgres:// `ADDRESS`"),
		flags.Text(files, "summary", "with --fleet: - prints the summary as JSON"),
	}
}

// summarizeFleet sums up the workers of a fleet from their ledger.
func (p *program) summarizeFleet(c *cli.Context) (*report.Summary, error) {
	name, address := c.String("fleet"), c.String("checkpoint")
	if !checkpoint.IsAddress(address) {
		return nil, exit.Usage("the report of a fleet comes from its ledger, which --checkpoint does not name", "add --checkpoint postgres://HOST/DATABASE")
	}
	target := p.target()
	if target.LeadsURL == "" || target.TrunkID == "" {
		at, err := p.ledger(c).Existing() // the only one in the database, if it is
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
		return nil, exit.Usage("the ledger knows no fleet "+name, hint)
	}
	s, err := report.Fleet(name, shards, members)
	if err != nil {
		return nil, err
	}
	s.Target = report.Target(target)
	return s, nil
}

// reportFleet writes summary and page of a fleet, as a run would have left them, and ends as that run would have.
func (p *program) reportFleet(c *cli.Context, to string) error {
	if c.Args().Present() {
		return exit.Usage("--fleet names what the report is about, and RUN does too", "leave one of them out")
	}
	s, err := p.summarizeFleet(c)
	if err != nil {
		return err
	}
	dir := filepath.Join(report.RunsFolder, "fleets", s.Fleet) // not among the runs, which tell what they have seen of the ledger
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return exit.Stopped(fmt.Sprintf("the report's folder could not be made: %v", err), "start this where it can be made")
	}
	s.SummaryPath, s.PagePath = filepath.Join(dir, "summary.json"), cmp.Or(to, filepath.Join(dir, "report.html"))
	if err := report.WriteFile(s.SummaryPath, 0o600, s.WriteJSON); err != nil {
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
