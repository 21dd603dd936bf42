package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
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
			err = fs.add(item)
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
		fs.seed, err = strconv.ParseUint(value, 10, 64)
		if err != nil {
			return errors.New("a seed is a whole number")
		}
	case "retry-after":
		fs.retryAfter = value
		if layout, seconds := dateForm(value); layout != "" {
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

func (fs *faults) add(item string) error {
	at := strings.IndexAny(item, ":/#")
	if at < 0 {
		return errors.New("it lacks its rate: NAME:P%, NAME/N or NAME#N")
	}
	f, err := newFault(item[:at])
	if err != nil {
		return err
	}
	rate, pause, long := strings.Cut(item[at+1:], ":")
	if long {
		if f.pause, err = time.ParseDuration(pause); err != nil || f.pause < 0 {
			return errors.New("its duration is not one such as 3s or 200ms")
		}
	}
	if err := f.rate(item[at], rate); err != nil {
		return err
	}
	fs.list = append(fs.list, f)
	return nil
}

// newFault reads a name with its kind and endings.
func newFault(name string) (*fault, error) {
	f := &fault{kinds: []string{"create", "update"}}
	if kind, rest, found := strings.Cut(name, "."); found {
		if !slices.ContainsFunc(endpoints, func(e endpoint) bool { return e.kind == kind }) {
			return nil, errors.New("the kinds are create, update, token, login and client")
		}
		f.kinds, name = []string{kind}, rest
	}
	name, f.retry = strings.CutSuffix(name, "-retry")
	name, f.stored = strings.CutSuffix(name, "-stored")
	f.name = name
	status, err := strconv.Atoi(name)
	switch {
	case err == nil && status >= 200 && status <= 599 && len(name) == 3:
		f.status = status
		f.retry = f.retry || status == http.StatusTooManyRequests
		return f, nil
	case f.retry:
		return nil, errors.New("-retry goes with a status from 200 to 599")
	case name == "drop" || name == "hang" || name == "revoke" && !f.stored:
		return f, nil
	case f.stored || tricks[name] == nil:
		return nil, errors.New("there is no fault of this name")
	}
	f.stored, f.pause = true, pauses[name]
	return f, nil
}

func (f *fault) rate(form byte, text string) (err error) {
	if form == ':' {
		number, percent := strings.CutSuffix(text, "%")
		f.percent, err = strconv.ParseFloat(number, 64)
		if err != nil || !percent || !(f.percent >= 0 && f.percent <= 100) {
			return errors.New("its rate is not a percentage from 0% to 100%")
		}
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("its rate is not a whole number from 1")
	}
	if form == '/' {
		f.every = n
	} else {
		f.only = n
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
		a = refusalAnswer(f.status, cmp.Or(http.StatusText(f.status), "Unknown"), "the sandbox was asked for this fault")
		a.header = map[string]string{}
	}
	if f.retry && fs.retryAfter != "none" {
		a.header["Retry-After"] = fs.retryTime()
	}
	if f.status/100 == 3 {
		a.header["Location"] = "/elsewhere"
	}
	return a
}

// retryTime gives dates by the machine's clock, as the Date header is.
func (fs *faults) retryTime() string {
	layout, seconds := dateForm(fs.retryAfter)
	if layout == "" {
		return fs.retryAfter
	}
	n, _ := strconv.Atoi(seconds)
	return time.Now().UTC().Add(time.Duration(n) * time.Second).Format(layout)
}

// dateForm splits a setting such as date:5 into the layout of an HTTP date and the seconds.
func dateForm(value string) (layout, seconds string) {
	form, seconds, _ := strings.Cut(value, ":")
	switch form {
	case "date":
		return http.TimeFormat, seconds
	case "rfc850":
		return "Monday, 02-Jan-06 15:04:05 GMT", seconds
	case "asctime":
		return time.ANSIC, seconds
	}
	return "", ""
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
