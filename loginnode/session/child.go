package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/sigaction"
)

// ChildCommand is the first argument with which the program runs Child.
const ChildCommand = "session-child"

// specFD is the descriptor from which the child reads its Spec.
const specFD = 3

// Child is the main function of a session's child: it executes the program of the Spec
// on descriptor 3. It returns an exit code only if that fails, or after sftp.
func Child() int {
	runtime.LockOSThread()
	sigaction.ResetAll()
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, "loginnode:", err)
		return 1
	}
	return 0
}

func child() error {
	spec, err := readSpec()
	if err != nil {
		return err
	}
	if err := restrict(spec); err != nil {
		return err
	}
	if err := os.Chdir(spec.Home); err != nil {
		fmt.Fprintf(os.Stderr, "Could not chdir to home directory %s: %v\n", spec.Home, errors.Unwrap(err))
		if err := os.Chdir("/"); err != nil {
			return err
		}
	}
	if spec.SFTP {
		return serveSFTP(spec)
	}
	if spec.Message {
		message(spec)
	}
	return become(spec)
}

func readSpec() (*Spec, error) {
	f := os.NewFile(specFD, "spec")
	if f == nil {
		return nil, errors.New("not started by the server")
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("not started by the server: %w", err)
	}
	var spec Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return nil, err
	}
	return &spec, nil
}

// restrict drops all rights but the user's, and checks that they are dropped.
func restrict(s *Spec) error {
	// Descriptors that the server inherited must not reach the user.
	if err := unix.CloseRange(specFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	unix.Umask(s.Umask)
	if s.OOMScoreAdj != 0 {
		// Raising the score needs no privilege. A failure does not matter.
		_ = os.WriteFile("/proc/self/oom_score_adj", []byte(fmt.Sprint(s.OOMScoreAdj)), 0)
	}
	for _, l := range s.Limits {
		if err := syscall.Setrlimit(l.Resource, &syscall.Rlimit{Cur: l.Soft, Max: l.Hard}); err != nil {
			return fmt.Errorf("resource limit %d: %w", l.Resource, err)
		}
	}
	if s.Drop {
		if err := drop(s); err != nil {
			return err
		}
	}
	if s.NoNewPrivileges {
		if err := noNewPrivileges(); err != nil {
			return fmt.Errorf("no_new_privs: %w", err)
		}
	}
	return nil
}

func drop(s *Spec) error {
	if err := syscall.Setgroups(s.Groups); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if err := syscall.Setresgid(s.GID, s.GID, s.GID); err != nil {
		return fmt.Errorf("setgid: %w", err)
	}
	if err := syscall.Setresuid(s.UID, s.UID, s.UID); err != nil {
		return fmt.Errorf("setuid: %w", err)
	}
	if s.UID != 0 &&
		(syscall.Setuid(0) == nil || os.Getuid() != s.UID || os.Geteuid() != s.UID || os.Getegid() != s.GID) {
		return errors.New("the rights of root could not be dropped")
	}
	return nil
}

// noNewPrivileges applies to the calling thread, to which Child is locked, and to the
// program that it executes.
func noNewPrivileges() error {
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// become executes the user's shell.
func become(s *Spec) error {
	program, argv := s.Shell, []string{"-" + filepath.Base(s.Shell)} // a login shell
	if s.Command != "" {
		argv = []string{filepath.Base(s.Shell), "-c", s.Command}
	}
	if len(s.Inside) > 0 {
		program, argv = lookPath(s.Inside[0], s.Env), append(s.Inside, insideShell(s)...)
	}
	err := syscall.Exec(program, argv, s.Env)
	return fmt.Errorf("%s: %w", program, err)
}

// insideShell returns the shell's command for Inside, which cannot start a program under
// a name with a leading dash.
func insideShell(s *Spec) []string {
	if s.Command == "" {
		return []string{s.Shell, "-l"}
	}
	return []string{s.Shell, "-c", s.Command}
}

// serveSFTP serves sftp. It runs with the user's rights, so the kernel checks access.
func serveSFTP(s *Spec) error {
	server, err := sftp.NewServer(stdio{}, sftp.WithServerWorkingDirectory(s.Home))
	if err != nil {
		return err
	}
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

type stdio struct{}

func (stdio) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (stdio) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (stdio) Close() error                { return os.Stdin.Close() }

// messageTimeout bounds the time of MOTD.Command.
const messageTimeout = 2 * time.Second

// message prints the message of the day, unless ~/.hushlogin exists, as with login(1).
func message(s *Spec) {
	if _, err := os.Stat(filepath.Join(s.Home, ".hushlogin")); err == nil {
		return
	}
	for _, name := range s.MOTD.Files {
		if data, err := os.ReadFile(name); err == nil {
			_, _ = os.Stdout.Write(data)
		}
	}
	if len(s.MOTD.Command) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), messageTimeout)
	defer cancel()
	name := lookPath(s.MOTD.Command[0], s.Env)
	cmd := exec.CommandContext(ctx, name, s.MOTD.Command[1:]...)
	cmd.Env, cmd.Dir = s.Env, "/"
	cmd.WaitDelay = 100 * time.Millisecond
	// A process group of its own, so that Ctrl-C does not end the login.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.Output()
	if err != nil {
		fmt.Fprintf(os.Stdout, "(%s gave no answer: the cluster may be slow or down)\n", s.MOTD.Command[0])
		return
	}
	_, _ = os.Stdout.Write(out)
}

// lookPath finds a program in the session's PATH.
func lookPath(name string, env []string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, e := range env {
		path, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			full := filepath.Join(dir, name)
			if st, err := os.Stat(full); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
				return full
			}
		}
	}
	return name
}
