//go:build !prometheus

package report

// This file stands for metricsfile.go until go.sum knows what
// github.com/prometheus/client_golang/prometheus imports; then it goes, together
// with the build constraints of both.

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func writeGauges(path string, common map[string]string, gauges []gauge) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	gauges = slices.SortedFunc(slices.Values(gauges), func(a, b gauge) int { return strings.Compare(a.name, b.name) })
	for _, g := range gauges {
		if err := g.print(f, common); err != nil {
			return err
		}
	}
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func (g gauge) print(f *os.File, common map[string]string) error {
	if len(g.points) == 0 {
		return nil
	}
	name := metricsNamespace + "_" + g.name
	text := fmt.Sprintf("# HELP %s %s\n# TYPE %s gauge\n", name, g.help, name)
	var lines []string
	for _, p := range g.points {
		labels := maps.Clone(common)
		for i, l := range g.labels {
			labels[l] = p.labels[i]
		}
		lines = append(lines, series(name, labels)+" "+strconv.FormatFloat(p.value, 'g', -1, 64)+"\n")
	}
	slices.Sort(lines)
	_, err := f.WriteString(text + strings.Join(lines, ""))
	return err
}

func series(name string, labels map[string]string) string {
	var pairs []string
	for _, l := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, l+`="`+strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(labels[l])+`"`)
	}
	return name + "{" + strings.Join(pairs, ",") + "}"
}

func readLast(path string, labels map[string]string) (lastRuns, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return lastRuns{}, nil
	}
	if err != nil {
		return lastRuns{}, err
	}
	defer f.Close()
	found := map[string]float64{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		text, number, ok := cutLast(lines.Text(), " ")
		value, err := strconv.ParseFloat(number, 64)
		if strings.HasPrefix(text, "#") {
			continue
		}
		if !ok || err != nil {
			return lastRuns{}, errors.New("a line is no metric")
		}
		found[text] = value
	}
	value := func(name string) float64 { return found[series(metricsNamespace+"_"+name, labels)] }
	return lastRuns{success: value(lastSuccess), complete: value(lastComplete)}, lines.Err()
}

func cutLast(text, by string) (before, after string, found bool) {
	if i := strings.LastIndex(text, by); i >= 0 {
		return text[:i], text[i+len(by):], true
	}
	return text, "", false
}
