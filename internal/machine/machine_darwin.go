package machine

import (
	"os/exec"
	"strings"
)

func id() string {
	out, _ := exec.Command("/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice").Output()
	_, rest, _ := strings.Cut(string(out), `"IOPlatformUUID" = "`)
	uuid, _, _ := strings.Cut(rest, `"`)
	return uuid
}
