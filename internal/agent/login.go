package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/translate/env"
)

// loginTimeout is the default time in which a login shell must print its
// environment (GetEnvTimeout of slurm.conf).
const loginTimeout = 120 * time.Second

// loginEnv returns the environment of a login shell of the user, for a job that
// requests it (--get-user-env, or --export with names), and nil for others. The
// variables of the submission win.
func (b *batch) loginEnv(submitted []string) []string {
	given, requested := b.a.job.Options["get-user-env"]
	if v, _ := env.Get(submitted, "SLURM_GET_USER_ENV"); v == "1" {
		requested = true
	}
	if !requested {
		return nil
	}
	limit := loginTimeout
	if n, err := strconv.Atoi(strings.TrimRight(given, "LS")); err == nil && n > 0 {
		limit = time.Duration(n) * time.Second
	}
	list, err := b.runLoginShell(limit)
	if err != nil {
		// As in Slurm, the job runs without it.
		b.files.writeLine("slurmstepd: error: Failed to load current user environment variables: " + err.Error())
		return nil
	}
	return list
}

// runLoginShell runs a login shell that writes its environment to a file, and
// returns that.
func (b *batch) runLoginShell(limit time.Duration) ([]string, error) {
	a := b.a
	shell := a.welcome.Shell
	if shell == "" {
		shell = "/bin/sh"
	}
	out, err := os.OpenFile(filepath.Join(a.dir, "login-env"), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer os.Remove(out.Name()) //nolint:errcheck // its directory is removed with the job
	defer out.Close()           //nolint:errcheck // read back below
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close() //nolint:errcheck // nothing was written
	// The shell's start-up files may print, so the environment is written to
	// descriptor 3.
	proc, err := a.spawn.Start(&spawn.Spec{
		Path: shell, Args: []string{"-" + filepath.Base(shell), "-c", "exec env -0 >&3"}, Dir: "/",
		Env: []string{
			"HOME=" + a.welcome.Home, "USER=" + a.welcome.User, "LOGNAME=" + a.welcome.User, "SHELL=" + shell,
			"PATH=" + defaultPath, "TERM=dumb",
		},
		Files: []*os.File{null, null, null, out}, Umask: -1,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shell, err)
	}
	select {
	case status := <-proc.Done():
		if status.ExitStatus() != 0 {
			return nil, fmt.Errorf("%s ended with %d", shell, status.ExitStatus())
		}
	case <-time.After(limit):
		proc.Signal(syscall.SIGKILL) //nolint:errcheck // it may have ended
		<-proc.Done()
		return nil, fmt.Errorf("%s took longer than %v", shell, limit)
	}
	data, err := os.ReadFile(out.Name())
	if err != nil {
		return nil, err
	}
	return env.Without(env.Split(data), func(name string) bool {
		return name == "_" || name == "SHLVL" || name == "PWD" || name == "OLDPWD" || name == "TERM"
	}), nil
}
