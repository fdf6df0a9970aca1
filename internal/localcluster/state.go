package localcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/durable"
	"github.com/berth-hpc/berth/internal/wire"
)

// Files of the state directory.
const (
	fileLock    = "lock"
	fileMarker  = wire.StateMarker // marks the directory as one that may be emptied
	filePorts   = "ports.json"
	fileProcess = "process.json"
	// fileControllers is kube-controller-manager's kubeconfig.
	fileControllers = "controllers.kubeconfig"
	// FileAdmin is the administrator's kubeconfig, FileScheduler the scheduler's,
	// FileLog the log of all parts.
	FileAdmin     = "kubeconfig"
	FileScheduler = "scheduler.kubeconfig"
	// FileSchedulerArgs has the flags of cmd/scheduler for this cluster, one per line.
	FileSchedulerArgs = "scheduler.args"
	FileLog           = "log"
)

// RunningError reports that another process uses the state directory.
type RunningError struct{ Process Process }

func (e *RunningError) Error() string {
	if e.Process.PID == 0 {
		return "a local cluster is being started or is running already"
	}
	return fmt.Sprintf("a local cluster is running already (process %d)", e.Process.PID)
}

// Process is the process that runs, or ran, the cluster.
type Process struct {
	PID int `json:"pid"`
	// Started is the process's start time in the kernel's ticks since boot; it
	// distinguishes the process from a later one with the same id.
	Started uint64 `json:"started"`
	Ready   bool   `json:"ready"`
	Server  string `json:"server,omitempty"`
	Nodes   int    `json:"nodes"`
	// Missing lists what the machine does not permit, in words.
	Missing []string `json:"missing,omitempty"`
}

// state is an open, locked state directory.
type state struct {
	dir  string
	lock *os.File
}

type ports struct {
	API     int `json:"api"`
	Webhook int `json:"webhook"`
	Queue   int `json:"queue"`
	Login   int `json:"login,omitempty"`
}

// openState creates and locks the directory. The kernel releases the lock when the process
// exits, for whatever reason.
func openState(dir string) (*state, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, fileLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			p, _ := ReadProcess(dir)
			return nil, &RunningError{Process: p}
		}
		return nil, fmt.Errorf("state directory: lock: %w", err)
	}
	s := &state{dir: dir, lock: f}
	if err := s.mark(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *state) path(name string) string { return filepath.Join(s.dir, name) }

// mark marks the directory as a state directory. It must be new, empty or marked already.
func (s *state) mark() error {
	if _, err := os.Stat(s.path(fileMarker)); err == nil {
		return nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != fileLock && !isKept(e.Name()) {
			return fmt.Errorf("%s has other files (%s): choose an empty directory with --state-dir", s.dir, e.Name())
		}
	}
	return os.WriteFile(s.path(fileMarker), []byte(
		"State of a Berth cluster. Safe to delete while the cluster is down.\n"), 0o600)
}

// isKept reports whether a file of the directory is not state: the log, a user's kubeconfig,
// and what a new file system has if the directory is one of its own.
func isKept(name string) bool {
	return name == FileLog || name == "user.kubeconfig" || name == "lost+found"
}

// wipe removes everything but the lock, the log and the marker. It refuses to change a
// directory with a mount below it.
func (s *state) wipe() error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], s.dir+"/") {
			return fmt.Errorf("%s is still mounted; unmount it first", f[4])
		}
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == fileLock || e.Name() == fileMarker || isKept(e.Name()) {
			continue
		}
		if err := os.RemoveAll(s.path(e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) readPorts() ports {
	var p ports
	if data, err := os.ReadFile(s.path(filePorts)); err == nil {
		_ = json.Unmarshal(data, &p) // an incomplete file only loses the old ports
	}
	return p
}

func (s *state) writeJSON(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.write(name, data)
}

// write replaces a file, which only its owner can read.
func (s *state) write(name string, data []byte) error {
	return durable.Write(s.path(name), data, 0o600)
}

func (s *state) close() {
	_ = os.Remove(s.path(fileProcess))
	_ = s.lock.Close()
}

// exitTime is how long the kernel may take to free what a killed process had.
const exitTime = 10 * time.Second

// LockedByRunning is Locked, but waits for a process that was killed, which keeps its lock until
// the last of its threads has ended.
func LockedByRunning(dir string) (bool, error) {
	for deadline := time.Now().Add(exitTime); ; time.Sleep(10 * time.Millisecond) {
		locked, err := Locked(dir)
		if err != nil || !locked || time.Now().After(deadline) {
			return locked, err
		}
		if p, err := ReadProcess(dir); err != nil || !p.isExiting() {
			return Locked(dir) // it may have ended meanwhile
		}
	}
}

// Locked reports whether a process has locked the state directory. It does not lock it
// itself.
func Locked(dir string) (bool, error) {
	f, err := os.Open(filepath.Join(dir, fileLock))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	l := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l); err != nil {
		return false, err
	}
	return l.Type != unix.F_UNLCK, nil
}
