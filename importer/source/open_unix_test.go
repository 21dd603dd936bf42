//go:build unix

package source_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

func TestOpenRefusesWhatIsNoFile(t *testing.T) { // faults 27, 97
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	listener, err := net.Listen("unix", socket)
	must.Do(t, err)
	defer listener.Close()
	for path, want := range map[string]string{
		filepath.Join(dir, "missing.csv"): "no such file",
		dir:                               "a directory",
		pipe:                              "a pipe or a socket",
		socket:                            "a pipe or a socket",
		os.DevNull:                        "a device",
		"-":                               "no name to tell its format by",
	} {
		openError(t, path, source.Options{}, want)
	}
	if !errors.Is(openError(t, filepath.Join(dir, "missing.csv"), source.Options{}, ""), fs.ErrNotExist) {
		t.Error("the cause of a missing file is not kept")
	}
}
