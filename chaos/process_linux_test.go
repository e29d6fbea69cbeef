package chaos

import (
	"os/exec"
	"syscall"
)

// dieWithParent leaves no broker behind when the test binary itself is killed, or ends by its -timeout.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
