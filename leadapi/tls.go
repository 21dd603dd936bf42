package leadapi

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
)

// tlsConfig is how TLS is spoken with whoever has a certificate for name. Sessions are resumed, which spares the
// certificates' check and most of the time of a handshake.
func tlsConfig(name string, roots *x509.CertPool, conns int) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, ServerName: name, RootCAs: roots,
		ClientSessionCache: tls.NewLRUClientSessionCache(conns),
	}
}

// roots are the authorities of the system and those besides.
func roots(besides []*x509.Certificate) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	switch {
	case err == nil:
	case len(besides) > 0:
		pool = x509.NewCertPool() // they may be all that is needed
	default:
		return nil, &ConfigError{
			"Authorities", "the certificates that this machine trusts cannot be read" + certFileFault(),
			"mend that, or name a file with the service's authority with --ca-file",
		}
	}
	for _, c := range besides {
		pool.AddCert(c)
	}
	return pool, nil
}

// certFileFault says what is wrong with the file that SSL_CERT_FILE names in place of the system's, or nothing.
func certFileFault() string {
	path := os.Getenv("SSL_CERT_FILE")
	if path == "" {
		return ""
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ": SSL_CERT_FILE names " + path + ", which is not there"
	case err == nil && info.IsDir():
		return ": SSL_CERT_FILE names " + path + ", which is a folder"
	case err == nil:
		if f, err := os.Open(path); err == nil {
			f.Close()
			return ""
		}
	}
	return ": SSL_CERT_FILE names " + path + ", which cannot be read"
}

// tap is what lies below TLS. It notes which records come once the handshake is over, and what became of client certificates.
type tap struct {
	net.Conn
	done  bool             // the handshake is over
	asked bool             // the peer wanted a client certificate
	shown *tls.Certificate // and got this one; nil: none
	in    int              // bytes that came since
	head  [recordHead]byte // the first of them
}

const recordHead = 5 // bytes before a record of TLS

func (t *tap) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	if t.done && n > 0 {
		if t.in < recordHead {
			copy(t.head[t.in:], b[:n])
		}
		t.in += n
	}
	return n, err
}

// one tells whether a single record has come since the handshake.
func (t *tap) one() bool {
	return t.in > recordHead && t.in == recordHead+int(binary.BigEndian.Uint16(t.head[3:]))
}

// untaken turns the error of a call into a *dialError where the peer said, instead of an answer, that it does not take this
// client for want of a certificate. In TLS 1.3 it can say so only once the handshake seems to be over, and the request may
// have left by then. But it reads nothing of a request before it has checked the certificate: where such an alert is the
// first that comes on a new connection, the request was not taken.
func (c *conn) untaken(h *host, err error) error {
	secure, ok := c.Conn.(*tls.Conn)
	if !ok || c.tap == nil || !c.idleSince.IsZero() || !c.tap.one() || secure.ConnectionState().Version != tls.VersionTLS13 {
		return err
	}
	fault := h.clientCertificateFault(c.tap, err)
	if fault == nil {
		return err
	}
	fault.untaken = true
	return fault
}

// The alerts by which a peer refuses a client's certificate, or asks for one (RFC 8446, section 6.2): bad, unsupported,
// revoked, expired or unknown certificate, unknown authority, access denied, certificate required.
var certificateAlerts = []uint64{42, 43, 44, 45, 46, 48, 49, 116}

// handshakeFailure is what some say instead, mostly before TLS 1.3. It may be about anything, unless a certificate was asked for.
const handshakeFailure = 40

// alertOf is the number of the alert that a peer has sent; the library's type for it has no name outside.
func alertOf(err error) (uint64, bool) {
	remote, ok := errors.AsType[*net.OpError](err)
	if !ok || remote.Op != "remote error" || reflect.TypeOf(remote.Err).Kind() != reflect.Uint8 {
		return 0, false
	}
	return reflect.ValueOf(remote.Err).Uint(), true
}

// clientCertificateFault is the error for an alert about the client's certificate; nil where err is none.
func (h *host) clientCertificateFault(t *tap, err error) *dialError {
	alert, ok := alertOf(err)
	if !ok || !slices.Contains(certificateAlerts, alert) && !(alert == handshakeFailure && t.asked) {
		return nil
	}
	said := " (" + tls.AlertError(alert).Error() + ")"
	fault := &dialError{
		reason: ReasonClientCert, text: "it asks for a client certificate, and none is set" + said,
		hint: "name one that the service accepts with --client-cert and --client-key",
	}
	switch {
	case t.shown != nil:
		fault.text = "it does not accept the client certificate of --client-cert" + said
		if t.shown.Leaf != nil && time.Now().After(t.shown.Leaf.NotAfter) {
			fault.text += ", which expired on " + t.shown.Leaf.NotAfter.UTC().Format(time.DateOnly)
		}
		fault.hint = "ask whoever runs the service which certificates it accepts"
	case !t.asked:
		fault.text = "it refuses this client" + said
	}
	return fault
}

