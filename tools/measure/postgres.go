package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// server is a PostgreSQL of its own, with a socket in its folder and no port. Its settings are those that it comes with,
// but for the counting of statements.
type server struct {
	dir, bin  string
	cmd       *exec.Cmd
	databases int
}

// errNoPostgres is why the numbers of the ledger in PostgreSQL cannot be taken.
var errNoPostgres = errors.New("PostgreSQL is not installed: apt install postgresql")

// postgres starts a server, which is there until the lab closes.
func (l *lab) postgres(ctx context.Context) (*server, error) {
	if l.server != nil {
		return l.server, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return nil, errNoPostgres
	}
	dir, err := os.MkdirTemp("/tmp", "pg") // the names of sockets are short
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, bin: filepath.Dir(slices.Max(found))}
	l.server = s
	if err := giveAway(dir); err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if out, err := s.program(ctx, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	s.cmd = s.program(ctx, "postgres", "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB",
		"-c", "shared_preload_libraries=pg_stat_statements", "-c", "log_destination=stderr")
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	var said bytes.Buffer
	s.cmd.Stderr = &said
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return nil, err
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err := s.ask(ctx, "postgres", "CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
		if err == nil {
			return s, nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return nil, fmt.Errorf("postgres did not start: %w", err)
		}
	}
}

func (s *server) program(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	asServerUser(cmd)
	return cmd
}

// ask carries out a statement and returns what it gives.
func (s *server) ask(ctx context.Context, database, statement string) (string, error) {
	out, err := s.program(ctx, "psql", "-h", s.dir, "-U", "postgres", "-d", database, "-XAtqc", statement).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("psql: %w\n%s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// database makes an empty database and returns its address.
func (s *server) database(ctx context.Context) (address string, err error) {
	s.databases++
	name := fmt.Sprint("d", s.databases)
	_, err = s.ask(ctx, "postgres", "CREATE DATABASE "+name)
	return "postgres://postgres@/" + name + "?host=" + url.QueryEscape(s.dir), err
}

// stop ends the server and removes it.
func (s *server) stop() error {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(os.Interrupt) // after Ctrl-C it has ended already
		_ = s.cmd.Wait()
	}
	return os.RemoveAll(s.dir)
}
