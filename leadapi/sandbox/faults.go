package sandbox

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"leadferry/internal/spelling"
)

// FaultHelp is the grammar of Options.Faults.
//
//go:embed faults.txt
var FaultHelp string

// fault is one thing that goes wrong, and when.
type fault struct {
	kinds  []string
	text   string // as it was written, without kind and rate
	name   string // without -stored and -retry
	status int    // of the name, when it is one
	stored bool   // the request is applied
	retry  bool   // the answer has a Retry-After
	pause  time.Duration

	percent     float64
	every, only int
	seen        int // requests of its kinds so far
}

type faults struct {
	retryAfter string
	seed       uint64

	mu     sync.Mutex
	random *rand.Rand
	list   []*fault
}

func parseFaults(spec string) (*faults, error) {
	fs := &faults{retryAfter: "1"}
	for item := range strings.SplitSeq(spec, ",") {
		item = strings.TrimSpace(item)
		name, value, setting := strings.Cut(item, "=")
		var err error
		switch {
		case item == "":
		case !setting:
			err = fs.add(item)
		case name == "retry-after":
			fs.retryAfter = value
		case name != "seed":
			err = errors.New("settings are seed and retry-after")
		default:
			if fs.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
				err = errors.New("a seed is a whole number")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("sandbox: the fault %q is not understood: %w", item, err)
		}
	}
	fs.random = rand.New(rand.NewPCG(fs.seed, fs.seed))
	return fs, nil
}

// faultForm is that of a fault: its kind, name and endings, its rate in one of three ways, and its duration.
var faultForm = spelling.Form(`^(?:([a-z]+)\.)?([0-9a-z-]+?)(-stored)?(-retry)?(?::([0-9.]+)%|/([0-9]+)|#([0-9]+))(?::(.*))?$`)

func (fs *faults) add(item string) (err error) {
	m := faultForm().FindStringSubmatch(item)
	if m == nil {
		return errors.New("it is not of the form NAME:P%, NAME/N or NAME#N")
	}
	f := &fault{kinds: []string{"create", "update"}, text: m[2] + m[3] + m[4], name: m[2]}
	f.stored, f.retry = m[3] != "", m[4] != ""
	f.percent, _ = strconv.ParseFloat(m[5], 64)
	f.every, _ = strconv.Atoi(m[6])
	f.only, _ = strconv.Atoi(m[7])
	if f.name == "no-match" || f.name == "no-organization" {
		f.kinds = []string{"create"}
	}
	if m[1] != "" {
		f.kinds = []string{m[1]}
	}
	if m[8] != "" {
		f.pause, err = time.ParseDuration(m[8])
	}
	fs.list = append(fs.list, f)
	switch {
	case f.percent > 100 || m[5] == "" && f.every+f.only < 1:
		return errors.New("its rate is not from 0% to 100%, or a whole number from 1")
	case !slices.ContainsFunc(endpoints, func(e endpoint) bool { return e.kind == f.kinds[0] }):
		return errors.New("the kinds are create, update, token, login and client")
	case err != nil || f.pause < 0:
		return errors.New("its duration is not of a form like 3s or 200ms")
	}
	return f.named()
}

// named checks the name, which may be a status.
func (f *fault) named() error {
	status, err := strconv.Atoi(f.name)
	switch {
	case err == nil && status >= 200 && status <= 599 && len(f.name) == 3:
		f.status, f.retry = status, f.retry || status == http.StatusTooManyRequests
	case f.retry:
		return errors.New("-retry goes with a status from 200 to 599")
	case f.name == "no-match" && !f.stored:
		f.status = http.StatusUnprocessableEntity
	case f.name == "drop" || f.name == "hang" || f.name == "revoke" && !f.stored:
	case f.stored || !slices.Contains(faultNames, f.name):
		return errors.New("there is no fault of this name")
	default:
		f.stored = true
	}
	return nil
}

// pick counts a request of a kind and returns the fault that hits it, or nil.
func (fs *faults) pick(kind string) (hit *fault) {
	if len(fs.list) == 0 {
		return nil
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.list {
		if !slices.Contains(f.kinds, kind) {
			continue
		}
		f.seen++
		// Each fault draws for each request: one that is hit by another changes nothing for the rest.
		drawn := f.percent > 0 && fs.random.Float64()*100 < f.percent
		if drawn || f.seen == f.only || f.every > 0 && f.seen%f.every == 0 {
			hit = cmp.Or(hit, f)
		}
	}
	return hit
}

// answer is what a fault with a status answers instead of the service.
func (fs *faults) answer(f *fault) answer {
	a := answer{status: f.status, header: map[string]string{}}
	if f.status >= 300 && f.status != http.StatusNotModified {
		a = (&refusal{status: f.status, reason: "the sandbox was asked for this fault"}).answer()
	}
	if f.retry && fs.retryAfter != "none" {
		a.header["Retry-After"] = fs.retryAfter
	}
	if f.status/100 == 3 {
		a.header["Location"] = "/elsewhere"
	}
	return a
}
