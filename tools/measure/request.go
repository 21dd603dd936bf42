package main

import (
	"bytes"
	"errors"
)

// request is what the sink needs to know of a request. Its slices lie in the buffer
// that it was read from.
type request struct {
	method, path, body []byte
	bearer             bool // it carries a bearer token, whichever
	last               bool // the connection ends after it
}

var errMalformed = errors.New("not a request that the sink understands")

// parse takes one request off the front of b and returns its length, 0 for one that is
// not whole yet. Chunked bodies are refused: nothing that is measured sends them.
func (r *request) parse(b []byte) (int, error) {
	head, _, whole := bytes.Cut(b, []byte("\r\n\r\n"))
	if !whole {
		return 0, nil
	}
	line, fields, _ := bytes.Cut(head, []byte("\r\n"))
	method, rest, ok := bytes.Cut(line, []byte(" "))
	target, version, complete := bytes.Cut(rest, []byte(" "))
	if !ok || !complete || string(version) != "HTTP/1.1" {
		return 0, errMalformed
	}
	r.method = method
	r.path, _, _ = bytes.Cut(target, []byte("?"))
	length, err := r.fields(fields)
	if err != nil {
		return 0, err
	}
	start := len(head) + len("\r\n\r\n")
	if len(b) < start+length {
		return 0, nil
	}
	r.body = b[start : start+length]
	return start + length, nil
}

// fields reads the header and returns the length of the body.
func (r *request) fields(text []byte) (length int, err error) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\r\n"))
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return 0, errMalformed
		}
		value = bytes.TrimSpace(value)
		switch {
		case named(name, "Content-Length"):
			if length, err = count(value); err != nil {
				return 0, err
			}
		case named(name, "Authorization"):
			scheme, token, _ := bytes.Cut(value, []byte(" "))
			r.bearer = named(scheme, "Bearer") && len(token) > 0
		case named(name, "Connection"):
			r.last = named(value, "close")
		case named(name, "Transfer-Encoding"):
			return 0, errMalformed
		}
	}
	return length, nil
}

// named compares without regard to case; most names differ in length already.
func named(b []byte, name string) bool {
	return len(b) == len(name) && bytes.EqualFold(b, []byte(name))
}

func count(b []byte) (n int, err error) {
	if len(b) == 0 || len(b) > 8 {
		return 0, errMalformed
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, errMalformed
		}
		n = 10*n + int(c-'0')
	}
	return n, nil
}

func (r *request) is(method, path string) bool {
	return string(r.path) == path && string(r.method) == method
}
