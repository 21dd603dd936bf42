//go:build unix

package config

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/internal/testsupport"
	"leadferry/internal/testsupport/must"
)

func asPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// selfSigned is a certificate and its key as PEM.
func selfSigned(t *testing.T) (certificate, key string) {
	return testsupport.PEM(t, testsupport.Sign(t, x509.Certificate{}, nil))
}

func TestAuthorities(t *testing.T) {
	one, key := selfSigned(t)
	two, _ := selfSigned(t)
	block, _ := pem.Decode([]byte(one))
	path := filepath.Join(t.TempDir(), "ca file.pem")
	for text, want := range map[string]string{ // a piece of the error, or the number of certificates
		one:                          "1",
		"# ours\n" + one + key + two: "2",
		"":                           "no certificate",
		"planted":                    "no certificate",
		string(block.Bytes):          "openssl x509",
		key:                          "holds no certificate",
		one[:len(one)/2]:             "damaged",
		one + two[:len(two)/2]:       "damaged",
		asPEM("CERTIFICATE", nil):    "damaged",
		strings.Repeat("x", 5<<20):   "is longer than",
	} {
		write(t, path, text, 0o644)
		got, err := ReadAuthorities(path)
		if err != nil && (len(want) == 1 || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "planted")) || err == nil && string('0'+rune(len(got))) != want {
			t.Errorf("%.40q: %d, %v, want %s", text, len(got), err, want)
		}
	}
	for name, want := range map[string]string{"no-such": "file does not exist", "": "is no regular file"} {
		if _, err := ReadAuthorities(filepath.Join(filepath.Dir(path), name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	write(t, path, one, 0o644)
	must.Do(t, os.Chmod(path, 0o666))
	if _, err := ReadAuthorities(path); err == nil || !strings.Contains(err.Error(), "may write") {
		t.Errorf("a file that anybody may write to was accepted: %v", err)
	}
}

func TestClientCertificate(t *testing.T) {
	certificate, key := selfSigned(t)
	_, otherKey := selfSigned(t)
	encrypted := "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n"
	dir := t.TempDir()
	at, keyAt := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	for _, test := range []struct {
		certificate, key string // key "": both are in one file
		mode             os.FileMode
		want             string // piece of the error; "": none
	}{
		{certificate, key, 0o600, ""},
		{certificate + key, "", 0o600, ""},
		{certificate, certificate + key, 0o640, ""},
		{certificate, key, 0o644, "others may read this file, which holds a secret"},
		{certificate + key, "", 0o644, "others may read this file, which holds a secret"},
		{certificate, otherKey, 0o600, "is not the key of the certificate in " + at},
		{certificate, "", 0o600, "is not the key"},
		{certificate, certificate, 0o600, "is not the key"},
		{certificate, " ", 0o600, "is not the key"},
		{certificate, "pl4nted", 0o600, "is not the key"},
		{certificate, asPEM("ENCRYPTED PRIVATE KEY", []byte("pl4nted")), 0o600, "the key is not encrypted"},
		{certificate, encrypted, 0o600, "the key is not encrypted"},
	} {
		for _, path := range []string{at, keyAt} {
			os.Remove(path)
		}
		write(t, at, test.certificate, test.mode)
		name := keyAt
		if write(t, keyAt, test.key, test.mode); test.key == "" {
			name = ""
		}
		pair, err := ReadClientCertificate(at, name)
		if test.want == "" && (err != nil || pair.Leaf == nil || pair.PrivateKey == nil || len(pair.Certificate) != strings.Count(test.certificate, "BEGIN CERTIFICATE")) {
			t.Errorf("%v", err)
		}
		if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "pl4nted")) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

// Others may read a configuration file, but not one that holds the password of a proxy.
func TestProxyPasswordInAProfileNeedsAPrivateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	for text, want := range map[string]string{
		"http://proxy:3128": "", "none": "", "http://u:pl4nted@proxy:3128": "chmod 600 ",
	} {
		os.Remove(path)
		write(t, path, "profiles:\n  eu: {proxy: \""+text+"\", ca_file: ca.pem}\n", 0o644)
		_, err := Load(path)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pl4nted")) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		must.Do(t, os.Chmod(path, 0o600))
		if f, err := Load(path); err != nil || f["eu"]["proxy"].Text != text || f["eu"]["ca_file"].Text != filepath.Join(filepath.Dir(path), "ca.pem") {
			t.Errorf("%s: %v, %v", text, f, err)
		}
	}
}
