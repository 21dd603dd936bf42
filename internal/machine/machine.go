//go:build !windows

package machine

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// ID returns this machine's ID, or "" if it has none, like most containers.
func ID() string {
	if runtime.GOOS != "darwin" {
		text, _ := os.ReadFile("/etc/machine-id")
		return strings.TrimSpace(string(text))
	}
	out, _ := exec.Command("/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice").Output()
	_, rest, _ := strings.Cut(string(out), `"IOPlatformUUID" = "`)
	uuid, _, _ := strings.Cut(rest, `"`)
	return uuid
}
