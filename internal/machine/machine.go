// Package machine tells machines apart: by the ID that the system gave each when it was installed.
package machine

import "strings"

// ID is this machine's, or "" where it has none, as most containers.
func ID() string { return strings.TrimSpace(id()) }
