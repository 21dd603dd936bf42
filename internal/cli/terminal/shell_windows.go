package terminal

import (
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// ParentShell is the kind of shell that started the program.
func ParentShell() Shell {
	all, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return powerShell
	}
	defer windows.CloseHandle(all)
	one := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(all, &one); err == nil; err = windows.Process32Next(all, &one) {
		if one.ProcessID == uint32(os.Getppid()) {
			return shellOf(windows.UTF16ToString(one.ExeFile[:]))
		}
	}
	return powerShell
}

// OpenFile opens a file as a double click does, a page in the browser. It does not wait for it to be closed.
func OpenFile(path string) error {
	whole, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(whole)
	if err != nil {
		return err
	}
	return windows.ShellExecute(0, nil, name, nil, nil, windows.SW_SHOWNORMAL)
}
