package leadapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

const (
	dialLimit = 10 * time.Second // for connecting and the TLS handshake
	// idleLimit is below the 5 s after which common servers close a connection: a create that crosses such a close
	// would be in doubt.
	idleLimit  = 4 * time.Second
	maxHeaders = 64 << 10 // bytes, informational answers included
)

// newTransport returns a transport that speaks HTTP/1.1 only, straight to the host, over conns. Dials end with life;
// roots are whom TLS trusts, nil for those of the system.
func newTransport(life context.Context, conns int, roots *x509.CertPool) *http.Transport {
	d := &dialer{life: life, tls: &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, RootCAs: roots}}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Protocols:              protocols,
		DialContext:            d.plain,
		DialTLSContext:         d.secure,
		DisableCompression:     true,
		MaxConnsPerHost:        conns,
		MaxIdleConnsPerHost:    conns,
		IdleConnTimeout:        idleLimit,
		MaxResponseHeaderBytes: maxHeaders,
	}
}

type dialer struct {
	life context.Context
	tls  *tls.Config
}

// handshakeError is a handshake that failed for what the peer presented, not for the network.
type handshakeError struct{ error }

func handshakeFault(ctx context.Context, err error) error {
	var errno syscall.Errno
	if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.As(err, &errno) {
		return err
	}
	return handshakeError{err}
}

func (d *dialer) plain(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, stop := d.limit(ctx)
	defer stop()
	return d.dial(ctx, network, address)
}

// secure makes the handshake itself, so that HTTP speaks over a conn, and never HTTP/2, whatever the peer offers.
func (d *dialer) secure(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, stop := d.limit(ctx)
	defer stop()
	c, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	config := d.tls.Clone()
	if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
		return nil, err
	}
	upon := tls.Client(c.Conn, config)
	if err := upon.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, handshakeFault(ctx, err)
	}
	c.Conn = upon
	return c, nil
}

func (d *dialer) dial(ctx context.Context, network, address string) (*conn, error) {
	var nd net.Dialer
	tcp, err := nd.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: tcp}
	return &conn{Conn: s, socket: s}, nil
}

// limit bounds a dial: net/http lets it go on when its request has been given up, for a later one to use.
func (d *dialer) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	unhook := context.AfterFunc(d.life, cancel)
	return ctx, func() { unhook(); cancel() }
}

// unanswered is the error of a call that got no answer. Its text is made here: what lies below may quote the peer or the address.
func (c *Client) unanswered(ctx, limited context.Context, r call, trip *trip, err error) *Error {
	applied := No
	if trip.sent() {
		applied = Maybe
	}
	if ctx.Err() != nil {
		return interrupted(ctx, r.op, applied)
	}
	if limited.Err() != nil {
		return interrupted(limited, r.op, applied)
	}
	e := &Error{Op: r.op, Applied: applied, Reason: ReasonNoAnswer, Message: "the connection broke before a readable answer came"}
	if applied == No {
		e.Reason, e.Message = unsent(err)
		e.Message = clean("nothing could be sent to "+r.url.Hostname()+": "+e.Message, r.secrets...)
	}
	return e
}

// unsent says why nothing left.
func unsent(err error) (reason, text string) {
	var errno syscall.Errno
	if fault, ok := errors.AsType[handshakeError](err); ok {
		return ReasonTLS, fault.Error()
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return ReasonConnect, "the name could not be looked up"
	}
	if errors.As(err, &errno) {
		return ReasonConnect, errno.Error()
	}
	return ReasonConnect, "no connection, or one that was closed meanwhile"
}
