package report

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"leadferry/internal/disk"
	"leadferry/internal/spelling"
)

// CheckMetrics refuses a device, a pipe or "-" as the file of metrics: it is replaced, not written into.
func CheckMetrics(path string) error {
	info, err := os.Stat(path)
	switch {
	case path == "-":
		return errors.New("only the summary can go to standard output")
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file", path)
	}
	return err
}

const (
	namespace    = "leadferry_"
	inProgress   = "run_in_progress"
	lastComplete = "last_complete_timestamp_seconds"
)

// Refused is the Outcome of a run that never began.
const Refused = "refused"

// WriteMetrics replaces the file of --metrics: what alerts need of the last run, as gauges in the Prometheus text
// format for node_exporter's textfile collector. A run that begins writes it with leadferry_run_in_progress 1, and in
// the end with 0 and its counts, so a run that was killed is one in progress. When the last run came to its end is
// carried on from the file that is there. All series have the labels command, target and mapping; each schedule needs a
// file of its own. It is for all to read: no text of a row is in it. An error says what could not be read of the old
// file, or that the new one could not be written; the run need not end for it.
func WriteMetrics(path string, s *Summary) error {
	old, last, unread := lastRun(path) // last: when the last run with these labels came to its end
	if unread != nil {
		unread = fmt.Errorf("read the metrics of the last run, so that it is not known when it was: %w", unread)
	}
	labels := map[string]string{
		"command": s.Command, "target": s.Target.String(),
		"mapping": strings.ToValidUTF8(filepath.Base(s.Mapping.Path), "?"),
	}
	if old != nil && (s.Target.LeadsURL == "" || s.Mapping.Path == "") { // of a command that was refused
		labels["target"], labels["mapping"] = old["target"], old["mapping"]
	}
	if !maps.Equal(old, labels) {
		last = 0
	}
	if s.Outcome == "complete" || s.Outcome == "attention" {
		last = seconds(s.FinishedAt)
	}
	g, progress := gauges{labels: labels}, 1.0
	if s.Outcome != Running && s.Outcome != Refused {
		g.counts(s)
	}
	if last > 0 {
		g.set(lastComplete, "Unix time at which the last run ended that came to the end of its input, whatever became "+
			"of the rows.", last)
	}
	g.set("run_start_timestamp_seconds", "Unix time at which the run began.", seconds(s.StartedAt))
	if s.Outcome != Running {
		progress = 0
		g.set("run_exit_code", "Exit code of the run: 0 no row needs attention, 1 some do, 2 usage, 3 stopped early, "+
			"4 checkpoint, 5 rows in doubt, 130 interrupted.", float64(s.ExitCode))
	}
	g.set(inProgress, "Whether the run goes on: 1 also when it was killed.", progress)
	slices.Sort(g.texts)
	left, err := disk.Replace(path, 0o644, []byte(strings.Join(g.texts, "")))
	if err != nil {
		if left != path {
			_ = os.Remove(left)
		}
		return errors.Join(unread, fmt.Errorf("write the metrics: %w", err))
	}
	return unread
}

// lastRun is what the file at path says of the last run: its labels, nil where no run has written it, and when it came
// to its end, 0 where that is not known. No file says nothing.
func lastRun(path string) (labels map[string]string, complete float64, err error) {
	if err := CheckMetrics(path); err != nil {
		return nil, 0, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		found := series().FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "#") && strings.HasSuffix(line, "\n"):
			continue
		case found == nil:
			return nil, 0, fmt.Errorf("line %d is no metric", number)
		}
		switch value, err := strconv.ParseFloat(found[3], 64); {
		case err != nil:
			return nil, 0, fmt.Errorf("line %d has no number", number)
		case found[1] == namespace+lastComplete:
			complete = value
		case found[1] == namespace+inProgress:
			labels = map[string]string{}
			for _, of := range pair().FindAllStringSubmatch(found[2], -1) {
				labels[of[1]] = unescaped.Replace(of[2])
			}
		}
	}
	return labels, complete, nil
}

// A series is a line with a name, labels and a value; in the values of labels three characters are escaped.
var (
	series    = spelling.Form(`^([a-zA-Z_:][\w:]*)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)\n$`)
	pair      = spelling.Form(`(\w+)="((?:[^"\\]|\\.)*)"`)
	escaped   = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	unescaped = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\"`, `"`)
)

// IsMetrics reports whether a file of metrics is at path, and nothing else.
func IsMetrics(path string) bool {
	labels, _, err := lastRun(path)
	return err == nil && labels != nil
}

// gauges are what the file holds, a text for each, all with these labels.
type gauges struct {
	labels map[string]string
	texts  []string
}

func (g *gauges) set(name, help string, value float64) {
	setEach(g, name, help, "", map[string]float64{"": value})
}

// setEach sets a gauge, or one series of it for each value of a label.
func setEach[N int | float64](g *gauges, name, help, label string, values map[string]N) {
	name = namespace + name
	text := fmt.Sprintf("# HELP %s %s\n# TYPE %[1]s gauge\n", name, help)
	for _, of := range slices.Sorted(maps.Keys(values)) {
		labels := maps.Clone(g.labels)
		if label != "" {
			labels[label] = of
		}
		var pairs []string
		for _, label := range slices.Sorted(maps.Keys(labels)) {
			pairs = append(pairs, label+`="`+escaped.Replace(labels[label])+`"`)
		}
		value := strconv.FormatFloat(float64(values[of]), 'g', -1, 64)
		text += name + "{" + strings.Join(pairs, ",") + "} " + value + "\n"
	}
	g.texts = append(g.texts, text)
}

// counts adds those of a run. Every outcome has its series, those of no row too, so that each goes on from run to run.
func (g *gauges) counts(s *Summary) {
	rows, n := s.Rows.ByName(), s.Requests
	delete(rows, "read")
	setEach(g, "run_rows", "Rows of the run by outcome; they add up to the rows read.", "outcome", rows)
	setEach(g, "run_requests", "Requests of the run by kind, further tries included.", "kind",
		map[string]int{"create": n.Create, "update": n.Update, "token": n.Token})
	if a := s.Asks; a != nil {
		setEach(g, "run_attention", "Rows that need attention, and those of them that did not in the run before.",
			"rows", map[string]int{"all": a.Rows, "new": a.New})
	}
	if r := s.Reconciliation; r != nil && r.Sample != nil {
		bounds := map[string]float64{"measured": r.Sample.Share, "low": r.Sample.Low, "high": r.Sample.High}
		setEach(g, "run_sample_drift_ratio", "Share of sampled leads that differ, and its 95 % interval.",
			"bound", bounds)
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
