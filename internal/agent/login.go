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

// loginTime is how long a login shell may take to print its environment
// (GetEnvTimeout of slurm.conf), unless --get-user-env says otherwise.
const loginTime = 120 * time.Second

// loginEnv is the environment of a login shell of the user, for a job that asks
// for it (--get-user-env, or --export with names); nil for others. What the
// submission brought wins over it.
func (b *batch) loginEnv(submitted []string) []string {
	given, asked := b.a.job.Options["get-user-env"]
	if v, _ := env.Get(submitted, "SLURM_GET_USER_ENV"); v == "1" {
		asked = true
	}
	if !asked {
		return nil
	}
	limit := loginTime
	if n, err := strconv.Atoi(strings.TrimRight(given, "LS")); err == nil && n > 0 {
		limit = time.Duration(n) * time.Second
	}
	list, err := b.login(limit)
	if err != nil {
		// As Slurm: the job runs without.
		b.files.say("slurmstepd: error: Failed to load current user environment variables: " + err.Error())
		return nil
	}
	return list
}

// login runs a login shell that writes its environment into a file.
func (b *batch) login(limit time.Duration) ([]string, error) {
	a := b.a
	shell := a.welcome.Shell
	if shell == "" {
		shell = "/bin/sh"
	}
	out, err := os.OpenFile(filepath.Join(a.dir, "login-env"), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer os.Remove(out.Name()) //nolint:errcheck // in a folder that goes with the job
	defer out.Close()           //nolint:errcheck // read back below
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close() //nolint:errcheck // nothing was written
	// The shell's start-up files may print; only what descriptor 3 gets counts.
	proc, err := a.spawn.Start(&spawn.Spec{
		Path: shell, Args: []string{"-" + filepath.Base(shell), "-c", "exec env -0 >&3"}, Dir: "/",
		Env: []string{"HOME=" + a.welcome.Home, "USER=" + a.welcome.User, "LOGNAME=" + a.welcome.User, "SHELL=" + shell,
			"PATH=" + defaultPath, "TERM=dumb"},
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
		proc.Signal(syscall.SIGKILL) //nolint:errcheck // it may be over
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
