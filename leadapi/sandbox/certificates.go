package sandbox

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// TLS says how a Server proves who it is, and whether its clients must. The certificates are made anew by each Serve.
type TLS struct {
	Dir      string // where the files for clients are written; "": in a temporary folder that Close removes
	Mutual   bool   // clients must show a certificate; one is written for them unless ClientCA is given
	ClientCA string // the file with the certificates by which those of clients are known
}

// certificateLife is how long certificates are good for: longer than any trying out, and too short to be kept.
const certificateLife = 7 * 24 * time.Hour

// certificates are those of one Serve and the files in which clients find what they need.
type certificates struct {
	config                    *tls.Config
	dir                       string // of the files; removed at the end when temporary
	temporary                 bool
	ca, clientCert, clientKey string
}

// authority signs certificates. Its key is never written down, so that who trusts it trusts this process alone.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  time.Time
}

// issue makes the certificates and writes the files for clients: those for keys are of mode 0600.
func (t *TLS) issue(now time.Time) (c *certificates, err error) {
	c = &certificates{dir: t.Dir}
	if c.dir == "" {
		c.dir, err = os.MkdirTemp("", "leadferry-sandbox-")
		c.temporary = err == nil
	} else {
		err = os.MkdirAll(c.dir, 0o700)
	}
	if err != nil {
		return c, fmt.Errorf("make a folder for certificates: %w", err)
	}
	a := &authority{now: now}
	root := &x509.Certificate{
		Subject: pkix.Name{CommonName: "leadferry sandbox authority"}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{"localhost"},
		PermittedIPRanges: []*net.IPNet{{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)}, {IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)}},
	}
	own, err := a.sign(root)
	if err != nil {
		return c, err
	}
	if a.cert, err = x509.ParseCertificate(own.Certificate[0]); err != nil {
		return c, err
	}
	a.key = own.PrivateKey.(*ecdsa.PrivateKey)
	if c.ca, err = c.write("ca.pem", 0o644, "CERTIFICATE", a.cert.Raw); err != nil {
		return c, err
	}
	server, err := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "leadferry sandbox"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	})
	if err != nil {
		return c, err
	}
	c.config = &tls.Config{Certificates: []tls.Certificate{server}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if t.Mutual || t.ClientCA != "" {
		err = c.askClients(t.ClientCA, a)
	}
	return c, err
}

// askClients has clients show a certificate: one that the file's certificates vouch for, or the one written for them.
func (c *certificates) askClients(file string, a *authority) error {
	c.config.ClientAuth, c.config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if file != "" {
		text, err := os.ReadFile(file)
		if err == nil && !c.config.ClientCAs.AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s: there is no certificate in PEM in this file", file)
		}
		return err
	}
	c.config.ClientCAs.AddCert(a.cert)
	client, err := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "leadferry sandbox client"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return err
	}
	if c.clientCert, err = c.write("client.pem", 0o644, "CERTIFICATE", client.Certificate[0]); err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(client.PrivateKey)
	if err != nil {
		return err
	}
	c.clientKey, err = c.write("client-key.pem", 0o600, "PRIVATE KEY", key)
	return err
}

// sign makes a key and a certificate for it. The first one signs itself.
func (a *authority) sign(template *x509.Certificate) (made tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return made, err
	}
	template.NotBefore, template.NotAfter = a.now.Add(-time.Hour), a.now.Add(certificateLife)
	if !template.IsCA {
		template.KeyUsage = x509.KeyUsageDigitalSignature
	}
	parent, signer := a.cert, crypto.Signer(a.key)
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// filePrefix keeps the files apart from those of others in the folder.
const filePrefix = "leadferry-sandbox-"

// write puts a file in the place of the one of an earlier start. What stands there is never followed or written to.
func (c *certificates) write(name string, mode fs.FileMode, kind string, der []byte) (path string, err error) {
	path, err = filepath.Abs(filepath.Join(c.dir, filePrefix+name))
	if err != nil {
		return "", err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	return path, errors.Join(pem.Encode(f, &pem.Block{Type: kind, Bytes: der}), f.Close())
}
