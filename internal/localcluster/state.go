package localcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/wire"
)

// Files of the state folder.
const (
	fileLock    = "lock"
	fileMarker  = wire.StateMarker // says that the folder is ours to wipe
	filePorts   = "ports.json"
	fileProcess = "process.json"
	// fileControllers is kube-controller-manager's kubeconfig.
	fileControllers = "controllers.kubeconfig"
	// FileAdmin is the administrator's kubeconfig, FileScheduler the
	// scheduler's, FileLog the log of everything.
	FileAdmin     = "kubeconfig"
	FileScheduler = "scheduler.kubeconfig"
	// FileSchedulerArgs has the flags of cmd/scheduler for this cluster, one
	// a line.
	FileSchedulerArgs = "scheduler.args"
	FileLog           = "log"
)

// RunningError says that another process uses the state folder.
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
	// Started is the process' start time in the kernel's ticks since boot; it
	// tells the process from a later one with the same number.
	Started uint64 `json:"started"`
	Ready   bool   `json:"ready"`
	Server  string `json:"server,omitempty"`
	Nodes   int    `json:"nodes"`
	// Missing is what the machine does not permit, in words.
	Missing []string `json:"missing,omitempty"`
}

// state is an open, locked state folder.
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

// openState makes and locks the folder. The kernel drops the lock when the
// process ends, however it ends.
func openState(dir string) (*state, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, fileLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			p, _ := ReadProcess(dir)
			return nil, &RunningError{Process: p}
		}
		return nil, fmt.Errorf("state folder: lock: %w", err)
	}
	s := &state{dir: dir, lock: f}
	if err := s.mark(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *state) path(name string) string { return filepath.Join(s.dir, name) }

// mark makes the folder ours: it must be new, empty or marked.
func (s *state) mark() error {
	if _, err := os.Stat(s.path(fileMarker)); err == nil {
		return nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != fileLock && e.Name() != FileLog && e.Name() != "user.kubeconfig" {
			return fmt.Errorf("%s holds other files (%s): name an empty folder with --state-dir", s.dir, e.Name())
		}
	}
	return os.WriteFile(s.path(fileMarker), []byte(
		"State of a Berth cluster. Safe to delete while the cluster is down.\n"), 0o600)
}

// wipe removes everything but the lock, the log and the marker. It refuses to
// touch a folder under which something is mounted.
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
		switch e.Name() {
		case fileLock, fileMarker, FileLog, "user.kubeconfig":
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
		_ = json.Unmarshal(data, &p) // a torn file only costs the old numbers
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

// write replaces a file in one step, readable by its owner alone.
func (s *state) write(name string, data []byte) error {
	tmp := s.path(name + ".new")
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, s.path(name))
}

func (s *state) close() {
	_ = os.Remove(s.path(fileProcess))
	_ = s.lock.Close()
}

// Locked says whether a process holds the state folder. It takes no lock itself.
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
