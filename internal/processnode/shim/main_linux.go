package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/sigaction"
)

// exitSetup is the exit code of a container that could not be set up, as in container
// runtimes.
const exitSetup = 128

func init() {
	if len(os.Args) > 1 && os.Args[1] == Arg {
		main()
	}
}

// main never returns. It runs on the process's first thread (as init functions do), the
// one that survives execve, because some attributes are set per thread.
func main() {
	status := os.NewFile(FDStatus, "status")
	// The container must inherit neither this process's descriptors nor those of its
	// parent; older kernels (before 5.11) lack the call.
	if unix.CloseRange(FDSpec, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) != nil {
		for fd := FDSpec; fd <= FDExe; fd++ {
			unix.CloseOnExec(fd)
		}
	}
	err := become(status)
	var late *lateError
	if errors.As(err, &late) {
		_, _ = fmt.Fprintln(os.NewFile(2, "stderr"), late)
		syscall.Exit(exitLate)
	}
	_, _ = io.WriteString(status, err.Error())
	syscall.Exit(exitSetup)
}

// lateError reports an error after Going, on standard error, as a shell does.
type lateError struct{ error }

// exitLate is the exit code of a command in a running container that could
// not be executed.
const exitLate = 127

// become sets the process up as the Spec describes, and executes the command. It returns
// only after an error.
func become(status *os.File) error {
	if _, err := status.Write([]byte{Ready}); err != nil {
		return err
	}
	spec, err := readSpec()
	if err != nil {
		return err
	}
	if spec.EnterNet {
		if err := unix.Setns(FDNet, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the pod's network: %w", err)
		}
		_ = unix.Close(FDNet)
	}
	if spec.Hostname != "" {
		if err := unix.Sethostname([]byte(spec.Hostname)); err != nil {
			return fmt.Errorf("host name: %w", err)
		}
	}
	if spec.OOMScoreAdj != nil {
		// Lowering the value may not be permitted, which is not an error.
		_ = os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(*spec.OOMScoreAdj)), 0)
	}
	if spec.Root != "" {
		if err := buildRoot(spec); err != nil {
			return err
		}
	}
	if err := setIdentity(spec); err != nil {
		return err
	}
	if err := finishSetup(spec); err != nil {
		return err
	}
	if !spec.Joined {
		return execute(spec)
	}
	if _, err := status.Write([]byte{Going}); err != nil {
		return err
	}
	return &lateError{execute(spec)}
}

func readSpec() (*Spec, error) {
	f := os.NewFile(FDSpec, "spec")
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	spec := &Spec{}
	if err := json.Unmarshal(data, spec); err != nil {
		return nil, fmt.Errorf("read the container's specification: %w", err)
	}
	if len(spec.Argv) == 0 {
		return nil, errors.New("the container has no command")
	}
	return spec, nil
}

// finishSetup makes the last changes to the process before it executes the command: its
// directory, parent death signal, umask and signal handlers.
func finishSetup(spec *Spec) error {
	dir := spec.Dir
	if dir == "" {
		dir = "/"
	}
	if err := unix.Chdir(dir); err != nil {
		return fmt.Errorf("working directory %s: %w", dir, err)
	}
	if spec.DieWithParent {
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return err
		}
		// The parent may have exited before the call. Then nobody reads the status.
		poll := []unix.PollFd{{Fd: FDStatus}}
		if n, _ := unix.Poll(poll, 0); n > 0 && poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
			return errors.New("the process of the node has ended")
		}
	}
	unix.Umask(0o022)
	sigaction.ResetAll()
	return nil
}

// execute executes the command. It returns only after an error.
func execute(spec *Spec) error {
	name := spec.Argv[0]
	var denied error
	for _, path := range candidates(name, spec.Env) {
		err := syscall.Exec(path, spec.Argv, spec.Env)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if !errors.Is(err, unix.EACCES) {
			return fmt.Errorf("exec %s: %w", path, err)
		}
		denied = err
	}
	if denied != nil {
		return fmt.Errorf("exec %s: %w", name, denied)
	}
	if strings.Contains(name, "/") {
		return fmt.Errorf("exec %s: no such file or directory", name)
	}
	return fmt.Errorf("exec %s: executable file not found in $PATH", name)
}

// candidates returns the paths that name may refer to, by PATH of the container.
func candidates(name string, env []string) []string {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	var paths []string
	for _, e := range env {
		list, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		paths = nil
		for dir := range strings.SplitSeq(list, ":") {
			if dir == "" {
				dir = "."
			}
			paths = append(paths, dir+"/"+name)
		}
	}
	return paths
}
