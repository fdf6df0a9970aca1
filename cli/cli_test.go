package cli_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/berth-hpc/berth/cli"
	"github.com/berth-hpc/berth/cli/root"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/wire"
)

// TestMain makes the commands available to the scripts under their names.
func TestMain(m *testing.M) {
	commands := map[string]func(){
		"berth": func() { os.Exit(root.Main(os.Args, process(), cli.Deps{})) },
	}
	for _, name := range cli.Names() {
		commands[name] = func() { os.Exit(cli.Main(name, os.Args[1:], process(), cli.Deps{})) }
	}
	testscript.Main(m, commands)
}

// process returns the process of a command that sees no local cluster that happens to
// run on this machine: only what the script set up.
func process() *stdio.Process {
	p := stdio.System()
	elsewhere := wire.MachineKubeconfigs(p.UID)
	if u, err := user.Current(); err == nil && u.HomeDir != p.Env("HOME") {
		elsewhere = append(elsewhere, u.HomeDir+"/.local/state/berth/user.kubeconfig", u.HomeDir+"/.local/state/berth/kubeconfig")
	}
	elsewhere = append(elsewhere, "/var/lib/berth/kubeconfig")
	p.ReadFile = func(path string) ([]byte, error) {
		if slices.Contains(elsewhere, path) {
			return nil, fs.ErrNotExist
		}
		return os.ReadFile(path)
	}
	return p
}

// exits implements "exits CODE COMMAND ARGS...": like exec, for a command that must have
// exactly this exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", args[1], got, want)
	}
}

// TestScripts runs the scripts that need no cluster; those named queue-* get a fake of the
// queue API. The scripts in test/e2e need a cluster.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("TZ", "UTC")
			// By default the race detector delays the exit of every command by 1 s.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("KUBECONFIG", "")
			if strings.Contains(filepath.Base(env.WorkDir), "queue-") {
				return fakeQueue(env)
			}
			return nil
		},
	})
}
