package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// service is a sink that runs in a process of its own.
type service struct {
	url     string
	cmd     *exec.Cmd
	tie     io.Closer // its standard input: the sink ends when this does
	stopped bool
}

// sink starts a sink, which is there until it is stopped or the lab closes.
func (l *lab) sink(ctx context.Context, latency time.Duration) (*service, error) {
	args := []string{"sink", "-tied", "-latency", latency.String()}
	if l.random {
		args = append(args, "-random")
	}
	s := &service{cmd: exec.CommandContext(ctx, l.self, args...)}
	s.cmd.Env = append(s.cmd.Environ(), asMeasure)
	said := &listener{}
	s.cmd.Stderr = said
	tie, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.tie = tie
	l.sinks = append(l.sinks, s)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		err = errors.Join(err, s.stop()) // before what it said is read
		return nil, fmt.Errorf("the sink did not start: %w\n%s", err, said.text)
	}
	s.url = strings.TrimSpace(line)
	return s, nil
}

// stop ends the sink and waits for it.
func (s *service) stop() error {
	if s.stopped {
		return nil
	}
	s.stopped = true
	if err := s.tie.Close(); err != nil {
		return err
	}
	_ = s.cmd.Wait() // after Ctrl-C it was killed, which is no news
	return nil
}

// stats asks the sink what it has seen.
func (s *service) stats(ctx context.Context) (got stats, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/stats", nil)
	if err != nil {
		return got, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return got, err
	}
	defer res.Body.Close()
	return got, json.NewDecoder(res.Body).Decode(&got)
}
