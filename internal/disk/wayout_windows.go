package disk

import "golang.org/x/sys/windows"

// The commands that show what is wrong.
const (
	showsOwners = "`icacls` shows who may use them"
	showsRoom   = "`Get-PSDrive` shows what is full"
	raisesLimit = ""
)

// The system's own numbers for what is wrong.
var (
	noDisk         = []error{windows.ERROR_NOT_READY, windows.ERROR_INVALID_DRIVE}
	noRoom         = []error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED}
	writeProtected = []error{windows.ERROR_WRITE_PROTECT}
	noFile         = []error{windows.ERROR_DIRECTORY}
	tooManyOpen    = []error{windows.ERROR_TOO_MANY_OPEN_FILES}
	badName        = []error{windows.ERROR_INVALID_NAME, windows.ERROR_BAD_PATHNAME, windows.ERROR_FILENAME_EXCED_RANGE, windows.ERROR_CANT_RESOLVE_FILENAME}
	failing        = []error{windows.ERROR_CRC, windows.ERROR_IO_DEVICE, windows.ERROR_SECTOR_NOT_FOUND, windows.ERROR_DISK_OPERATION_FAILED}
)
