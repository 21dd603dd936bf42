//go:build unix

package signals

import (
	"os"
	"os/exec"
	"runtime/debug"
	"syscall"
	"testing"
)

// A crash that no recover catches ends by SIGABRT: Go's own exit code 2 would mean a usage error. fault 153
func TestRuntimeCrashEndsBySIGABRT(t *testing.T) {
	if os.Getenv("LEADFERRY_TEST_CRASH") != "" {
		CrashApart()
		debug.SetMaxStack(1 << 16)
		t.Log(deeper(0))
	}
	c := exec.Command(os.Args[0], "-test.run", t.Name())
	c.Env = append(os.Environ(), "LEADFERRY_TEST_CRASH=1")
	said, _ := c.CombinedOutput()
	if ended := c.ProcessState.Sys().(syscall.WaitStatus); ended.Signal() != syscall.SIGABRT {
		t.Errorf("exit %d\n%s", ended.ExitStatus(), said)
	}
}

func deeper(n int) int {
	if n < 0 { // never: the limit of the stack ends it
		return n
	}
	return 1 + deeper(n+1)
}
