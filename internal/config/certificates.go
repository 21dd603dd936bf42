package config

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"strings"

	"leadferry/internal/shell"
)

// maxBundle bounds a file of certificates, in bytes: the largest that systems come with have a quarter of a megabyte.
const maxBundle = 4 << 20

// ReadAuthorities reads the certificates in a PEM file that are to be trusted beside the
// system's. What is not such a file, or may have been written by another user, is an
// [*Error].
func ReadAuthorities(path string) ([]*x509.Certificate, error) {
	data, err := readNamed(path, readable, "--ca-file, or ca_file in the profile")
	if err != nil {
		return nil, err
	}
	blocks, err := certificatesIn(path, data)
	if err != nil {
		return nil, err
	}
	all := make([]*x509.Certificate, len(blocks))
	for i, b := range blocks {
		if all[i], err = x509.ParseCertificate(b); err != nil {
			return nil, damaged(path)
		}
	}
	return all, nil
}

// ReadClientCertificate reads a certificate with its chain from one PEM file and its key
// from another, or both from one where keyPath is "". The file with the key is a secret.
// What is not such a pair is an [*Error].
func ReadClientCertificate(path, keyPath string) (*tls.Certificate, error) {
	who := readable
	if keyPath == "" {
		who = secret
	}
	data, err := readNamed(path, who, "--client-cert, or client_cert in the profile")
	if err != nil {
		return nil, err
	}
	chain, err := certificatesIn(path, data)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(chain[0]) // those behind it are the service's to read
	if err != nil {
		return nil, damaged(path)
	}
	if keyPath == "" {
		keyPath = path
	} else if data, err = readNamed(keyPath, secret, "--client-key, or client_key in the profile"); err != nil {
		return nil, err
	}
	key, err := keyIn(keyPath, data)
	if err != nil {
		return nil, err
	}
	if public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(leaf.PublicKey) {
		return nil, &Error{File: keyPath, Text: "this key is not that of the client certificate in " + path, Hint: "the certificate comes first in its file, and those that signed it behind"}
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}, nil
}

// readNamed reads a PEM file that a setting names.
func readNamed(path string, who reach, setting string) ([]byte, error) {
	data, err := readUpTo(path, who, maxBundle)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{File: path, Text: "there is no such file", Hint: "check " + setting}
	case err != nil:
		return nil, err
	case len(bytes.TrimSpace(data)) == 0:
		return nil, &Error{File: path, Text: "is empty", Hint: "check " + setting}
	}
	return data, nil
}

// certificatesIn are the certificates in a PEM file, at least one, not parsed yet. What else is in it is passed over.
func certificatesIn(path string, data []byte) (all [][]byte, err error) {
	var others []string
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			all = append(all, block.Bytes)
		} else {
			others = append(others, block.Type)
		}
	}
	switch {
	case bytes.Count(data, []byte("-----BEGIN CERTIFICATE-----")) > len(all):
		return nil, damaged(path)
	case len(all) > 0:
		return all, nil
	case len(others) > 0:
		return nil, &Error{File: path, Text: "holds no certificate, but " + strings.ToLower(strings.Join(others, ", ")), Hint: "a certificate begins with -----BEGIN CERTIFICATE-----"}
	}
	return nil, notPEM(path, "x509 -inform der -in "+shell.Path(path)+" -out "+shell.Path(path+".pem"))
}

func damaged(path string) error {
	return &Error{File: path, Text: "holds a certificate that is damaged", Hint: "copy it anew from where it came"}
}

// notPEM is a file that may hold what is wanted, in another form.
func notPEM(path, command string) error {
	return &Error{File: path, Text: "is not in PEM form, which begins with -----BEGIN", Hint: "where it is in DER form: openssl " + command}
}

// keyIn is the first private key in a PEM file.
func keyIn(path string, data []byte) (crypto.Signer, error) {
	found := false
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		found = true
		switch {
		case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
			continue
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
			return nil, &Error{
				File: path, Text: "the key is encrypted, and there is nobody to ask for its passphrase",
				Hint: "openssl pkey -in " + shell.Path(path) + " -out " + shell.Path(path+".plain") + ", keep what comes out from others, and name that with --client-key",
			}
		}
		if key := parseKey(block.Bytes); key != nil {
			return key, nil
		}
		return nil, &Error{File: path, Text: "holds a key that is damaged, or of a kind that TLS does not use", Hint: "copy it anew from where it came"}
	}
	if !found {
		return nil, notPEM(path, "pkey -inform der -in "+shell.Path(path)+" -out "+shell.Path(path+".pem"))
	}
	return nil, &Error{File: path, Text: "holds no private key", Hint: "name the key's file with --client-key, or put the key into the certificate's file"}
}

func parseKey(der []byte) crypto.Signer {
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		signer, _ := key.(crypto.Signer)
		return signer
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key
	}
	return nil
}
