package disk

import "testing"

func TestAFolderOnAnotherMachine(t *testing.T) {
	for path, want := range map[string]bool{
		`\\server\share\state`: true, `//server/share`: true, `\\?\UNC\server\share`: true, `\\wsl.localhost\Debian\home`: true,
		`C:\state`: false, `\\?\C:\state`: false, `\\.\C:\state`: false, `state`: false, `\state`: false, ``: false,
	} {
		if shared(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
	if number, err := FileSystem(folder(t)); number != 0 || err != nil {
		t.Error(number, err)
	}
	if number, err := FileSystem(`\\server\share\state`); number != NetworkDrive || err != nil {
		t.Error(number, err)
	}
}
