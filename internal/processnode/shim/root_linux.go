package shim

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// root is the container's root while it is built: a tmpfs that holds bind
// mounts of everything in the machine's root. Paths are the container's.
type root struct {
	at  string          // where it is mounted
	own map[string]bool // directories in which entries may be created
	ro  bool
}

// buildRoot creates the container's root in this process's mount namespace and makes it
// the root of the process.
func buildRoot(spec *Spec) error {
	// Slave, not private: later mounts and unmounts of the machine (home directories,
	// disks) propagate to the container, and nothing propagates back.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("own mounts: %w", err)
	}
	r := &root{at: spec.Root, own: map[string]bool{}, ro: spec.ReadOnlyRoot}
	if err := unix.Mount("berth", r.at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("root file system: %w", err)
	}
	r.own["/"] = true
	if err := r.fill("/", "/", func(e os.DirEntry) bool { return e.Name() != "proc" }); err != nil {
		return err
	}
	if err := r.proc(spec.Proc); err != nil {
		return err
	}
	if err := r.devices(); err != nil {
		return err
	}
	mounts := slices.Clone(spec.Mounts)
	if spec.Shm != "" {
		mounts = append(mounts, Mount{Source: spec.Shm, Target: "/dev/shm", Own: true})
	}
	slices.SortStableFunc(mounts, func(a, b Mount) int {
		return cmp.Compare(strings.Count(path.Clean(a.Target), "/"), strings.Count(path.Clean(b.Target), "/"))
	})
	for _, m := range mounts {
		if err := r.volume(m); err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	if r.ro {
		if err := readOnly(r.at, false); err != nil {
			return fmt.Errorf("read-only root: %w", err)
		}
	}
	return r.enter()
}

// fill creates the entries of directory dir from those of the machine's directory source for
// which keep returns true.
func (r *root) fill(dir, source string, keep func(os.DirEntry) bool) error {
	entries, err := os.ReadDir(source)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !keep(e) {
			continue
		}
		if err := r.show(path.Join(dir, e.Name()), path.Join(source, e.Name()), e.Type()); err != nil {
			return err
		}
	}
	return nil
}

// show creates name and binds the machine's source there. It omits a source that was deleted
// meanwhile. If this user has no access to the source, it creates an entry that cannot be
// opened.
func (r *root) show(name, source string, kind os.FileMode) error {
	at := r.at + name
	switch {
	case kind&os.ModeSymlink != 0:
		link, err := os.Readlink(source)
		switch {
		case err == nil:
			return os.Symlink(link, at)
		case errors.Is(err, unix.ENOENT):
			return nil
		case !errors.Is(err, unix.EACCES):
			return err
		}
		return unreachable(at)
	case kind.IsDir():
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
	default:
		if err := touch(at); err != nil {
			return err
		}
	}
	err := bind(source, at)
	switch {
	case err == nil:
	case errors.Is(err, unix.ENOENT) && gone(source):
		return os.Remove(at)
	case errors.Is(err, unix.EACCES):
		return os.Chmod(at, 0)
	default:
		return fmt.Errorf("show %s: %w", name, err)
	}
	if r.ro {
		return readOnly(at, true)
	}
	return nil
}

// bind mounts source at at, with all mounts below it. If those change at the same time, the
// kernel may return ENOENT although source exists. bind then tries again, because a pod
// without a directory of the host is worse than a pod that does not start.
func bind(source, at string) error {
	var err error
	for range 10 {
		err = unix.Mount(source, at, "", unix.MS_BIND|unix.MS_REC, "")
		if !errors.Is(err, unix.ENOENT) || gone(source) {
			break
		}
	}
	return err
}

// unreachable creates a file that only root can open.
func unreachable(at string) error {
	if err := touch(at); err != nil {
		return err
	}
	return os.Chmod(at, 0)
}

func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

