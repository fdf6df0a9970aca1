package bcast

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/step"
)

// kernelID returns the identity of the running kernel, or "" if it is unknown. Processes of one
// kernel agree on device and inode numbers, whatever containers they are in.
func kernelID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// identify returns what OpenSource needs to recognize the file, or nil if that is unknown.
func identify(file *os.File, st os.FileInfo) *step.Source {
	sys, ok := st.Sys().(*syscall.Stat_t)
	kernel := kernelID()
	if !ok || kernel == "" || !st.Mode().IsRegular() || !filepath.IsAbs(file.Name()) {
		return nil
	}
	return &step.Source{Path: file.Name(), Kernel: kernel, Device: sys.Dev, Inode: sys.Ino}
}

// OpenSource opens the file from which spec was made, or returns nil if it is not visible to this
// process, as on another machine. A file of a shared file system is visible on all machines; it
// is opened only on that of the client, so that not all nodes read from the server. OpenSource
// opens no other file: a pipe at the same path would block, and opening a device may have effects.
func OpenSource(spec *step.FileSpec) *os.File {
	s := spec.Source
	if s == nil || s.Kernel == "" || s.Kernel != kernelID() || !isSource(s)(os.Stat(s.Path)) {
		return nil
	}
	f, err := os.OpenFile(s.Path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	if !isSource(s)(f.Stat()) {
		f.Close()
		return nil
	}
	return f
}

// isSource returns a predicate for the result of stat(2): whether it is that of the file s.
func isSource(s *step.Source) func(os.FileInfo, error) bool {
	return func(st os.FileInfo, err error) bool {
		if err != nil || !st.Mode().IsRegular() {
			return false
		}
		sys, ok := st.Sys().(*syscall.Stat_t)
		return ok && sys.Dev == s.Device && sys.Ino == s.Inode
	}
}

// LockPath returns the path of the file by which those nodes of a machine that have the same
// directory agree which of them writes the file of spec, or "" if each of them writes it. Its name
// differs for each transfer, file and machine, because locks may not work between machines.
func LockPath(spec *step.FileSpec) string {
	kernel := kernelID()
	if spec.Token == "" || kernel == "" {
		return ""
	}
	dir, name := filepath.Split(spec.Path)
	sum := sha256.Sum256([]byte(spec.Token + "\x00" + kernel + "\x00" + name))
	return filepath.Join(dir, ".sbcast-"+hex.EncodeToString(sum[:16]))
}
