package realnode

import (
	"os"
	"os/exec"
)

// process is a running child.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed at its end
}

// start starts cmd with its output in a new file.
func start(cmd *exec.Cmd, log string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // ProcessState says more
		close(p.done)
	}()
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill kills the process and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if it is gone
	<-p.done
}
