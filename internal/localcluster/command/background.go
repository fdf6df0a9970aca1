package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
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

// background starts this program again as a process of its own session and
// shows its progress until the cluster is ready or has failed.
func (p *program) background(ctx context.Context) error {
	ctx, release := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer release()
	// The other process would find this out as well; here it costs nothing.
	if locked, err := localcluster.Locked(p.StateDir); err != nil {
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

	ready := false
	for lines := bufio.NewScanner(report); lines.Scan(); {
		mark, text := lines.Text()[:1], lines.Text()[1:]
		switch mark {
		case "!":
			_ = cmd.Wait()
			return errors.New(text)
		case "=":
			ready = true
		}
		fmt.Fprintln(p.Err, text)
	}
	if ready {
		return cmd.Process.Release()
	}
	_ = cmd.Wait() // its state says how it ended
	if ctx.Err() != nil {
		return errors.New("interrupted; the cluster has been ended again")
	}
	return fmt.Errorf("the cluster ended while starting (%v); its log is %s", cmd.ProcessState, filepath.Join(p.StateDir, localcluster.FileLog))
}

// child is this program once more, not started yet, and the pipe on which it
// will report. What it writes besides goes to log.
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
		cmd.Dir = p.StateDir // a core dump, if any, goes there
	}
	cmd.Stdout, cmd.Stderr = log, log // a panic must be readable
	cmd.ExtraFiles = []*os.File{write}
	cmd.Env = append(slices.DeleteFunc(p.Environ(), func(e string) bool {
		return strings.HasPrefix(e, reportEnv+"=")
	}), reportEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, read, nil
}

// args are the options again, completed, as flags.
func (p *program) args() []string {
	args := []string{"run", "--foreground", "--state-dir=" + p.StateDir,
		"--slurm-conf=" + p.SlurmConf, fmt.Sprintf("--fresh=%t", p.Fresh), fmt.Sprintf("--api-port=%d", p.APIPort),
		"--accounting-storage=" + p.AccountingStorage, "--scheduler=" + p.Scheduler, "--bin-dir=" + p.BinDir,
		fmt.Sprintf("--login=%t", p.Login), fmt.Sprintf("--login-port=%d", p.LoginPort)}
	if p.Shaped {
		args = append(args, fmt.Sprintf("--nodes=%d", p.Nodes), fmt.Sprintf("--cpus=%d", p.CPUs),
			"--memory="+p.Memory, fmt.Sprintf("--gpus=%d", p.GPUs))
	}
	for _, u := range p.Users {
		args = append(args, "--user="+u)
	}
	return args
}

// checkSpace says so early where the disk is too full to run a store on it.
func checkSpace(dir string, least uint64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("state folder: %w", err)
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
		return fmt.Sprintf("%v; its state is in %s. `berth down` ends it", err, dir)
	case errors.Is(err, localcluster.ErrPortTaken):
		return fmt.Sprintf("%v; leave --api-port out to get a free one", err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Sprintf("%v (the disk of %s is full)", err, dir)
	}
	return err.Error()
}
