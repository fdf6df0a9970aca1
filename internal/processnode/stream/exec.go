package stream

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/creack/pty"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/berth-hpc/berth/internal/processnode/task"
)

// ExecTerminal runs a command of the options in the container of the task, with a terminal,
// and returns when it has ended.
func ExecTerminal(
	container *task.Task, o task.Options, in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize,
) error {
	terminal, child, err := container.Terminal()
	if err != nil {
		return err
	}
	defer terminal.Close()
	o.Stdin, o.Stdout, o.Stderr = child, child, child
	t, err := container.Exec(o)
	_ = child.Close()
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	go resizeTerminal(terminal, resize, done)
	if in != nil {
		go func() { _, _ = io.Copy(terminal, in) }()
	}
	if out != nil {
		// It ends when the last process has closed the terminal.
		if _, err := io.Copy(out, terminal); isBroken(err) {
			t.KillTree()
		}
	}
	<-t.Done()
	return exitError(t.Result())
}

// isBroken reports whether copying ended for a reason other than the hang-up of the
// terminal, that is because the client has disconnected.
func isBroken(err error) bool {
	var path *os.PathError
	return err != nil && !errors.As(err, &path)
}

func resizeTerminal(terminal *os.File, resize <-chan remotecommand.TerminalSize, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case size, ok := <-resize:
			if !ok {
				return
			}
			_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width})
		}
	}
}

// ExecPipes is ExecTerminal without a terminal. It returns when all output of the command
// was forwarded; streams that are nil are not connected.
func ExecPipes(container *task.Task, o task.Options, in io.Reader, out, errOut io.Writer) error {
	var ours, childs []*os.File
	defer func() { closeAll(ours) }()
	var copies sync.WaitGroup
	var begin []func()
	pipe := func(fromChild bool, to io.Writer) (*os.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		if !fromChild {
			ours, childs = append(ours, w), append(childs, r)
			begin = append(begin, func() {
				go func() { // ends with the client's stream
					_, _ = io.Copy(w, in)
					_ = w.Close()
				}()
			})
			return r, nil
		}
		ours, childs = append(ours, r), append(childs, w)
		begin = append(begin, func() { copies.Go(func() { _, _ = io.Copy(to, r) }) })
		return w, nil
	}
	var err error
	if in != nil {
		o.Stdin, err = pipe(false, nil)
	}
	if out != nil && err == nil {
		o.Stdout, err = pipe(true, out)
	}
	if errOut != nil && err == nil {
		o.Stderr, err = pipe(true, errOut)
	}
	var t *task.Task
	if err == nil {
		t, err = container.Exec(o)
	}
	closeAll(childs)
	if err != nil {
		return err
	}
	for _, f := range begin {
		f()
	}
	<-t.Done()
	copies.Wait()
	return exitError(t.Result())
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

func exitError(r task.Result) error {
	if r.Code == 0 {
		return nil
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", r.Code), Code: r.Code}
}