// handshakeFault says why a handshake with the service failed. What its certificate is, or wants of ours, will be so the
// next time; anything else may pass: one node of many may answer in plain text, or another one be about to start.
func (h *host) handshakeFault(t *tap, err error) *dialError {
	if fault := h.clientCertificateFault(t, err); fault != nil {
		return fault
	}
	return handshakeFault(err, "its certificate", h.domain)
}

// proxyHandshakeFault is the same for a proxy, to which no certificate is shown.
func (h *host) proxyHandshakeFault(t *tap, err error) *dialError {
	who := "the proxy " + h.proxy.String()
	if fault := h.clientCertificateFault(t, err); fault != nil {
		return &dialError{reason: ReasonProxy, text: who + " asks for a client certificate, which is not supported", hint: "ask whoever runs it for another way to sign in"}
	}
	fault := handshakeFault(err, "the certificate of "+who, h.proxy.name)
	if fault.reason == ReasonConnect {
		fault.text = who + " is of no use: " + fault.text
	}
	return fault
}

// handshakeFault says why a handshake failed with whoever should have had a certificate for name.
func handshakeFault(err error, whose, name string) *dialError {
	if untrusted, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		var leaf *x509.Certificate
		if len(untrusted.UnverifiedCertificates) > 0 {
			leaf = untrusted.UnverifiedCertificates[0]
		}
		return certificateFault(untrusted.Err, leaf, whose, name)
	}
	fault := &dialError{reason: ReasonConnect, text: "the TLS handshake failed: " + cmp.Or(broken(err), strings.TrimPrefix(err.Error(), "tls: "))}
	if alert, ok := alertOf(err); ok {
		fault.text = "the TLS handshake was refused: " + strings.TrimPrefix(tls.AlertError(alert).Error(), "tls: ")
	}
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		fault.text = "what answers there does not speak TLS"
		if string(record.RecordHeader[:]) == "HTTP/" {
			fault.text = "what answers there speaks plain HTTP, not TLS"
		}
		fault.hint = "check the address and its port"
	}
	return fault
}

// certificateFault says why a certificate is not believed, and what can be done about it.
func certificateFault(err error, leaf *x509.Certificate, whose, name string) *dialError {
	fault := &dialError{reason: ReasonTLS, text: whose + " is not good: " + strings.TrimPrefix(err.Error(), "x509: "), hint: "ask whoever runs it to mend it"}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, noRoots := errors.AsType[x509.SystemRootsError](err)
	_, otherName := errors.AsType[x509.HostnameError](err)
	invalid, _ := errors.AsType[x509.CertificateInvalidError](err)
	now := time.Now()
	switch {
	case unknown || noRoots:
		fault.text = whose + " is of an authority that this machine does not trust" + signer(leaf) + certFileFault()
		fault.hint = "where a company's proxy or firewall opens TLS, or the service has an authority of its own, name the authority's certificate with --ca-file; else somebody else may be answering"
	case otherName:
		fault.text = whose + " is not for " + name + ", but for others: " + strings.TrimPrefix(err.Error(), "x509: ")
		fault.hint = "check the address; else somebody else may be answering"
	case invalid.Reason == x509.Expired && invalid.Cert != nil && now.Before(invalid.Cert.NotBefore):
		fault.text = whose + " is not valid before " + invalid.Cert.NotBefore.UTC().Format(time.RFC3339)
		fault.hint = "this machine's clock says " + now.UTC().Format(time.RFC3339) + ": set it, if that is wrong"
	case invalid.Reason == x509.Expired && invalid.Cert != nil:
		fault.text = whose + " expired at " + invalid.Cert.NotAfter.UTC().Format(time.RFC3339)
		fault.hint = "this machine's clock says " + now.UTC().Format(time.RFC3339) + ": if that is right, whoever runs it has to renew the certificate"
	}
	return fault
}

func signer(c *x509.Certificate) string {
	if c == nil || c.Issuer.String() == "" {
		return ""
	}
	return " (" + c.Issuer.String() + ")"
}
