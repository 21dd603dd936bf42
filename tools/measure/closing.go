package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What a service is asked that closes connections without a word.
var (
	closings  = [...]time.Duration{0, time.Second / 2, time.Second, 2 * time.Second, 5 * time.Second}
	latencies = [...]time.Duration{0, 50 * time.Millisecond, 800 * time.Millisecond}
)

// closing prints how many rows fall in doubt where the service closes connections unannounced: after each answer (0), or
// when they have rested for a time. Lines of the table are times, columns latencies: of the service, or of the way to it,
// where a close is seen late and what crosses it is lost. What the service made and what the program counts must agree.
type closing struct {
	lab     *lab
	rows    int
	workers int
	rate    string
	far     bool // the latency is that of the way
	input   string
}

func runClosing(ctx context.Context, args []string, s streams) (err error) {
	set := flags("closing", s)
	c := closing{}
	set.IntVar(&c.rows, "rows", 400, "rows a run")
	set.IntVar(&c.workers, "c", 8, "requests in flight")
	set.StringVar(&c.rate, "rate", "0", "requests a second at most (0: no limit): slower ones rest for longer")
	set.BoolVar(&c.far, "far", false, "the latency is that of the way there and back, not of the service")
	program := set.String("program", "", "leadferry `FILE` to run (default: built from these sources)")
	if err := set.Parse(args); err != nil {
		return err
	}
	c.lab, err = newLab(ctx, options{}, s.err)
	defer func() { err = errors.Join(err, c.lab.close()) }()
	if err != nil {
		return err
	}
	if *program != "" {
		c.lab.program = *program
	}
	if c.input, err = c.lab.input(leadFile{to: c.rows}); err != nil {
		return err
	}
	return c.table(ctx, s)
}

// table runs all cells at once: most of it is waiting.
func (c *closing) table(ctx context.Context, s streams) error {
	var cells [len(closings)][len(latencies)]string
	var errs [len(closings)][len(latencies)]error
	var wait sync.WaitGroup
	for i, after := range closings {
		for k, latency := range latencies {
			wait.Go(func() { cells[i][k], errs[i][k] = c.cell(ctx, after, latency) })
		}
	}
	wait.Wait()
	fmt.Fprintf(s.out, "Rows in doubt of %d, %d in flight, rate %s\n\n| closed after | latency 0 | 50 ms | 800 ms |\n|---|---|---|---|\n", c.rows, c.workers, c.rate)
	var err error
	for i, after := range closings {
		fmt.Fprintf(s.out, "| %s | %s |\n", after, strings.Join(cells[i][:], " | "))
		err = errors.Join(err, errors.Join(errs[i][:]...))
	}
	return err
}

func (c *closing) cell(ctx context.Context, after, latency time.Duration) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	served := newSink(latency, false)
	served.closes, served.after = true, after
	ctx, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { _ = served.serve(ctx, l) })
	defer wait.Wait()
	defer stop()
	at := l.Addr().String()
	if c.far {
		served.latency = 0
		if at, err = faraway(ctx, at, latency/2); err != nil {
			return "", err
		}
	}
	w, err := c.lab.world(&service{url: "http://" + at})
	if err != nil {
		return "", err
	}
	summary := w.dir + "/summary.json"
	cmd := w.command(ctx, "import", "--yes", "--out", "none", "--summary", summary, "--max-in-doubt", "0",
		"-c", strconv.Itoa(c.workers), "--rate", c.rate, "-m", c.lab.path("plain.yaml"), c.input)
	said, _ := cmd.CombinedOutput() // the exit code says that there are doubts
	text, err := os.ReadFile(summary)
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, said)
	}
	var s struct {
		Rows     outcomes
		Duration float64 `json:"duration_s"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return "", err
	}
	seen := served.stats()
	cell := fmt.Sprintf("%d", s.Rows["in_doubt"])
	if missing := c.rows - s.Rows["created"] - s.Rows["in_doubt"]; missing != 0 {
		cell += fmt.Sprintf(" (%d not sent)", missing)
	}
	if made := int(seen.Creates); made < s.Rows["created"] || made > s.Rows["created"]+s.Rows["in_doubt"] {
		cell += fmt.Sprintf(" **%d made**", made)
	}
	c.lab.say("closed after %s, latency %s: %v in %.1f s; %d connections, %d other requests", after, latency, s.Rows, s.Duration, seen.Connections, seen.Refused)
	return cell, nil
}

// faraway is the address of a way to another one on which everything takes a time, an end too.
func faraway(ctx context.Context, to string, each time.Duration) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				time.Sleep(2 * each) // to connect
				far, err := net.Dial("tcp", to)
				if err != nil {
					near.Close()
					return
				}
				var both sync.WaitGroup
				both.Go(func() { carry(near, far, each) })
				both.Go(func() { carry(far, near, each) })
				both.Wait()
				near.Close()
				far.Close()
			}()
		}
	}()
	return l.Addr().String(), nil
}

// carry takes what comes from one end to the other one, each part as late as the others.
func carry(from, to net.Conn, late time.Duration) {
	type part struct {
		bytes []byte
		due   time.Time
	}
	parts := make(chan part, 1000)
	go func() {
		defer close(parts)
		for {
			room := make([]byte, 64<<10)
			n, err := from.Read(room)
			parts <- part{room[:n], time.Now().Add(late)}
			if err != nil {
				return
			}
		}
	}()
	for p := range parts {
		time.Sleep(time.Until(p.due))
		if len(p.bytes) == 0 {
			_ = to.(*net.TCPConn).CloseWrite()
		}
		_, _ = to.Write(p.bytes) // to one that has closed, as the network would
	}
}
