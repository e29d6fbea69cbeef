package proc

import "syscall"

// dieWithParent leaves no broker behind when a test binary itself is killed or ends by its -timeout, where no cleanup runs.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
