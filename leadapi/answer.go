package leadapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decode reads an answer: one JSON value of valid UTF-8, exact names, no name twice, nothing behind it. Members of another
// type than expected stay zero: the service is in alpha, and a lead's ID must not be lost for a changed counter.
func decode(body []byte, to any, o ...json.Options) bool {
	return json.Unmarshal(body, to, append(o, loosely)...) == nil
}

var loosely = json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(loose[string]),
	json.UnmarshalFromFunc(loose[bool]),
	json.UnmarshalFromFunc(loose[int64]),
	json.UnmarshalFromFunc(loose[float64]),
	json.UnmarshalFromFunc(loose[Location]),
	json.UnmarshalFromFunc(loose[RequestMeta]),
	json.UnmarshalFromFunc(loose[map[string]jsontext.Value]),
))

func loose[T any](from *jsontext.Decoder, to *T) error {
	v, err := from.ReadValue()
	if err != nil {
		return err
	}
	var t T
	if json.Unmarshal(v, &t) == nil {
		*to = t
	}
	return nil
}

// retryAfter reads how long an answer asks to wait: seconds, or a date in any of HTTP's three forms, taken from the
// answer's own Date where it has one. A past date is 0, what is over 15 minutes is 15 minutes, nonsense is not there.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	const most = 15 * time.Minute
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text != "" && strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds > int(most/time.Second) {
			return most, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	when, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(when.Sub(now), 0), most), true
}
