package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"time"

	"leadferry/importer/source"
	"leadferry/internal/cli/exit"
	"leadferry/internal/disk"
	"leadferry/internal/fetch"
)

// fetched are the inputs of a run that lie at addresses.
type fetched struct {
	ctx     context.Context
	options fetch.Options
	first   map[string]*fetch.File // by address, as the run itself reads them
	all     []*fetch.File
}

// fetches notes how inputs at addresses are reached.
func fetches(ctx context.Context, names []string, reach func(addresses []string) (fetch.Options, error)) (f fetched, err error) {
	f = fetched{ctx: ctx, first: map[string]*fetch.File{}}
	var addresses []string
	for _, name := range names {
		if fetch.IsAddress(name) {
			addresses = append(addresses, name)
		}
	}
	if len(addresses) > 0 {
		f.options, err = reach(addresses)
	}
	return f, err
}

func (f *fetched) letGo() {
	for _, one := range f.all {
		one.Close()
	}
}

// open opens a file, standard input, or what lies at an address. What is asked for once more has to be what it was.
func (in *Files) open(name string) (*source.File, error) {
	if !fetch.IsAddress(name) || disk.Exists(name) {
		return openInput(name, in.options)
	}
	got, err := fetch.Open(in.fetched.ctx, name, in.fetched.options)
	var fault *fetch.Error
	if errors.As(err, &fault) {
		return nil, exit.Usage(Shown(name)+": "+fault.Text, fault.Advice)
	}
	if err != nil {
		return nil, err
	}
	in.fetched.all = append(in.fetched.all, got)
	if in.fetched.first[name] == nil {
		in.fetched.first[name] = got
	} else if err := in.sameAsFirst(name, got); err != nil {
		return nil, err
	}
	return source.OpenStream(got.Name(), got, got.Size(), in.options)
}

// sameAsFirst refuses what is another file than the run reads, and closes it.
func (in *Files) sameAsFirst(name string, got *fetch.File) error {
	before := in.fetched.first[name]
	if before.ETag() == got.ETag() && before.Size() == got.Size() && before.Modified().Equal(got.Modified()) {
		return nil
	}
	got.Close()
	return errors.New("it is another file now than a moment before")
}

// Local are the names of files and of standard input.
func (in *Files) Local() (names []string) {
	for _, name := range in.Names {
		if !fetch.IsAddress(name) || disk.Exists(name) {
			names = append(names, name)
		}
	}
	return names
}

var errNoAge = errors.New("the server does not say when it was written (Last-Modified)")

// written is when a file was last written.
func (in *Files) written(name string) (time.Time, error) {
	if got := in.fetched.first[name]; got != nil {
		if got.Modified().IsZero() {
			return time.Time{}, errNoAge
		}
		return got.Modified(), nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// Shown is the name of an input without what is secret in it.
func Shown(name string) string {
	if fetch.IsAddress(name) && !disk.Exists(name) {
		return fetch.Shown(name)
	}
	return name
}

// Identity tells one version of an input from every other: an address by its ETag, where it has one, and else what was
// read by its hash.
func (in *Files) Identity(name string) (string, error) {
	if name == "-" {
		return "standard input", nil
	}
	var from io.ReadCloser
	var err error
	if got := in.fetched.first[name]; got != nil {
		if got.ETag() != "" {
			return "ETag " + got.ETag(), nil
		}
		var again *fetch.File
		if again, err = fetch.Open(in.fetched.ctx, name, in.fetched.options); err == nil {
			from, err = again, in.sameAsFirst(name, again)
		}
	} else {
		from, err = os.Open(name)
	}
	if err != nil {
		return "", err
	}
	defer from.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, from)
	return hex.EncodeToString(sum.Sum(nil)), err
}
