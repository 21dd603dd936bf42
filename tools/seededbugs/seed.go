package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
)

// seeds are the new files of the bugs. Their names keep them from being built with the tools.
//
//go:embed seeds
var seeds embed.FS

// changed are the files of a bug as they are with it, by their paths. read gives them as they are without.
func (b *bug) changed(read func(file string) ([]byte, error)) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range b.edits {
		text, known := files[e.file]
		if !known {
			original, err := read(e.file)
			if err != nil {
				return nil, err
			}
			text = string(original)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("%s: %q stands in %s %d times, not once\nhint: the code has changed; make the same mistake in what it is now", b.name, e.old, e.file, n)
		}
		files[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	for _, a := range b.adds {
		text, err := seeds.ReadFile(path.Join("seeds", a.seed))
		if err != nil {
			return nil, err
		}
		files[a.file] = string(text)
	}
	return files, nil
}

// plant makes the mistake in a copy of the sources; weed takes it out again.
func (t tree) plant(b *bug) (weed func() error, err error) {
	files, err := b.changed(func(file string) ([]byte, error) { return os.ReadFile(t.path(file)) })
	if err != nil {
		return nil, err
	}
	before := map[string][]byte{}
	for file := range files {
		text, err := os.ReadFile(t.path(file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		before[file] = text
	}
	weed = func() error {
		var all []error
		for file, text := range before {
			if text == nil {
				all = append(all, os.Remove(t.path(file)))
				continue
			}
			all = append(all, os.WriteFile(t.path(file), text, 0o600))
		}
		return errors.Join(all...)
	}
	for file, text := range files {
		if err := os.WriteFile(t.path(file), []byte(text), 0o600); err != nil {
			return nil, errors.Join(err, weed())
		}
	}
	return weed, nil
}
