package shim

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setIdentity drops capabilities and changes to the container's user. It uses raw system
// calls, which affect only this thread: no other thread survives execve.
func setIdentity(spec *Spec) error {
	if spec.NoNewPrivs {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("no new privileges: %w", err)
		}
	}
	if spec.Bounding != nil {
		dropBounding(*spec.Bounding)
	}
	// Without root the shim has the capabilities of its own user namespace as ambient
	// capabilities; the container gets none of them.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if !spec.SetIDs {
		return nil
	}
	chownStreams(int(spec.UID))
	if err := setGroups(spec.Groups); err != nil {
		return fmt.Errorf("set groups %v: %w", spec.Groups, err)
	}
	gid, uid := uintptr(spec.GID), uintptr(spec.UID)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); e != 0 {
		return fmt.Errorf("set group %d: %w", spec.GID, e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); e != 0 {
		return fmt.Errorf("set user %d: %w", spec.UID, e)
	}
	return nil
}

// chownStreams changes the owner of the pipes or terminal of standard input, output and
// error to the container's user, who could not open /dev/stdout otherwise.
func chownStreams(uid int) {
	for fd := range 3 {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil {
			continue
		}
		kind := st.Mode & unix.S_IFMT
		terminal := kind == unix.S_IFCHR && unix.Major(st.Rdev) != nullMajor
		if kind == unix.S_IFIFO || terminal {
			_ = unix.Fchown(fd, uid, -1)
		}
	}
}

// nullMajor is the major number of /dev/null and similar devices, which all users share.
const nullMajor = 1

func setGroups(groups []uint32) error {
	var p unsafe.Pointer
	if len(groups) > 0 {
		p = unsafe.Pointer(&groups[0])
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(p), 0); e != 0 {
		return e
	}
	return nil
}

// dropBounding reduces the bounding set to mask: the capabilities of a root process after
// execve, and the maximum for set-user-id programs.
func dropBounding(mask uint64) {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if mask&(1<<c) == 0 {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		}
	}
}
