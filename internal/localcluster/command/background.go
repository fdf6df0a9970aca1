package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/localcluster"
)

// background starts this program again in a session of its own and shows its progress
// until the cluster is ready or has failed.
func (p *program) background(ctx context.Context) error {
	ctx, release := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer release()
	// The other process would report this as well; here it costs nothing.
	if locked, err := localcluster.LockedByRunning(p.StateDir); err != nil {
		return err
	} else if locked {
		running, _ := localcluster.ReadProcess(p.StateDir)
		return &localcluster.RunningError{Process: running}
	}
	log, err := os.OpenFile(filepath.Join(p.StateDir, localcluster.FileLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd, report, err := p.child(log)
	if err != nil {
		return err
	}
	defer func() { _ = report.Close() }()
	err = cmd.Start()
	_ = cmd.ExtraFiles[0].Close()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()

	ready, failure := readReport(report, p.Err)
	if failure != nil {
		_ = cmd.Wait()
		return failure
	}
	if ready {
		return cmd.Process.Release()
	}
	_ = cmd.Wait() // its state shows how it ended
	if ctx.Err() != nil {
		return errors.New("interrupted; the cluster has been stopped again")
	}
	return fmt.Errorf("the cluster ended while starting (%v); its log is %s", cmd.ProcessState,
		filepath.Join(p.StateDir, localcluster.FileLog))
}

// child returns a command that runs this program again, and the pipe for its report.
// Other output goes to log.
func (p *program) child(log *os.File) (*exec.Cmd, *os.File, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(exe, p.args()...)
	if cmd.Dir = "/"; p.Env("HOME") != "" {
		cmd.Dir = p.StateDir // for a core dump, if any
	}
	cmd.Stdout, cmd.Stderr = log, log // a panic must be readable
	cmd.ExtraFiles = []*os.File{write}
	cmd.Env = append(slices.DeleteFunc(p.Environ(), func(e string) bool {
		return strings.HasPrefix(e, reportEnv+"=")
	}), reportEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, read, nil
}

// Marks of the lines that a cluster in the background reports.
const (
	markProgress = "+"
	markReady    = "=" // the cluster accepts jobs
	markFailed   = "!"
)

// writeReport writes a text with the mark before every line.
func writeReport(w io.Writer, mark, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(w, "%s%s\n", mark, line)
	}
}

// readReport shows a report to its end. It returns whether the cluster is ready, and
// the error that it reported.
func readReport(r io.Reader, show io.Writer) (ready bool, failure error) {
	var failed []string
	for lines := bufio.NewScanner(r); lines.Scan(); {
		line := lines.Text()
		if line == "" {
			continue
		}
		switch mark, text := line[:1], line[1:]; mark {
		case markFailed:
			failed = append(failed, text)
		case markReady:
			ready = true
			fmt.Fprintln(show, text)
		default:
			fmt.Fprintln(show, text)
		}
	}
	if len(failed) > 0 {
		return false, errors.New(strings.Join(failed, "\n"))
	}
	return ready, nil
}

// args returns the command line of the same program in the foreground, with the values
// of all flags.
func (p *program) args() []string {
	foreground := p.Options
	foreground.Foreground = true
	return append([]string{"run"}, foreground.Args()...)
}

// checkSpace returns an error if the file system of dir has less than least bytes free.
func checkSpace(dir string, least uint64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if free := s.Bavail * uint64(s.Bsize); free < least {
		return fmt.Errorf("the disk of %s is full: %d MB free, %d MB needed", dir, free>>20, least>>20)
	}
	return nil
}

// explain adds to an error what to do about it.
func explain(err error, dir string) string {
	var running *localcluster.RunningError
	switch {
	case errors.As(err, &running):
		return fmt.Sprintf("%v; its state is in %s. `berth down` stops it", err, dir)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Sprintf("%v (the disk of %s is full)", err, dir)
	}
	return err.Error()
}
