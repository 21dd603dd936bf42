package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// fault is one thing that goes wrong, and when.
type fault struct {
	kinds  []string
	name   string // without -stored and -retry
	status int    // of the name, when it is one
	stored bool   // the request is applied
	retry  bool   // the answer has a Retry-After
	pause  time.Duration

	percent     float64
	every, only int
	seen        int // requests of its kinds so far
}

// faults is a parsed Options.Faults.
type faults struct {
	retryAfter string
	expires    string
	seed       uint64

	mu     sync.Mutex
	random *rand.Rand
	list   []*fault
}

// parseFaults reads the grammar of the package comment.
func parseFaults(spec string) (*faults, error) {
	fs := &faults{retryAfter: "1"}
	for item := range strings.SplitSeq(spec, ",") {
		var err error
		item = strings.TrimSpace(item)
		if name, value, setting := strings.Cut(item, "="); setting {
			err = fs.set(name, value)
		} else if item != "" {
			var f *fault
			f, err = newFault(item)
			fs.list = append(fs.list, f)
		}
		if err != nil {
			return nil, fmt.Errorf("sandbox: the fault %q is not understood: %w", item, err)
		}
	}
	fs.random = rand.New(rand.NewPCG(fs.seed, fs.seed))
	return fs, nil
}

func (fs *faults) set(name, value string) (err error) {
	switch name {
	case "seed":
		if fs.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return errors.New("a seed is a whole number")
		}
	case "retry-after":
		fs.retryAfter = value
		if form, seconds, _ := strings.Cut(value, ":"); dateLayouts[form] != "" {
			if _, err := strconv.Atoi(seconds); err != nil {
				return errors.New("a date is given as whole seconds from now")
			}
		}
	case "expires":
		fs.expires = value
		if value != "none" && !jsontext.Value(value).IsValid() {
			return errors.New("expires takes a JSON value or none")
		}
	default:
		return errors.New("settings are seed, retry-after and expires")
	}
	return nil
}

// faultForm is that of a fault: its kind, name and endings, its rate in one of three ways, and its duration.
var faultForm = regexp.MustCompile(`^(?:([a-z]+)\.)?([0-9a-z-]+?)(-stored)?(-retry)?(?::([0-9.]+)%|/([0-9]+)|#([0-9]+))(?::(.*))?$`)

func newFault(item string) (*fault, error) {
	m := faultForm.FindStringSubmatch(item)
	if m == nil {
		return nil, errors.New("it is not of the form NAME:P%, NAME/N or NAME#N")
	}
	f := &fault{kinds: []string{"create", "update"}, name: m[2], stored: m[3] != "", retry: m[4] != ""}
	f.percent, _ = strconv.ParseFloat(m[5], 64)
	f.every, _ = strconv.Atoi(m[6])
	f.only, _ = strconv.Atoi(m[7])
	if f.percent > 100 || m[5] == "" && f.every+f.only < 1 {
		return nil, errors.New("its rate is not from 0% to 100%, or a whole number from 1")
	}
	if m[1] != "" {
		f.kinds = []string{m[1]}
	}
	if !slices.ContainsFunc(endpoints, func(e endpoint) bool { return e.kind == f.kinds[0] }) {
		return nil, errors.New("the kinds are create, update, token, login and client")
	}
	var err error
	if m[8] != "" {
		if f.pause, err = time.ParseDuration(m[8]); err != nil || f.pause < 0 {
			return nil, errors.New("its duration is not one such as 3s or 200ms")
		}
	}
	return f, f.named()
}

// named checks the name, which may be a status.
func (f *fault) named() error {
	status, err := strconv.Atoi(f.name)
	switch {
	case err == nil && status >= 200 && status <= 599 && len(f.name) == 3:
		f.status, f.retry = status, f.retry || status == http.StatusTooManyRequests
	case f.retry:
		return errors.New("-retry goes with a status from 200 to 599")
	case f.name == "drop" || f.name == "hang" || f.name == "revoke" && !f.stored:
	case f.stored || tricks[f.name] == nil:
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
		a = refused(&refusal{status: f.status, code: cmp.Or(http.StatusText(f.status), "Unknown"), reason: "the sandbox was asked for this fault"})
	}
	if f.retry && fs.retryAfter != "none" {
		a.header["Retry-After"] = fs.retryTime()
	}
	if f.status/100 == 3 {
		a.header["Location"] = "/elsewhere"
	}
	return a
}

var dateLayouts = map[string]string{"date": http.TimeFormat, "rfc850": "Monday, 02-Jan-06 15:04:05 GMT", "asctime": time.ANSIC}

// retryTime gives dates by the machine's clock, as the Date header is.
func (fs *faults) retryTime() string {
	form, seconds, _ := strings.Cut(fs.retryAfter, ":")
	layout := dateLayouts[form]
	if layout == "" {
		return fs.retryAfter
	}
	n, _ := strconv.Atoi(seconds)
	return time.Now().UTC().Add(time.Duration(n) * time.Second).Format(layout)
}

// expiresIn is the lifetime that a token answer gives, in whole seconds unless the setting says otherwise.
func (fs *faults) expiresIn(life time.Duration) jsontext.Value {
	switch fs.expires {
	case "":
		return jsontext.Value(strconv.Itoa(int((life + time.Second - 1) / time.Second)))
	case "none":
		return nil
	}
	return jsontext.Value(fs.expires)
}
