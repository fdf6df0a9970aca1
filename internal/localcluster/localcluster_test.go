package localcluster

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
)

func TestStateIsLockedAndOurs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s, err := openState(dir)
	if err != nil {
		t.Fatal(err)
	}
	var running *RunningError
	if _, err := openState(dir); !errors.As(err, &running) {
		t.Errorf("second open: %v", err)
	}
	if locked, err := Locked(dir); err != nil || !locked {
		t.Errorf("locked: %t %v", locked, err)
	}
	s.close()
	if locked, err := Locked(dir); err != nil || locked {
		t.Errorf("after close: %t %v", locked, err)
	}
	if locked, err := Locked(filepath.Join(dir, "nothing")); err != nil || locked {
		t.Errorf("no directory: %t %v", locked, err)
	}
}

// A process that was killed may hold its lock for a moment; the next start waits for that.
func TestKilledProcessIsNotRunning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s, err := openState(dir)
	if err != nil {
		t.Fatal(err)
	}
	note := func(pid int) {
		started, err := startTicks(pid)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.writeJSON(fileProcess, Process{PID: pid, Started: started}); err != nil {
			t.Fatal(err)
		}
	}
	note(os.Getpid())
	if locked, err := LockedByRunning(dir); err != nil || !locked {
		t.Errorf("locked by a running process: %t %v", locked, err)
	}
	killed := exec.Command("sleep", "100")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	defer killed.Wait() //nolint:errcheck // it was killed
	note(killed.Process.Pid)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p, err := ReadProcess(dir)
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the process to be a zombie", p.isExiting)
	result := make(chan error, 1)
	go func() {
		locked, err := LockedByRunning(dir)
		if locked {
			err = errors.Join(err, errors.New("locked"))
		}
		result <- err
	}()
	_ = s.lock.Close() // as the kernel does for the last thread of the process
	if err := <-result; err != nil {
		t.Errorf("a directory that a killed process had locked, after the process has ended: %v", err)
	}
}

func TestWipeKeepsOtherFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "letter"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(dir); err == nil {
		t.Fatal("a directory with other files was accepted")
	}
	state := filepath.Join(dir, "state")
	lostAndFound := filepath.Join(state, "lost+found") // of a file system of its own
	if err := os.MkdirAll(lostAndFound, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := openState(state)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := os.MkdirAll(filepath.Join(state, "control", "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.wipe(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(state, "control")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("control still exists: %v", err)
	}
	for _, path := range []string{filepath.Join(state, fileMarker), lostAndFound} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestListen(t *testing.T) {
	hosts := []string{"127.0.0.1", "127.0.0.2"}
	l, err := listen(hosts, "--api-port", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := portOf(l)
	var inUse *PortInUseError
	if _, err := listen(hosts[1:], "--login-port", port, 0); !errors.As(err, &inUse) ||
		*inUse != (PortInUseError{port, "--login-port"}) || !strings.Contains(err.Error(), "--login-port") {
		t.Errorf("a port in use: %v", err)
	}
	other, err := listen(hosts, "--api-port", 0, port)
	if err != nil || portOf(other) == port {
		t.Errorf("a remembered port that is in use: %v", err)
	} else {
		_ = other.Close()
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, c.LocalAddr().String())
			_ = c.Close()
		}
	}()
	for _, h := range hosts {
		address := net.JoinHostPort(h, strconv.Itoa(port))
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(c)
		_ = c.Close()
		if string(got) != address {
			t.Errorf("dialled %s, reached %s", address, got)
		}
	}
}

func TestProcessAlive(t *testing.T) {
	started, err := startTicks(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !(Process{PID: os.Getpid(), Started: started}).Alive() {
		t.Error("this process is not alive")
	}
	if (Process{PID: os.Getpid(), Started: started + 1}).Alive() {
		t.Error("another process with the same pid is reported as alive")
	}
}

// A user who creates symbolic links cannot make root write elsewhere.
func TestHomeWithHostileFiles(t *testing.T) {
	me, err := Current()
	if err != nil {
		t.Skipf("the user who runs the tests cannot be a user of a cluster: %v", err)
	}
	outside := t.TempDir()
	for name, trap := range map[string]func(home string) error{
		"directory": func(home string) error { return os.Symlink(outside, filepath.Join(home, ".local")) },
		"last directory": func(home string) error {
			return errors.Join(os.MkdirAll(filepath.Join(home, ".local/state"), 0o700),
				os.Symlink(outside, filepath.Join(home, ".local/state/berth")))
		},
	} {
		me.Home = t.TempDir()
		if err := trap(me.Home); err != nil {
			t.Fatal(err)
		}
		if err := writeHome(me, []byte("x")); err == nil {
			t.Errorf("%s: a link was followed", name)
		}
	}
	me.Home = t.TempDir()
	dir := filepath.Join(me.Home, filepath.Dir(userFile))
	if err := errors.Join(os.MkdirAll(dir, 0o700),
		os.Symlink(filepath.Join(outside, "a"), filepath.Join(me.Home, userFile)),
		os.Symlink(filepath.Join(outside, "b"), filepath.Join(me.Home, userFile+".new"))); err != nil {
		t.Fatal(err)
	}
	if err := writeHome(me, []byte("secret")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(filepath.Join(me.Home, userFile))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("kubeconfig: %v %v", info, err)
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("written outside: %v", left)
	}
	if err := removeHome(me, []byte("another")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(me.Home, userFile)); err != nil {
		t.Errorf("another's kubeconfig was removed: %v", err)
	}
	if err := removeHome(me, []byte("secret")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(me.Home, userFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("kubeconfig still exists: %v", err)
	}
}

func TestAccountNames(t *testing.T) {
	for name, good := range map[string]bool{
		"ann": true, "u1-x": true, "Ann": false, "a_b": false, "a.b": false, "": false, strings.Repeat("a", 60): false,
	} {
		if err := (Account{Name: name}).Check(); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestPauseGrowsAndEnds(t *testing.T) {
	var tried time.Duration
	tries := 0
	for ; tried < 4*time.Second; tries++ {
		p := pause(tried)
		if p < 15*time.Millisecond || p > 250*time.Millisecond {
			t.Fatalf("a pause of %v after %v", p, tried)
		}
		tried += p
	}
	if tries > 40 {
		t.Errorf("%d tries in 4 s", tries)
	}
}
