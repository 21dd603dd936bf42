package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"
)

func descriptor(t *testing.T, text string) *windows.SECURITY_DESCRIPTOR {
	t.Helper()
	sd, err := windows.SecurityDescriptorFromString(text)
	if err != nil {
		t.Fatal(text, err)
	}
	return sd
}

// fault 137
func TestWhoMayUseAFileByItsList(t *testing.T) {
	me, err := currentUser()
	if err != nil {
		t.Fatal(err)
	}
	const stranger = "S-1-5-21-1-2-3-4711"
	for list, want := range map[string]struct {
		mine, trusted, read, write bool
	}{
		"O:%D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;%)":    {true, true, false, false},
		"O:SYD:(A;;FA;;;SY)":                           {false, true, false, false},
		"O:" + stranger + "D:(A;;FA;;;%)":              {false, false, false, false},
		"O:%D:(A;;FR;;;WD)":                            {true, true, true, false},
		"O:%D:(A;;FR;;;BU)(A;;FW;;;AU)":                {true, true, true, true},
		"O:%D:(A;;FA;;;" + stranger + ")":              {true, true, true, true},
		"O:%D:(A;;0x10000;;;" + stranger + ")":         {true, true, false, true}, // may remove it
		"O:%D:(A;;0x40000;;;" + stranger + ")":         {true, true, false, true}, // may let himself in
		"O:%D:(A;OICIIO;FA;;;WD)(A;;FA;;;%)":           {true, true, false, false},
		"O:%D:(D;;FA;;;" + stranger + ")(A;;FA;;;%)":   {true, true, false, false},
		"O:%D:(A;;FA;;;CO)(A;;FA;;;OW)(A;;0x20;;;WD)":  {true, true, false, false},
		"O:%D:(A;;FA;;;S-1-15-2-1)":                    {true, true, false, false},
		"O:%D:(A;;FR;;;S-1-5-21-1-2-3-512)(A;;FA;;;%)": {true, true, false, false}, // administrators of the domain
		"O:%": {true, true, true, true},
	} {
		text := ""
		for _, r := range list {
			if r == '%' {
				text += me.user.String()
			} else {
				text += string(r)
			}
		}
		path := written(t, filepath.Join(folder(t), "f"), "")
		plain, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := withAccess(plain, descriptor(t, text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if Mine(info) != want.mine || Trusted(info) != want.trusted || OthersRead(info) != want.read || OthersWrite(info) != want.write || Shared(info) != (want.read || want.write) {
			t.Errorf("%s: mine %v, trusted %v, others read %v, write %v", list, Mine(info), Trusted(info), OthersRead(info), OthersWrite(info))
		}
	}
}

func TestAFileSystemWithoutLists(t *testing.T) {
	info, err := os.Stat(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := withAccess(info, nil, windows.ERROR_NOT_SUPPORTED); err != nil || Shared(got) || !Mine(got) || !Trusted(got) {
		t.Error(got, err)
	}
	if _, err := withAccess(info, nil, windows.ERROR_ACCESS_DENIED); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}

// everybody lets all the world use a file.
func everybody(t *testing.T, path string) {
	t.Helper()
	list, _, err := descriptor(t, "D:(A;;FA;;;WD)").DACL()
	if err == nil {
		err = windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION, nil, nil, list, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sees says whether others may use a file, by its name and by its handle; the user must be able to himself.
func sees(t *testing.T, path string, others bool) {
	t.Helper()
	named, err := Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	opened, err := StatOpen(f)
	if err != nil {
		t.Fatal(err)
	}
	if !Mine(named) || !Mine(opened) || Shared(named) != others || Shared(opened) != others {
		sd, _ := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, ownerAndList)
		t.Errorf("%s: %s", path, sd)
	}
}

// What is made private is read back so. Whether a folder passes that on to what is made in it is not asked: wine's do not.
func TestWhatIsMadePrivate(t *testing.T) {
	dir := folder(t)
	path := written(t, filepath.Join(dir, "f"), "text")
	everybody(t, path)
	sees(t, path, true)
	f, err := os.Open(path)
	if err == nil {
		err = errors.Join(MakePrivate(f), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	sees(t, path, false)
	everybody(t, dir)
	sees(t, dir, true)
	below := filepath.Join(dir, "a", "b")
	for range 2 { // those that are there stay as they are
		if err := MakeFolders(below); err != nil {
			t.Fatal(err)
		}
	}
	sees(t, filepath.Join(dir, "a"), false)
	sees(t, below, false)
	sees(t, dir, true)
	if err := MakeFolder(below); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if err := MakeFolders(filepath.Join(path, "c")); err == nil {
		t.Error("a folder was made in a file")
	}
}
