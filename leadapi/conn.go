package leadapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"leadferry/internal/failpoint"
)

var longAgo = time.Unix(1, 0)

// conn is a connection to the service. It carries one call at a time, by one goroutine that writes the whole request
// before it reads: so "a byte has left" is a count, and an answer is never taken for another call's. An http.Transport over
// a counting dialer promises the same, but takes 2.2 to 2.7 times the processor time, as measured, for it reads and writes
// in goroutines of its own. The price: an answer that comes before a large body has left is heard only after it, or after
// the time limit.
type conn struct {
	net.Conn                    // the socket, or TLS upon it
	socket     *socket          // what passes the machine's border
	tap        *tap             // what passes below TLS; nil without
	bounds     io.LimitedReader // of what may still be read of the answer
	in         *bufio.Reader    // over bounds
	request    []byte           // room for one
	body       bytes.Buffer     // room for that of a request, then for that of an answer
	generation int              // of the host
	lead       string           // that the last answer named

	usage
	interrupted bool          // the context of the call ended while it was under way
	firstByte   time.Duration // of the call's answer, after the request had left; 0: none came
}

// roundTrip exchanges the request that stands written in the connection, until limit or the end of ctx, and notes what is seen of it.
func (c *conn) roundTrip(ctx context.Context, limit time.Time, seen *Call) (a answer, sent bool, err error) {
	_ = c.SetDeadline(limit) // fails for a closed connection only, as the first write then does
	spared := context.AfterFunc(ctx, func() { _ = c.SetDeadline(longAgo) })
	defer func() { c.interrupted = !spared() }()
	before := c.socket.out
	a, sent, err = c.exchange(c.request)
	seen.Sent, seen.Received = int(c.socket.out-before), len(a.body)
	seen.Detail.exchanged(c, a, err)
	return a, sent, err
}

// exchange sends a request and returns the answer, informational ones left out. sent says whether a byte of the request
// has left. When ctx ends, so does the exchange.
func (c *conn) exchange(request []byte) (a answer, sent bool, err error) {
	before := c.socket.out
	c.socket.late, c.firstByte = false, 0
	err = c.send(request)
	if c.socket.out == before {
		return a, false, err
	}
	if c.carried++; c.left > 0 {
		c.left--
	}
	// Where the peer had enough before the end, it may have said why.
	a, broken := c.receive()
	if broken != nil {
		return a, true, errors.Join(broken, err)
	}
	c.noteKeepAlive(a.Header)
	a.Close = a.Close || err != nil // what is missing of the request would be the next one's beginning
	return a, true, nil
}

func (c *conn) send(request []byte) error {
	for part := range slices.Chunk(request, maxWrite) {
		failpoint.At("write")
		_, err := c.Write(part)
		failpoint.At("written")
		if err != nil {
			return err
		}
	}
	return nil
}

// receive reads an answer to the end of its body, so that the connection can be used again, or as far as it comes.
func (c *conn) receive() (a answer, err error) {
	began := time.Now()
	c.bounds.N = maxHead
	if _, err := c.in.Peek(1); err == nil {
		c.firstByte = time.Since(began)
	}
	for a.Response == nil || a.StatusCode >= 100 && a.StatusCode < 200 && a.StatusCode != http.StatusSwitchingProtocols {
		c.mendLength()
		if a.Response, err = http.ReadResponse(c.in, nil); err != nil {
			return a, err
		}
	}
	if a.StatusCode < 200 {
		return a, nil // 101: what follows is no HTTP, and may have no end
	}
	c.bounds.N = maxBody + maxHead // more than the body may have: there are the lengths of chunks, too
	c.body.Reset()
	_, err = c.body.ReadFrom(a.Body)
	a.body, a.whole = c.body.Bytes(), err == nil && c.body.Len() <= maxBody
	a.unpack()
	return a, nil
}

// mendLength makes one length of one that a line says several times, as RFC 9110 (section 8.6) allows and Go does not. It
// looks at the head where it stands; one that does not fit into the reader's room is left as it is.
func (c *conn) mendLength() {
	for line := range bytes.Lines(c.peekHead()) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		first, _, several := bytes.Cut(value, []byte(","))
		if !several || !bytes.EqualFold(name, []byte("Content-Length")) {
			continue
		}
		others := bytes.TrimRight(value[len(first):], "\r\n")
		for other := range bytes.SplitSeq(others[1:], []byte(",")) {
			if !bytes.Equal(bytes.TrimSpace(other), bytes.TrimSpace(first)) {
				return
			}
		}
		copy(others, bytes.Repeat([]byte(" "), len(others)))
	}
}

// peekHead waits for the head of an answer and returns what there is of it.
func (c *conn) peekHead() (head []byte) {
	_, err := c.in.Peek(1)
	for from := 0; err == nil; _, err = c.in.Peek(len(head) + 1) {
		head, _ = c.in.Peek(c.in.Buffered())
		if end := max(bytes.Index(head[from:], []byte("\n\n")), bytes.Index(head[from:], []byte("\n\r\n"))); end >= 0 {
			return head[:from+end]
		}
		from = max(len(head)-2, 0)
	}
	return head
}

// strays tells whether an answer names a lead that is not the request's: another one, or to a create the one of the answer before.
// Then it may be an answer too many, and the request's own is still to come: the next one would take it for its own.
func (c *conn) strays(r *request) bool {
	if r.named == nil {
		return false
	}
	before := c.lead
	c.lead = *r.named
	return r.lead == "" && c.lead == before || r.lead != "" && c.lead != r.lead
}

// usable tells whether a connection that was idle can carry a call: it is not closed, and there is nothing to read.
func (c *conn) usable() bool {
	return c.in.Buffered() == 0 && c.socket.nothingToRead() && c.nothingBuffered()
}

// closedUnanswered tells whether the last call got not a byte of an answer, for the peer closed the connection.
func (c *conn) closedUnanswered(err error) bool {
	return c.bounds.N == maxHead && !errors.Is(err, os.ErrDeadlineExceeded)
}

// nothingBuffered tells whether TLS has nothing left that it read ahead. It looks at the socket no more.
func (c *conn) nothingBuffered() bool {
	if c.Conn == c.socket {
		return true
	}
	c.bounds.N, c.socket.late = maxHead, true
	if c.SetReadDeadline(longAgo) != nil {
		return false
	}
	_, err := c.in.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// release lets go of what one call needed.
func (c *conn) release() {
	c.idleSince = time.Now()
	if cap(c.request) > keptBuffer {
		c.request = nil
	}
	if c.body.Cap() > keptBuffer {
		c.body = bytes.Buffer{}
	}
}

// socket counts the bytes that pass.
type socket struct {
	net.Conn
	out  int64
	late bool // a call has had its look after the time was over
	peek func(b []byte) (int, error)
	one  [1]byte
}

func (s *socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.out += int64(n)
	return n, err
}

// Read takes what is there although the time is over, once a call: the process may have been stopped meanwhile.
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) && !s.late {
		s.late = true
		if late, _ := s.peek(b); late > 0 {
			n, err = late, nil
		}
	}
	if n > 0 {
		failpoint.At("read")
	}
	return n, err
}

// nothingToRead tells whether the connection is open and nothing has come. What has come is lost.
func (s *socket) nothingToRead() bool {
	_, err := s.peek(s.one[:])
	return isNothing(err)
}
