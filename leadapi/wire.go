package leadapi

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"leadferry/internal/failpoint"
)

const (
	maxHead = 64 << 10 // bytes of an answer's head, informational answers included
	maxBody = 1 << 20  // bytes of an answer's body
	piece   = 8 << 10  // bytes a write
	keptOut = 64 << 10 // room for requests and answers that a resting connection keeps
)

var (
	errHead = errors.New("the head of the answer is too long")
	longAgo = time.Unix(1, 0)
)

// wire is a connection to the service. It carries one call at a time, by one goroutine that writes the whole request
// before it reads: so "a byte has left" is a count, and an answer is never taken for another call's. net/http's
// transport, which reads and writes in goroutines of its own, cannot promise as much, and costs twice as much. The price: an
// answer that comes before a large body has left is heard only after it, or after the time limit.
type wire struct {
	net.Conn         // the socket, or TLS upon it
	socket   *socket // what passes the machine's border
	in       *bufio.Reader
	head     int       // bytes that may still come before the body
	out      []byte    // room for a request
	body     []byte    // room for an answer
	rested   time.Time // since when no call uses it
	era      int       // of the host
}

func newWire(s *socket, upon net.Conn) *wire {
	w := &wire{Conn: upon, socket: s}
	w.in = bufio.NewReader(headReader{w})
	return w
}

// headReader bounds what is read of heads.
type headReader struct{ *wire }

func (h headReader) Read(b []byte) (int, error) {
	if h.head <= 0 {
		return 0, errHead
	}
	n, err := h.Conn.Read(b)
	h.head -= n
	if n > 0 {
		failpoint.At("read")
	}
	return n, err
}

// exchange sends a request and returns the answer, informational ones left out. Its body must be read by drain, before
// anything else is done with the wire. sent says whether a byte of the request has left.
func (w *wire) exchange(request []byte) (answer *http.Response, sent bool, err error) {
	wrote := w.socket.out
	w.socket.late = false
	err = w.send(request)
	if sent = w.socket.out > wrote; !sent {
		return nil, false, err
	}
	// Where the peer had enough before the end, it may have said why.
	w.head = maxHead
	for {
		answer, fault := http.ReadResponse(w.in, nil)
		switch {
		case fault != nil && err == nil:
			return nil, true, fault
		case fault != nil:
			return nil, true, err
		case answer.StatusCode >= 200 || answer.StatusCode == http.StatusSwitchingProtocols || answer.StatusCode < 100:
			w.head = maxHead + maxBody + piece        // drain counts
			answer.Close = answer.Close || err != nil // what is missing of the request would be the next one's beginning
			return answer, true, nil
		}
	}
}

func (w *wire) send(request []byte) error {
	for len(request) > 0 {
		failpoint.At("write")
		n, err := w.Write(request[:min(len(request), piece)])
		failpoint.At("written")
		if err != nil {
			return err
		}
		request = request[n:]
	}
	return nil
}

// drain reads the body of an answer to its end, so that the wire can be used again, and tells whether all of it was
// got. The body stands until the next call.
func (w *wire) drain(answer *http.Response) (body []byte, whole bool) {
	if answer.StatusCode < 200 {
		return nil, false // 101: what follows is no HTTP, and may have no end
	}
	body = w.body[:0]
	for {
		if len(body) == cap(body) {
			body = append(body, make([]byte, 512)...)[:len(body)]
		}
		n, err := answer.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		w.body = body
		if err != nil || len(body) > maxBody {
			return body, err == io.EOF && len(body) <= maxBody
		}
	}
}

// fit tells whether a wire that has rested can carry a call: not for so long that the peer may be about to close it,
// not closed, and with nothing to read.
func (w *wire) fit(now time.Time) bool {
	return !w.stale(now) && w.in.Buffered() == 0 && w.socket.quiet() && w.drained()
}

// stale goes by the wall clock too: the other one stands still while the machine sleeps.
func (w *wire) stale(now time.Time) bool {
	return max(now.Sub(w.rested), now.Round(0).Sub(w.rested.Round(0))) >= idleLimit
}

// drained tells whether TLS has nothing left that it read ahead. It looks at the socket no more.
func (w *wire) drained() bool {
	if w.Conn == w.socket {
		return true
	}
	w.head, w.socket.late = maxHead, true
	if w.SetReadDeadline(longAgo) != nil {
		return false
	}
	_, err := w.in.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// rest lets go of what one call needed.
func (w *wire) rest() {
	w.rested = time.Now()
	if cap(w.out) > keptOut {
		w.out = nil
	}
	if cap(w.body) > keptOut {
		w.body = nil
	}
}

// socket counts the bytes that pass.
type socket struct {
	net.Conn
	out  int64
	late bool // a call has had its look after the time was over
	peek peek
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
		if late, _ := s.peek.read(b); late > 0 {
			n, err = late, nil
		}
	}
	return n, err
}

// quiet tells whether the connection is open and nothing has come. What has come is lost.
func (s *socket) quiet() bool {
	_, err := s.peek.read(s.peek.one[:])
	return nothing(err)
}
