package config

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"strings"
)

// ReadAuthorities reads the certificates in a PEM file that are to be trusted beside the system's. Another file, or one
// that another user may have written, is an [*Error].
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
		return nil, fault(path, "holds no certificate in PEM form, or one that is damaged",
			"openssl x509 -inform der writes one in DER form anew; else copy it again")
	}
	return all, nil
}

// ReadClientCertificate reads a certificate with its chain from one PEM file and its key from another, or both from one
// where keyPath is "". The file with the key is a secret. Files that do not hold such a pair are an [*Error].
func ReadClientCertificate(path, keyPath string) (*tls.Certificate, error) {
	who := readable
	if keyPath == "" {
		who, keyPath = secret, path
	}
	certificate, err := readPEM(path, who, "--client-cert, or client_cert in the profile")
	if err != nil {
		return nil, err
	}
	key, err := readPEM(keyPath, secret, "--client-key, or client_key in the profile")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fault(keyPath,
			"this is not the key of the certificate in "+path+": "+strings.TrimPrefix(err.Error(), "tls: "),
			"both are in PEM form, in its file the certificate comes before those that signed it, and the key "+
				"is not encrypted (openssl pkey -in KEY -out NEW writes it in the clear)")
	}
	return &pair, nil
}

// readPEM reads a file that a setting names.
func readPEM(path string, who privacy, setting string) ([]byte, error) {
	data, err := readFile(path, who)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault(path, "there is no such file", "check "+setting)
	}
	return data, err
}
