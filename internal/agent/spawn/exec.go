package spawn

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/sigaction"
	"github.com/berth-hpc/berth/internal/strerror"
)

// ExecArg as the agent's first argument makes it the helper of Start: it sets umask,
// limits and SLURM_TASK_PID, and executes the program.
const ExecArg = "exec-with-limits"

const pidVar = "SLURM_TASK_PID="

var limits = map[string]int{
	"AS": unix.RLIMIT_AS, "CORE": unix.RLIMIT_CORE, "CPU": unix.RLIMIT_CPU, "DATA": unix.RLIMIT_DATA,
	"FSIZE": unix.RLIMIT_FSIZE, "MEMLOCK": unix.RLIMIT_MEMLOCK, "NOFILE": unix.RLIMIT_NOFILE,
	"NPROC": unix.RLIMIT_NPROC, "RSS": unix.RLIMIT_RSS, "STACK": unix.RLIMIT_STACK,
}

// helperArgs returns the arguments with which the helper executes spec.
func helperArgs(spec *Spec) []string {
	names := make([]string, 0, len(spec.Rlimits))
	for name := range spec.Rlimits {
		names = append(names, name)
	}
	sort.Strings(names)
	for i, name := range names {
		names[i] = name + "=" + strconv.FormatUint(spec.Rlimits[name], 10)
	}
	args := []string{spec.Helper, ExecArg, strconv.Itoa(spec.Umask), strings.Join(names, ","), spec.Path}
	return append(args, spec.Args...)
}

// Exec runs the helper. args are umask, limits, path and the program's arguments. A
// soft limit above the hard limit is reduced to that. Exec returns only after a
// failure, with the exit code; it writes the error to errors.
func Exec(args []string, errors io.Writer) int {
	if len(args) < 4 {
		return 125
	}
	sigaction.ResetCaught() // a signal of scancel must not get lost during exec
	if mask, err := strconv.Atoi(args[0]); err == nil && mask >= 0 {
		syscall.Umask(mask)
	}
	args = args[1:]
	for pair := range strings.SplitSeq(args[0], ",") {
		name, text, _ := strings.Cut(pair, "=")
		which, known := limits[name]
		soft, err := strconv.ParseUint(text, 10, 64)
		if !known || err != nil {
			continue
		}
		setSoft(which, soft)
	}
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, pidVar) })
	err := syscall.Exec(args[1], args[2:], append(env, pidVar+strconv.Itoa(os.Getpid())))
	fmt.Fprintln(errors, ExecError(args[1], err))
	return ExecCode(err)
}

// setSoft sets a soft limit.
func setSoft(which int, soft uint64) {
	var l unix.Rlimit
	if unix.Getrlimit(which, &l) != nil {
		return
	}
	if soft >= math.MaxInt64 { // the largest number in JSON means unlimited
		soft = unix.RLIM_INFINITY
	}
	l.Cur = min(soft, l.Max)
	// With the function of package syscall, Exec does not restore the limit of
	// open files that the Go runtime had raised.
	syscall.Setrlimit(which, &syscall.Rlimit{Cur: l.Cur, Max: l.Max}) //nolint:errcheck // best effort
}

// ExecError returns Slurm's line for a program that cannot be executed.
func ExecError(path string, err error) string {
	if errors.Is(err, syscall.ENOENT) {
		if interp := interpreter(path); interp != "" {
			return fmt.Sprintf("slurmstepd: error: execve(): bad interpreter(%s): %s", printable.Escape(interp),
				strerror.Text(err))
		}
	}
	return fmt.Sprintf("slurmstepd: error: execve(): %s: %s", printable.Escape(path), strerror.Text(err))
}

// interpreter returns the program in the #! line of a file, or "".
func interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 256)
	n, _ := f.Read(b)
	line, _, _ := strings.Cut(string(b[:n]), "\n")
	line, ok := strings.CutPrefix(line, "#!")
	if fields := strings.Fields(line); ok && len(fields) > 0 {
		return fields[0]
	}
	return ""
}

// ExecCode returns the exit code of a task that could not be executed: the errno.
func ExecCode(err error) int {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return int(errno) & 0xff
	}
	return 1
}

// Find resolves a command as execvp(3) does, with the PATH of env in the directory
// dir. It returns the path to execute, or "", and the path for messages.
func Find(name, dir string, env []string) (path, shown string) {
	if strings.Contains(name, "/") {
		if !strings.HasPrefix(name, "/") {
			name = dir + "/" + name
		}
		return name, name
	}
	for _, e := range env {
		list, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for entry := range strings.SplitSeq(list, ":") {
			if !strings.HasPrefix(entry, "/") {
				entry = dir + "/" + entry
			}
			full := entry + "/" + name
			st, err := os.Stat(full)
			if err == nil && st.Mode().IsRegular() && unix.Access(full, unix.X_OK) == nil {
				return full, full
			}
		}
	}
	return "", name
}
