package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"

	"leadferry/internal/spelling"
)

// access is what is known of a file with its owner, and with the mode that fits the list of who may use it: it has
// bits for others where anybody may but the user, the system and the administrators. os.SameFile does not know it.
type access struct {
	fs.FileInfo
	uid    int
	others fs.FileMode
}

func (a access) Mode() fs.FileMode { return a.FileInfo.Mode()&^0o077 | a.others }

// uids for the owners of files; os.Geteuid is -1 here.
const (
	ours     = -1
	systems  = 0
	anothers = 1
)

func owner(info fs.FileInfo) (uid, gid int, known bool) {
	a, known := info.(access)
	return a.uid, anothers, known
}

const ownerAndList = windows.OWNER_SECURITY_INFORMATION | windows.DACL_SECURITY_INFORMATION

// Stat is os.Stat, which says also whose the file is and who else may use it.
func Stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, ownerAndList)
	return withAccess(info, sd, err)
}

// StatOpen is Stat of a file that is open.
func StatOpen(f *os.File) (fs.FileInfo, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	sd, err := windows.GetSecurityInfo(windows.Handle(f.Fd()), windows.SE_FILE_OBJECT, ownerAndList)
	return withAccess(info, sd, err)
}

// withAccess adds what a security descriptor says. Where a file system knows none, info stays as it is.
func withAccess(info fs.FileInfo, sd *windows.SECURITY_DESCRIPTOR, err error) (fs.FileInfo, error) {
	if noLists(err) {
		return info, nil
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read who may use", Path: info.Name(), Err: err}
	}
	me, err := currentUser()
	if err != nil {
		return nil, err
	}
	a := access{FileInfo: info, uid: anothers}
	switch who, _, err := sd.Owner(); {
	case err != nil || who == nil:
	case me.is(who):
		a.uid = ours
	case systemWide(who):
		a.uid = systems
	}
	a.others = othersBits(sd, me)
	return a, nil
}

// noLists says that a file system keeps no lists of who may do what, like FAT.
func noLists(err error) bool {
	return errors.Is(err, windows.ERROR_NOT_SUPPORTED) || errors.Is(err, windows.ERROR_INVALID_FUNCTION)
}

// What a list may allow, as far as it counts here: to read what is in a file or a folder, and to change it, or who may.
const (
	reads  = windows.FILE_READ_DATA | windows.GENERIC_READ | windows.GENERIC_ALL
	writes = windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER |
		windows.GENERIC_WRITE | windows.GENERIC_ALL | deletesInside
	deletesInside = 0x40
)

// othersBits are the bits of a mode for what others may do. What a list denies is not looked at: it would only take from
// them, or from us.
func othersBits(sd *windows.SECURITY_DESCRIPTOR, me account) (bits fs.FileMode) {
	list, _, err := sd.DACL()
	if err != nil || list == nil {
		return 0o066 // no list keeps nobody away
	}
	for i := range uint32(list.AceCount) {
		var entry *windows.ACCESS_ALLOWED_ACE
		if windows.GetAce(list, i, &entry) != nil {
			return 0o066
		}
		if entry.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE || entry.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0 {
			continue
		}
		who := (*windows.SID)(unsafe.Pointer(&entry.SidStart))
		if me.is(who) || systemWide(who) || strings.HasPrefix(who.String(), appPackages) {
			continue
		}
		if entry.Mask&reads != 0 {
			bits |= 0o044
		}
		if entry.Mask&writes != 0 {
			bits |= 0o022
		}
	}
	return bits
}

// account is who the program runs as.
type account struct {
	user *windows.SID
	also []*windows.SID // to whom belongs what the user makes: the administrators, to an administrator
}

func currentUser() (account, error) {
	token := windows.GetCurrentProcessToken()
	user, err := token.GetTokenUser()
	if err != nil {
		return account{}, &os.SyscallError{Syscall: "GetTokenInformation", Err: err}
	}
	me := account{user: user.User.Sid}
	groups, err := token.GetTokenGroups()
	if err != nil {
		return account{}, &os.SyscallError{Syscall: "GetTokenInformation", Err: err}
	}
	for _, g := range groups.AllGroups() { // also where the group counts only once the program is run as administrator
		if g.Sid.IsWellKnown(windows.WinBuiltinAdministratorsSid) {
			me.also = append(me.also, g.Sid)
		}
	}
	return me, nil
}

func (a account) is(who *windows.SID) bool {
	return who.Equals(a.user) || slices.ContainsFunc(a.also, who.Equals)
}

// Whose names begin so are no users, but limits to what programs of a user may do.
const appPackages = "S-1-15-"

// systemWide are those who could read and change everything anyway, and those who stand for a file's owner.
func systemWide(who *windows.SID) bool {
	for _, kind := range []windows.WELL_KNOWN_SID_TYPE{
		windows.WinLocalSystemSid, windows.WinBuiltinAdministratorsSid, windows.WinCreatorOwnerSid,
		windows.WinCreatorOwnerRightsSid,
	} {
		if who.IsWellKnown(kind) {
			return true
		}
	}
	return standing().MatchString(who.String())
}

// standing are the administrators of a domain or a forest, and Windows' own installer.
var standing = spelling.Form(`^S-1-5-(21-.*-51[29]|80-956008885-3418522649-1831038044-1853292631-2271478464)$`)

// MakePrivate leaves a file to the user that the program runs as, the system and the administrators, whatever its folder
// passes on to it. Where a file system keeps no such lists, it stays as it is.
func MakePrivate(f *os.File) error { return makePrivate(f.Name(), "") }

// MakeNewPrivate is MakePrivate for a file that was just made with mode 0600, which says nothing here.
func MakeNewPrivate(f *os.File) error { return MakePrivate(f) }

// MakeFolder makes a folder for those alone, and so what is made in it.
func MakeFolder(path string) error {
	err := os.Mkdir(path, 0o700)
	if err == nil {
		err = makePrivate(path, "OICI")
	}
	return err
}

// MakeFolders makes a folder and those above it that are not there by MakeFolder.
func MakeFolders(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if above := filepath.Dir(path); above != path {
		if err := MakeFolders(above); err != nil {
			return err
		}
	}
	if err := MakeFolder(path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.MkdirAll(path, 0o700) // another process was first, or it is no folder
}

func makePrivate(path, below string) error {
	err := setList(path, below)
	if err != nil && !noLists(err) {
		return &fs.PathError{Op: "keep from others", Path: path, Err: err}
	}
	return nil
}

// setList lets three do everything with a file, and below it where that says OICI.
func setList(path, below string) error {
	me, err := currentUser()
	if err != nil {
		return err
	}
	list := "D:P"
	for _, who := range []string{"SY", "BA", me.user.String()} {
		list += "(A;" + below + ";FA;;;" + who + ")"
	}
	sd, err := windows.SecurityDescriptorFromString(list)
	if err != nil {
		return err
	}
	h, err := handleOf(path, windows.WRITE_DAC, windows.FILE_FLAG_BACKUP_SEMANTICS)
	if err != nil {
		return err
	}
	// SetNamedSecurityInfo would do the same, but under wine adds what the folder above passes on.
	return errors.Join(windows.SetKernelObjectSecurity(h, windows.DACL_SECURITY_INFORMATION, sd), windows.CloseHandle(h))
}
