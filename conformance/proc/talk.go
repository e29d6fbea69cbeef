package proc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Talk starts argv as Start does, with pipes to its standard input and from its standard output; what it writes to the other stream is
// appended to the file logPath. Closing the returned writer is the end of the program's input.
func Talk(logPath string, env []string, argv ...string) (*Process, io.WriteCloser, *os.File, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, nil, err
	}
	defer log.Close() //nolint:errcheck // the child holds its own descriptor; nothing was written through this one
	in, write, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer in.Close() //nolint:errcheck // the child's end
	read, out, err := os.Pipe()
	if err != nil {
		write.Close() //nolint:errcheck // the error of the pipe says more
		return nil, nil, nil, err
	}
	defer out.Close() //nolint:errcheck // the child's end
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, log
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		write.Close() //nolint:errcheck // the error of the start says more
		read.Close()  //nolint:errcheck // the same
		return nil, nil, nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return follow(cmd, logPath), write, read, nil
}

// follow waits for a started command in the background.
func follow(cmd *exec.Cmd, logPath string) *Process {
	p := &Process{cmd: cmd, logPath: logPath, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p
}
