package task

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/processnode/shim"
)

// isolation skips the test if this machine forbids namespaces.
func isolation(t *testing.T) Isolation {
	t.Helper()
	i, why := Detect()
	if !i.Namespaces {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI's machine allows no namespaces: %s", why)
		}
		t.Skipf("this machine allows no namespaces: %s", why)
	}
	return i
}

// run runs a shell script in a container and returns its output and end.
func run(t *testing.T, spec shim.Spec, script string) (string, Result) {
	t.Helper()
	out, task := start(t, spec, script)
	<-task.Done()
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), task.Result()
}

func start(t *testing.T, spec shim.Spec, script string) (*os.File, *Task) {
	t.Helper()
	i := isolation(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	defer w.Close()
	if spec.Root == "" {
		spec.Root = t.TempDir()
	}
	spec.Argv = []string{"/bin/sh", "-c", script}
	spec.Env = append(spec.Env, "PATH=/usr/bin:/bin:/usr/sbin:/sbin")
	task, err := Start(Options{Spec: spec, Isolation: i, Stdout: w, Stderr: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { task.Kill(); <-task.Done() })
	return r, task
}

func TestContainerIsPIDOneWithItsOwnNameAndProc(t *testing.T) {
	out, res := run(t, shim.Spec{Hostname: "node7"}, `echo $$; hostname; ls /proc | grep -c '^[0-9]'`)
	lines := strings.Fields(out)
	if len(lines) != 3 || lines[0] != "1" || lines[1] != "node7" || res.Code != 0 {
		t.Fatalf("output %q, result %+v", out, res)
	}
	if n, _ := strconv.Atoi(lines[2]); n > 5 {
		t.Errorf("the container sees %d processes in /proc", n)
	}
}

func TestMountsDoNotChangeTheMachine(t *testing.T) {
	src := t.TempDir()
	if err := os.WriteFile(filepath.Join(src, "f"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("own hosts\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, res := run(t, shim.Spec{Mounts: []shim.Mount{
		{Source: src, Target: "/berth/bin/deep", Own: true},
		{Source: src, Target: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		{Source: file, Target: "/etc/hosts"},
		{Source: file, Target: "/dev/termination-log"},
		{Source: src, Target: "/berth/bin/deep/in/volume"},
	}}, `set -e
cat /berth/bin/deep/f /run/secrets/kubernetes.io/serviceaccount/f /etc/hosts /berth/bin/deep/in/volume/f
echo over > /dev/null; echo more >> /dev/termination-log
if touch /run/secrets/kubernetes.io/serviceaccount/x 2>/dev/null; then echo writable; fi
touch /berth/bin/deep/new; test -e /etc/passwd; test -e /run/secrets/..; ls /dev/pts >/dev/null; test -c /dev/null`)
	if want := "hello\nhello\nown hosts\nhello\n"; out != want || res.Code != 0 {
		t.Fatalf("output %q, result %+v", out, res)
	}
	for _, p := range []string{"/berth", "/run/secrets", "/dev/termination-log"} {
		if _, err := os.Lstat(p); err == nil {
			t.Errorf("%s was created on the machine", p)
		}
	}
	if _, err := os.Stat(filepath.Join(src, "new")); err != nil {
		t.Error(err)
	}
	if data, _ := os.ReadFile(file); string(data) != "own hosts\nmore\n" {
		t.Errorf("the file volume contains %q", data)
	}
}

func TestReadOnlyRootAndWorkingDirectory(t *testing.T) {
	src := t.TempDir()
	out, _ := run(t, shim.Spec{ReadOnlyRoot: true, Dir: "/data", Mounts: []shim.Mount{{Source: src, Target: "/data"}}},
		`pwd; touch /data/x && echo volume; touch /tmp/berth-test-ro 2>/dev/null || echo refused; touch /new 2>/dev/null || echo refused`)
	if out != "/data\nvolume\nrefused\nrefused\n" {
		t.Errorf("output %q", out)
	}
}

func TestEndsAreReported(t *testing.T) {
	if _, res := run(t, shim.Spec{}, `exit 7`); res.Code != 7 || res.Signal != 0 {
		t.Errorf("exit 7: %+v", res)
	}
	_, task := start(t, shim.Spec{}, `exec sleep 1000`)
	task.Kill()
	<-task.Done()
	if res := task.Result(); res.Code != 137 || res.Signal != syscall.SIGKILL {
		t.Errorf("killed: %+v", res)
	}
}

func TestTermReachesPIDOne(t *testing.T) {
	out, task := start(t, shim.Spec{}, `trap 'echo got; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	task.Signal(syscall.SIGTERM)
	<-task.Done()
	if rest, _ := io.ReadAll(out); string(rest) != "got\n" || task.Result().Code != 3 {
		t.Errorf("output %q, result %+v", rest, task.Result())
	}
}

func TestKillEndsBackgroundProcesses(t *testing.T) {
	out, task := start(t, shim.Spec{}, `setsid sh -c 'sleep 1000 & sleep 1000' & echo ready; wait`)
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	task.Kill()
	<-task.Done()
	// The end of file shows that no process has the other end open.
	if _, err := io.ReadAll(out); err != nil {
		t.Fatal(err)
	}
}

const ignored = 1 // SIG_IGN

// action sets the action for a signal that os/signal does not support, and returns the old one.
func action(t *testing.T, number, handler uintptr) uintptr {
	t.Helper()
	now := [4]uintptr{handler}
	var before [4]uintptr
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, number, uintptr(unsafe.Pointer(&now)), uintptr(unsafe.Pointer(&before)), 8, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return before[0]
}

func TestIgnoredSignalsAreNotInherited(t *testing.T) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGHUP, syscall.SIGTTOU)
	defer action(t, 32, action(t, 32, ignored))
	if out, _ := run(t, shim.Spec{}, `grep SigIgn /proc/self/status`); out != "SigIgn:\t0000000000000000\n" {
		t.Errorf("output %q", out)
	}
}

func TestStartErrors(t *testing.T) {
	i := isolation(t)
	for want, spec := range map[string]shim.Spec{
		"executable file not found in $PATH": {Argv: []string{"no-such-command"}, Env: []string{"PATH=/bin"}},
		"no such file or directory":          {Argv: []string{"/no/such/command"}},
		"working directory /no/such/dir":     {Argv: []string{"/bin/true"}, Dir: "/no/such/dir"},
		"permission denied":                  {Argv: []string{"/etc/passwd"}},
		"mount /x: /no/such/source":          {Argv: []string{"/bin/true"}, Mounts: []shim.Mount{{Source: "/no/such/source", Target: "/x"}}},
	} {
		spec.Root = t.TempDir()
		_, err := Start(Options{Spec: spec, Isolation: i})
		var start *StartError
		if !errors.As(err, &start) || !strings.Contains(start.Text, want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestExecJoinsTheContainer(t *testing.T) {
	src := t.TempDir()
	_, task := start(t, shim.Spec{Hostname: "inside", Mounts: []shim.Mount{{Source: src, Target: "/only/here"}}}, `exec sleep 1000`)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	e, err := task.Exec(Options{
		Spec:   shim.Spec{Argv: []string{"sh", "-c", `until [ "$(cat /proc/1/comm)" = sleep ]; do :; done; hostname; ls -d /only/here; cat /proc/1/comm; ls /proc/self/fd | wc -l; exit 5`}, Env: []string{"PATH=/usr/bin:/bin"}},
		Stdout: w, Stderr: w,
	})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	<-e.Done()
	out, _ := io.ReadAll(r)
	if string(out) != "inside\n/only/here\nsleep\n4\n" || e.Result().Code != 5 {
		t.Errorf("output %q, result %+v", out, e.Result())
	}
}

func TestIdentity(t *testing.T) {
	i := isolation(t)
	if !i.Root {
		out, res := run(t, shim.Spec{}, `id -u; grep CapEff /proc/self/status`)
		if want := strconv.Itoa(os.Getuid()) + "\nCapEff:\t0000000000000000\n"; out != want || res.Code != 0 {
			t.Errorf("output %q, want %q", out, want)
		}
		return
	}
	var none uint64
	out, _ := run(t, shim.Spec{SetIDs: true, UID: 12345, GID: 12346, Groups: []uint32{7, 12347}, NoNewPrivs: true, Bounding: &none},
		`id -u; id -g; id -G > /dev/stdout; grep -e CapEff -e CapBnd -e NoNewPrivs /proc/self/status | tr -d '\t'`)
	want := "12345\n12346\n12346 7 12347\nCapEff:0000000000000000\nCapBnd:0000000000000000\nNoNewPrivs:1\n"
	if out != want {
		t.Errorf("output %q, want %q", out, want)
	}
}

func TestNothingLeaks(t *testing.T) {
	isolation(t)
	before, mounts := openFiles(t), mountTable(t)
	for range 5 {
		run(t, shim.Spec{Hostname: "x"}, `exit 0`)
	}
	// The five pipes are open until the test ends.
	eventually.Holds(t, "no more files are open than before", func() bool { return openFiles(t) <= before+5 })
	if after := mountTable(t); !bytes.Equal(mounts, after) {
		t.Errorf("mounts before:\n%s\nafter:\n%s", mounts, after)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func mountTable(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func BenchmarkStart(b *testing.B) {
	i, why := Detect()
	if !i.Namespaces {
		b.Skip(why)
	}
	root := b.TempDir()
	for b.Loop() {
		t, err := Start(Options{Isolation: i, Spec: shim.Spec{Root: root, Hostname: "x", Argv: []string{"/bin/true"}}})
		if err != nil {
			b.Fatal(err)
		}
		<-t.Done()
	}
}

func TestExecOnATerminal(t *testing.T) {
	_, task := start(t, shim.Spec{}, `exec sleep 1000`)
	terminal, child, err := task.Terminal()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	e, err := task.Exec(Options{
		Spec:  shim.Spec{Argv: []string{"sh", "-c", `tty >/dev/null && echo terminal; read x; $x`}, Env: []string{"PATH=/usr/bin:/bin"}},
		Stdin: child, Stdout: child, Stderr: child, TTY: true,
	})
	child.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(terminal, "exit 3\n"); err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(terminal)
	<-e.Done()
	if !strings.Contains(string(out), "terminal\r\n") || e.Result().Code != 3 {
		t.Errorf("output %q, result %+v", out, e.Result())
	}
}
