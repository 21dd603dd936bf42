package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// wrkScript has wrk send the same request again and again: no client does less work.
const wrkScript = `wrk.method = "%s"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer fixed"
wrk.body = [[%s]]
`

// wrkMissing is what stands in the table where wrk is not there.
const wrkMissing = "left out: wrk is not there (Debian has it as package wrk)"

// wrk is how many creates a second wrk makes, or 0 where it is not there.
func (l *lab) wrk(ctx context.Context, s *service, connections int) (float64, error) {
	body, err := someBody()
	if err != nil {
		return 0, err
	}
	return l.wrkSends(ctx, connections, "POST", s.url+"/v1/trunk", body)
}

// wrkUpdates is how many updates of an ExternalID a second wrk makes, or 0.
func (l *lab) wrkUpdates(ctx context.Context, s *service, connections int) (float64, error) {
	return l.wrkSends(ctx, connections, "PATCH", s.url+"/v3/lead/3d0f8a52-7c41-4e19-9b06-58a1c2d7e4f3", []byte(`{"ExternalID":"C-000000001"}`))
}

func (l *lab) wrkSends(ctx context.Context, connections int, method, url string, body []byte) (float64, error) {
	program, err := exec.LookPath("wrk")
	if err != nil {
		return 0, nil
	}
	script := l.path("wrk.lua")
	if err := os.WriteFile(script, fmt.Appendf(nil, wrkScript, method, body), 0o600); err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, program, "-t1", "-c"+strconv.Itoa(connections),
		fmt.Sprintf("-d%ds", int(l.options.wrk.Seconds())), "-s", script, url).CombinedOutput()
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
