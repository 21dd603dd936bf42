package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// wrkScript has wrk send the same create again and again: no client does less work.
const wrkScript = `wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer fixed"
wrk.body = [[%s]]
`

// wrkMissing is what stands in the table where wrk is not there.
const wrkMissing = "left out: wrk is not there (Debian has it as package wrk)"

// wrk is how many requests a second wrk makes, or 0 where it is not there.
func (l *lab) wrk(ctx context.Context, s *service, connections int) (float64, error) {
	program, err := exec.LookPath("wrk")
	if err != nil {
		return 0, nil
	}
	body, err := someBody()
	if err != nil {
		return 0, err
	}
	script := l.path("wrk.lua")
	if err := os.WriteFile(script, fmt.Appendf(nil, wrkScript, body), 0o600); err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, program, "-t1", "-c"+strconv.Itoa(connections),
		fmt.Sprintf("-d%ds", int(l.options.wrk.Seconds())), "-s", script, s.url+"/v1/trunk").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w\n%s", err, out)
	}
	found := regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`).FindSubmatch(out)
	if found == nil || regexp.MustCompile(`Non-2xx`).Match(out) {
		return 0, fmt.Errorf("wrk did not measure what it should:\n%s", out)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// someBody is the request of the first row.
func someBody() ([]byte, error) {
	row := firstRow()
	return appendBody(nil, row[:], stageKeys())
}
