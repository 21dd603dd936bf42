package leadapi

import (
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"leadferry/internal/failpoint"
)

// conn is a connection that HTTP speaks over. It knows what has passed since the present request took it.
type conn struct {
	net.Conn         // the socket, or TLS upon it
	socket   *socket // what leaves the machine

	mu      sync.Mutex
	asked   bool // a write of the request has begun
	writing int  // writes under way: whether a byte of them has left is not known yet
	sent    bool // a byte of it has left
	heard   bool // something was read after it had begun
}

// socket counts the bytes that left. net/http and TLS only know of writes that succeeded.
type socket struct {
	net.Conn
	out atomic.Int64
}

func (s *socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.out.Add(int64(n))
	return n, err
}

func (c *conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked, c.sent, c.heard = false, false, false
}

func (c *conn) Write(b []byte) (int, error) {
	before := c.socket.out.Load()
	c.mu.Lock()
	c.asked = true // before the write: the answer, or the end, may be there before it returns
	c.writing++
	c.mu.Unlock()
	failpoint.At("write")
	n, err := c.Conn.Write(b)
	failpoint.At("written")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing--
	c.sent = c.sent || c.socket.out.Load() > before
	return n, err
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		failpoint.At("read")
		c.mu.Lock()
		c.heard = c.heard || c.asked
		c.mu.Unlock()
	}
	return n, err
}

// trip follows one request on its connection.
type trip struct {
	conn    atomic.Pointer[conn] // nil: it got none
	crossed atomic.Bool          // an answer was there before the request
}

func (t *trip) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			c := info.Conn.(*conn)
			c.begin()
			t.conn.Store(c)
		},
		// net/http drops a connection on which bytes come while it is idle, but takes bytes that it read together with
		// the answer before for the answer to the next request, when that one is quick enough.
		GotFirstResponseByte: func() {
			c := t.conn.Load()
			c.mu.Lock()
			heard := c.heard
			c.mu.Unlock()
			if !heard {
				t.crossed.Store(true)
				c.Close()
			}
		},
	}
}

// sent tells whether a byte of the request left, or may be leaving now.
func (t *trip) sent() bool {
	c := t.conn.Load()
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent || c.writing > 0
}
