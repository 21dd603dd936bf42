package config

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"strings"
)

// maxBundle bounds a file of certificates, in bytes: the largest that systems come with have a quarter of a megabyte.
const maxBundle = 4 << 20

// ReadAuthorities reads the certificates in a PEM file that are to be trusted beside the system's. What is not such a
// file, or may have been written by another user, is an [*Error].
func ReadAuthorities(path string) (all []*x509.Certificate, err error) {
	data, err := readPEM(path, readable, "--ca-file, or ca_file in the profile")
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, certificate)
		}
	}
	if len(all) == 0 || strings.Count(string(data), "-----BEGIN CERTIFICATE-----") > len(all) {
		return nil, &Error{File: path, Text: "holds no certificate, or one that is damaged", Hint: "copy it anew from where it came"}
	}
	return all, nil
}

// ReadClientCertificate reads a certificate with its chain from one PEM file and its key from another, or both from one
// where keyPath is "". The file with the key is a secret. What is not such a pair is an [*Error].
func ReadClientCertificate(path, keyPath string) (*tls.Certificate, error) {
	who := readable
	if keyPath == "" {
		who = secret
	}
	certificate, err := readPEM(path, who, "--client-cert, or client_cert in the profile")
	if err != nil {
		return nil, err
	}
	key := certificate
	if keyPath == "" {
		keyPath = path
	} else if key, err = readPEM(keyPath, secret, "--client-key, or client_key in the profile"); err != nil {
		return nil, err
	}
	if text := string(key); strings.Contains(text, "ENCRYPTED") {
		return nil, &Error{
			File: keyPath, Text: "the key is encrypted, and there is nobody to ask for its passphrase",
			Hint: "openssl pkey -in KEY -out NEW writes it in the clear: keep that file from others, and name it with --client-key",
		}
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, &Error{
			File: keyPath, Text: "this is not the key of the certificate in " + path + ": " + strings.TrimPrefix(err.Error(), "tls: "),
			Hint: "in its file the certificate comes first, and those that signed it behind; the key is not encrypted",
		}
	}
	return &pair, nil
}

// readPEM reads a PEM file that a setting names.
func readPEM(path string, who reach, setting string) ([]byte, error) {
	data, err := readUpTo(path, who, maxBundle)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{File: path, Text: "there is no such file", Hint: "check " + setting}
	case err != nil:
		return nil, err
	case !strings.Contains(string(data), "-----BEGIN"):
		return nil, &Error{
			File: path, Text: "is not in PEM form, which begins with -----BEGIN",
			Hint: "check " + setting + "; openssl x509 (or pkey) -inform der writes a file in DER form anew",
		}
	}
	return data, nil
}
