package proc

import "os/exec"

func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// terminate kills: Windows has no SIGTERM for another process.
func terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }
