//go:build !windows && !darwin

package machine

import "os"

func id() string {
	text, _ := os.ReadFile("/etc/machine-id")
	return string(text)
}
