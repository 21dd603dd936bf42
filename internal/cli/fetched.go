package cli

import (
	"context"
	"errors"
	"net/url"
	"os"
	"time"

	"leadferry/importer/source"
	"leadferry/internal/cli/exit"
	"leadferry/internal/fetch"
)

// fetched are the inputs of a run that lie at addresses.
type fetched struct {
	ctx     context.Context
	options fetch.Options
	first   map[string]*fetch.File // by address, as the run itself reads them
	all     []*fetch.File
}

// fetches says how inputs at addresses are reached: over the proxy, and with the authorities, of the service. It shows no
// client certificate: that is for the service alone.
func (p *program) fetches(ctx context.Context, names []string) (fetched, error) {
	f := fetched{ctx: ctx, first: map[string]*fetch.File{}, options: fetch.Options{Agent: "leadferry/" + Version}}
	set := p.settings.Load()
	if set == nil || set.sandbox { // which has no network of its own
		set = &settings{line: p.line, connection: map[string]setting{"proxy": p.line.given("proxy"), "ca-file": p.line.given("ca-file")}}
	}
	for _, name := range names {
		u, err := url.Parse(name)
		if !fetch.IsAddress(name) || err != nil {
			continue // a mistake in it is told where it is opened
		}
		if _, err := set.routeTo(u); err != nil {
			return f, err
		}
		if f.options.Authorities, err = set.authorities(); err != nil {
			return f, err
		}
	}
	f.options.Proxy = func(address *url.URL) *url.URL {
		r, err := set.routeTo(address)
		if err != nil || r.proxy == nil {
			return nil
		}
		return r.proxy.URL()
	}
	return f, nil
}

func (f *fetched) letGo() {
	for _, one := range f.all {
		one.Close()
	}
}

// open opens a file, standard input, or what lies at an address. What is asked for once more has to be what it was.
func (in *inputs) open(name string) (*source.File, error) {
	if !fetch.IsAddress(name) || exists(name) {
		return openInput(name, in.options)
	}
	got, err := fetch.Open(in.fetched.ctx, name, in.fetched.options)
	var fault *fetch.Error
	if errors.As(err, &fault) {
		return nil, exit.Usage(shownName(name)+": "+fault.Text, fault.Advice)
	}
	if err != nil {
		return nil, err
	}
	in.fetched.all = append(in.fetched.all, got)
	if before := in.fetched.first[name]; before == nil {
		in.fetched.first[name] = got
	} else if before.ETag() != got.ETag() || before.Size() != got.Size() || !before.Modified().Equal(got.Modified()) {
		got.Close()
		return nil, errors.New("it is another file now than a moment before")
	}
	return source.OpenStream(got.Name(), got, got.Size(), in.options)
}

// local are the names of files and of standard input.
func (in *inputs) local() (names []string) {
	for _, name := range in.names {
		if !fetch.IsAddress(name) || exists(name) {
			names = append(names, name)
		}
	}
	return names
}

var errNoAge = errors.New("the server does not say when it was written (Last-Modified)")

// written is when a file was last written.
func (in *inputs) written(name string) (time.Time, error) {
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

// shownName is the name of an input without what is secret in it.
func shownName(name string) string {
	if fetch.IsAddress(name) && !exists(name) {
		return fetch.Shown(name)
	}
	return name
}
