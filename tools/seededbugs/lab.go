package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// lab is a folder with copies of the sources, one for each bug that is tried at a time.
type lab struct {
	dir    string
	copies []tree
}

// newLab copies the sources as they stand now. The caller closes the lab, also after an error.
func newLab(ctx context.Context, copies int) (*lab, error) {
	l := &lab{}
	root, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return l, err
	}
	root = strings.TrimSuffix(root, "\n")
	list, err := output(ctx, root, "git", "ls-files", "-co", "--exclude-standard", "-z")
	if err != nil {
		return l, err
	}
	if l.dir, err = os.MkdirTemp("", "leadferry-seededbugs-"); err != nil {
		return l, err
	}
	from := root
	for i := range copies {
		beside := filepath.Join(l.dir, strconv.Itoa(i+1))
		t := tree(filepath.Join(beside, "main"))
		if err := t.fill(from, strings.Split(strings.TrimSuffix(list, "\x00"), "\x00")); err != nil {
			return l, err
		}
		from = string(t) // somebody may be writing to the sources
		if err := share(filepath.Join(root, "..", "shared"), filepath.Join(beside, "shared")); err != nil {
			return l, err
		}
		l.copies = append(l.copies, t)
	}
	return l, nil
}

// share puts the files that some tests read beside a copy, where they are at hand.
func share(files, link string) error {
	if _, err := os.Stat(files); err != nil {
		return nil // those tests are skipped
	}
	return os.Symlink(files, link)
}

func (l *lab) close() error {
	if l.dir == "" {
		return nil
	}
	return os.RemoveAll(l.dir)
}

// output is what a command prints.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	text, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w\n%s", c, err, exit.Stderr)
	}
	return string(text), err
}

// tree is the folder of a copy.
type tree string

func (t tree) path(file string) string { return filepath.Join(string(t), filepath.FromSlash(file)) }

// fill copies files; those that are gone since they were listed, or are to go with the next commit, are left out.
func (t tree) fill(from string, files []string) error {
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(from, filepath.FromSlash(file)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(t.path(file)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(t.path(file), text, mode(filepath.Join(from, filepath.FromSlash(file))))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mode keeps scripts executable.
func mode(path string) os.FileMode {
	if info, err := os.Stat(path); err == nil && info.Mode()&0o100 != 0 {
		return 0o700
	}
	return 0o600
}