// proc mounts the /proc of the pid namespace, or the machine's if the process has no pid
// namespace of its own or the kernel refuses the mount (in a machine that is a container).
func (r *root) proc(own bool) error {
	at := r.at + "/proc"
	if err := os.Mkdir(at, 0o555); err != nil {
		return err
	}
	if own {
		err := unix.Mount("proc", at, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		if err == nil {
			return nil
		}
	}
	return unix.Mount("/proc", at, "", unix.MS_BIND|unix.MS_REC, "")
}

// devices replaces /dev by one without the disks and consoles of the machine, but with all
// other devices (GPUs, fabrics).
func (r *root) devices() error {
	ro := r.ro
	r.ro = false
	defer func() { r.ro = ro }()
	err := r.rebuild("/dev", func(e os.DirEntry) bool {
		block := e.Type()&os.ModeDevice != 0 && e.Type()&os.ModeCharDevice == 0
		console := strings.HasPrefix(e.Name(), "vcs") || len(e.Name()) > 3 && strings.HasPrefix(e.Name(), "tty")
		terminals := e.Name() == "pts" || e.Name() == "ptmx"
		return !block && !console && !terminals && e.Name() != "termination-log"
	})
	if err != nil {
		return err
	}
	return r.terminals()
}

// terminals mounts the container's own /dev/pts. The machine's terminals would not work,
// because a bind mount of /dev/ptmx alone has no /dev/pts.
func (r *root) terminals() error {
	at := r.at + "/dev/pts"
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	err := unix.Mount("devpts", at, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	if err != nil {
		return fmt.Errorf("terminals: %w", err)
	}
	return os.Symlink("pts/ptmx", r.at+"/dev/ptmx")
}

// rebuild replaces an existing directory of the machine by a tmpfs with the same entries, so
// that more entries can be created in it.
func (r *root) rebuild(dir string, keep func(os.DirEntry) bool) error {
	at := r.at + dir
	under, err := unix.Open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(under)
	var st unix.Stat_t
	if err := unix.Fstat(under, &st); err != nil {
		return err
	}
	options := fmt.Sprintf("mode=%o", st.Mode&0o7777)
	if err := unix.Mount("berth", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return err
	}
	_ = os.Chown(at, int(st.Uid), int(st.Gid)) // fails for an unmapped owner
	r.own[dir] = true
	return r.fill(dir, fmt.Sprintf("/proc/self/fd/%d", under), keep)
}

// volume binds m.Source at m.Target, and creates the target if it does not exist.
func (r *root) volume(m Mount) error {
	var st unix.Stat_t
	if err := unix.Stat(m.Source, &st); err != nil {
		return fmt.Errorf("%s: %w", m.Source, err)
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	target, err := r.point(m.Target, isDir)
	if err != nil {
		return err
	}
	at := r.at + target
	if err := unix.Mount(m.Source, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	for dir := range r.own {
		if dir == target || strings.HasPrefix(dir, target+"/") {
			delete(r.own, dir)
		}
	}
	if m.Own && isDir {
		r.own[target] = true
	}
	if m.ReadOnly {
		return readOnly(at, true)
	}
	return nil
}

// enter makes r the root of the process, and unmounts the old root.
func (r *root) enter() error {
	if err := unix.Chdir(r.at); err != nil {
		return err
	}
	// pivot_root(".", ".") stacks the old root on the new one (pivot_root(2)).
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	return unix.Chdir("/")
}

// readOnly makes a mount (and all below it, if deep) read-only.
func readOnly(at string, deep bool) error {
	flags := uint(0)
	if deep {
		flags = unix.AT_RECURSIVE
	}
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	err := unix.MountSetattr(unix.AT_FDCWD, at, flags, attr)
	if !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// Before Linux 5.12 a remount must repeat the locked flags.
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return err
	}
	keep := uintptr(st.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC |
		unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME)
	return unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|keep, "")
}

func touch(at string) error {
	f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
