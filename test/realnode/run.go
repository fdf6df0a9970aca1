package realnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// The program is started again in other roles; these variables say in which.
const (
	roleVariable = "BERTH_REALNODE_ROLE" // "", roleSite or roleNode
	dirVariable  = "BERTH_REALNODE_DIR"  // the site's directory
	roleSite     = "site"
	roleNode     = "node"
)

// Run runs inside in fresh namespaces and returns the exit code for the
// program. Whatever inside starts ends with it. Nothing but Run may have been
// done before by the program, because it is started again for each role.
func Run(inside func() int) int {
	var err error
	code := 0
	switch os.Getenv(roleVariable) {
	case roleNode:
		err = runNode()
	case roleSite:
		if err = enterSite(os.Getenv(dirVariable)); err == nil {
			code = inside()
		}
	default:
		code, err = runOutside()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "realnode: error:", err)
		return 1
	}
	return code
}

// runOutside prepares what may be kept for the next time, runs the site, and
// cleans up after it.
func runOutside() (code int, err error) {
	if os.Getuid() != 0 {
		return 1, errors.New("real nodes need root (namespaces, mounts, control groups)")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := prepare(ctx); err != nil {
		return 1, err
	}
	if err := sweep(); err != nil {
		return 1, err
	}
	dir, lock, err := claim()
	if err != nil {
		return 1, err
	}
	defer lock.Close()
	defer func() { err = errors.Join(err, cleanUp(dir, code != 0)) }()
	if err := makeCgroups(filepath.Base(dir)); err != nil {
		return 1, err
	}
	return runSite(ctx, dir)
}

// runSite starts the site and waits for its end; a cancelled ctx kills it and
// all that it started.
func runSite(ctx context.Context, dir string) (int, error) {
	// The kernel kills the site when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), roleVariable+"="+roleSite, dirVariable+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC |
			syscall.CLONE_NEWUTS,
		Pdeathsig: syscall.SIGKILL,
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("the site: %w", err)
	}
	return 0, nil
}

// keepVariable, when set, keeps the directory of a run that failed, with all logs.
const keepVariable = "BERTH_E2E_KEEP"

// cleanUp removes what outlives the namespaces.
func cleanUp(dir string, failed bool) error {
	err := removeCgroups(filepath.Base(dir), 20*time.Second)
	if failed && os.Getenv(keepVariable) != "" {
		progress("kept %s", dir)
		return errors.Join(err, os.Remove(filepath.Join(dir, lockName))) // so that nobody sweeps it
	}
	return errors.Join(err, os.RemoveAll(dir))
}
