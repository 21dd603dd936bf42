package main

import (
	"bytes"
	"encoding/json"
	"net"
	"strconv"
	"time"
)

// peer is one connection to the sink. Its buffers are used for request after request.
type peer struct {
	sink       *sink
	conn       net.Conn
	in         []byte // received and not used yet: in[from:to]
	from, to   int
	body, out  []byte
	registered bool
}

const (
	firstBuffer = 8 << 10
	maxBuffer   = 4 << 20 // a larger request ends the connection
)

// serve answers requests in the order in which they come, until one cannot be read.
func (p *peer) serve() {
	p.in = make([]byte, firstBuffer)
	defer func() {
		if p.registered {
			p.sink.now.Add(-1)
		}
	}()
	for {
		var r request
		n, err := r.parse(p.in[p.from:p.to])
		if err != nil {
			p.sink.refused.Add(1)
			p.write(p.reply("400 Bad Request", []byte(`{"error":"Bad Request"}`)))
			return
		}
		if n == 0 {
			if !p.receive() {
				return
			}
			continue
		}
		p.from += n
		if !p.answer(&r) || r.last || p.sink.closes && p.sink.after == 0 {
			return
		}
	}
}

// receive reads more of a request; false means that no more comes.
func (p *peer) receive() bool {
	if p.from > 0 {
		p.to = copy(p.in, p.in[p.from:p.to])
		p.from = 0
	}
	if p.to == len(p.in) {
		if len(p.in) >= maxBuffer {
			return false
		}
		p.in = append(p.in, make([]byte, len(p.in))...)
	}
	if p.sink.closes && p.sink.after > 0 && p.registered { // a first request may take as long as it wants
		if err := p.conn.SetReadDeadline(time.Now().Add(p.sink.after)); err != nil {
			return false
		}
	}
	n, err := p.conn.Read(p.in[p.to:])
	p.to += n
	return err == nil
}

// answer decides on a request, waits for the latency and answers.
func (p *peer) answer(r *request) bool {
	if r.is("GET", "/stats") {
		text, err := json.Marshal(p.sink.stats())
		return err == nil && p.write(p.reply("200 OK", text))
	}
	if !p.registered {
		p.registered = true
		p.sink.connected()
	}
	out := p.decide(r)
	if p.sink.latency > 0 {
		time.Sleep(p.sink.latency)
	}
	return p.write(out)
}

// decide is the whole of the service.
func (p *peer) decide(r *request) []byte {
	s := p.sink
	lead, update := bytes.CutPrefix(r.path, []byte("/v3/lead/"))
	switch {
	case r.is("POST", "/v3/oauth2/token"):
		s.tokens.Add(1)
		return p.reply("200 OK", []byte(tokenAnswer))
	case !r.bearer:
		s.refused.Add(1)
		return p.reply("401 Unauthorized", []byte(`{"error":"Not Authorized"}`))
	case string(r.method) == "POST" && bytes.HasPrefix(r.path, []byte("/v1/")):
		s.creates.Add(1)
		p.body = s.ids.appendCreated(p.body[:0], r.body)
		return p.reply("201 Created", p.body)
	case string(r.method) == "PATCH" && update && plainID(lead):
		s.updates.Add(1)
		p.body = s.ids.appendLead(p.body[:0], lead, r.body)
		return p.reply("200 OK", p.body)
	}
	s.refused.Add(1)
	return p.reply("404 Not Found", []byte(`{"error":"Not Found"}`))
}

// reply is a whole answer, good until the next one.
func (p *peer) reply(status string, body []byte) []byte {
	b := append(p.out[:0], "HTTP/1.1 "...)
	b = append(b, status...)
	b = append(b, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	p.out = append(b, body...)
	return p.out
}

func (p *peer) write(b []byte) bool {
	_, err := p.conn.Write(b)
	return err == nil
}
