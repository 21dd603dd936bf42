package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// writeArchive writes a target's archive, in the form that its system opens without further tools, and returns its name.
// Everything in it lies below one folder.
func (r *release) writeArchive(t target, files []file) (string, error) {
	name, write := r.name(t)+".tar.gz", writeTarGz
	if t.os == "windows" {
		name, write = r.name(t)+".zip", writeZip
	}
	to, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return "", err
	}
	defer to.Close()
	if err := write(to, r.name(t)+"/", files, r.when); err != nil {
		return "", err
	}
	return name, to.Close()
}

// writeTarGz writes files, owned by nobody in particular.
func writeTarGz(to io.Writer, folder string, files []file, when time.Time) error {
	packed, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	out := tar.NewWriter(packed)
	for _, f := range files {
		if err := addToTar(out, folder+f.name, f, when); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return packed.Close()
}

func addToTar(out *tar.Writer, name string, f file, when time.Time) error {
	head := &tar.Header{Name: name, Mode: int64(f.perm()), Size: int64(len(f.data)), ModTime: when, Format: tar.FormatPAX}
	if err := out.WriteHeader(head); err != nil {
		return err
	}
	_, err := out.Write(f.data)
	return err
}

// perm is 0644 where nothing else was said.
func (f file) perm() fs.FileMode {
	if f.mode == 0 {
		return 0o644
	}
	return f.mode
}

func writeZip(to io.Writer, folder string, files []file, when time.Time) error {
	out := zip.NewWriter(to)
	for _, f := range files {
		head := &zip.FileHeader{Name: folder + f.name, Method: zip.Deflate, Modified: when}
		head.SetMode(f.perm())
		w, err := out.CreateHeader(head)
		if err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return out.Close()
}

// writeSums writes SHA256SUMS over every file in the folder and below, as sha256sum --check reads it.
func writeSums(folder string) error {
	var list strings.Builder
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		sum, err := sumOf(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		fmt.Fprintf(&list, "%s  %s\n", sum, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(list.String()), 0o644)
}

// sumOf is the SHA-256 of a file, in hexadecimal digits.
func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
