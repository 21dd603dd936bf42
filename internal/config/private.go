package config

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"leadferry/internal/disk"
	"leadferry/internal/shell"
)

// privacy says who may read a file. Every file must belong to the user or to root, and only its owner may write to it.
type privacy uint8

const (
	readable privacy = iota // anyone
	secret                  // owner and group; anyone if it is in memory, see handedOver
	ownFile                 // the user alone; leadferry made it, so it is no symbolic link
)

const maxFile = 1 << 20 // bytes; the largest files of certificates have a quarter

// readFile reads a small regular file. A missing file is fs.ErrNotExist.
func readFile(path string, who privacy) ([]byte, error) {
	flags := os.O_RDONLY | disk.NonBlock // a named pipe would wait for its writer
	if who == ownFile {
		flags |= disk.NoFollow
	}
	f, err := os.OpenFile(path, flags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w\nhint: check the path", path, fs.ErrNotExist)
	}
	var data []byte
	if err == nil {
		defer f.Close()
		if err := checkTrust(f, path, who); err != nil {
			return nil, err
		}
		data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	}
	switch {
	case err != nil:
		return nil, fault(path, "cannot be read: "+cause(err), disk.WayOut(err))
	case len(data) > maxFile:
		return nil, fault(path, fmt.Sprintf("is longer than %d KiB", maxFile>>10),
			"see whether it is the file that is meant")
	}
	return data, nil
}

// checkTrust refuses an open file that somebody else may have written, or a secret that others may read, as ssh does.
func checkTrust(f *os.File, path string, who privacy) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	switch {
	case !info.Mode().IsRegular():
		return fault(path, "is no regular file", "name a file itself, no folder, device or pipe")
	case !disk.Trusted(info) || who == ownFile && !disk.Mine(info):
		return fault(path, "belongs to another user, who can change what is in it",
			`copy it, or make it yours: chown "$(id -un)" `+shell.Path(path))
	case disk.OthersMay(info, 0o022):
		return fault(path, "group or others may write to this file", chmod("go-w", path))
	case who == ownFile && disk.Shared(info):
		return fault(path, "group or others may read this file, which holds a secret", chmod("600", path))
	case who == secret && disk.OthersMay(info, 0o004) && !handedOver(path):
		return fault(path, "others may read this file, which holds a secret", chmod("600", path))
	}
	return nil
}

// handedOver reports whether systemd, Kubernetes or Swarm mounted a secret: in memory, in a folder of root or the user.
func handedOver(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	kind, unknown := disk.FileSystem(real)
	folder, err := os.Stat(filepath.Dir(real))
	inMemory := kind == 0x01021994 || kind == 0x858458f6 // Linux's numbers of tmpfs and ramfs
	return err == nil && unknown == nil && inMemory && disk.Trusted(folder)
}

// ReadSecret reads the OAuth secret from a file, without byte order mark and white space around it, or fs.ErrNotExist.
func ReadSecret(path string) (string, error) {
	data, err := readFile(path, secret)
	if err != nil {
		return "", err
	}
	// Windows writes a byte order mark, and PowerShell UTF-16 after it.
	data, _, err = transform.Bytes(unicode.BOMOverride(transform.Nop), data)
	text := strings.TrimSpace(string(data))
	if err != nil || text == "" {
		return "", fault(path, "no client secret in it", "the file holds the secret and nothing else")
	}
	return text, nil
}

// ReadAuthorities reads the certificates in a PEM file, to trust them beside the system's.
func ReadAuthorities(path string) (all []*x509.Certificate, err error) {
	data, err := readFile(path, readable)
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
			"openssl x509 -inform der converts one from DER form; else copy it again")
	}
	return all, nil
}

// ReadClientCertificate reads a certificate and its chain from a PEM file, and its key from keyPath; "": the same file.
func ReadClientCertificate(path, keyPath string) (*tls.Certificate, error) {
	who := readable
	if keyPath == "" {
		who, keyPath = secret, path
	}
	certificate, err := readFile(path, who)
	if err != nil {
		return nil, err
	}
	key, err := readFile(keyPath, secret)
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

// checkFolder refuses a folder of secrets that belongs to another user or that others may enter. It may be missing.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault(dir, "cannot be looked at: "+cause(err), disk.WayOut(err))
	case !info.IsDir() || !disk.Mine(info) || disk.Shared(info):
		return fault(dir, "group or others may enter this folder, which is for secrets, or it is another user's",
			"run this as its owner; if you are, "+chmod("700", dir)+", or move it away: it is made again by itself")
	}
	return nil
}

func makeFolder(dir string) error {
	if err := disk.MakeFolders(dir); err != nil {
		return fault(dir, "the folder cannot be made: "+cause(err), disk.WayOut(err))
	}
	return checkFolder(dir)
}

// takeLock locks path.lock, a file that stays when path is replaced. It returns nil if another process has the lock.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|disk.NoFollow|disk.NonBlock, 0o600)
	if err != nil {
		return nil, err
	}
	locked, err := disk.TryLock(f, false)
	if !locked {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func cause(err error) string {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e.Error()
	}
	return err.Error()
}

func chmod(mode, path string) string { return "chmod " + mode + " " + shell.Path(path) }
