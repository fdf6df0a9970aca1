// Package asuser runs functions with the file rights of a user: opening a key
// file, listening on a Unix socket, writing a credential. The kernel then
// decides what the user may touch, not this code.
package asuser

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// User is whose rights are taken.
type User struct {
	UID, GID int
	Groups   []int // supplementary
}

// Do runs f on a thread whose effective uid, gid and groups are the user's,
// and waits for it. What f makes is for the user alone (umask 077). The real
// and the saved uid stay the server's: a thread with the user's own could be
// killed by the user, and the process with it. The thread ends with f. f must
// not start goroutines that need the rights, for they run elsewhere.
//
// A server that is not root can act for nobody but itself; then f runs as the
// server if the user is the server's own, and is refused otherwise.
func Do(u User, f func() error) error {
	root := os.Geteuid() == 0
	if !root && u.UID != os.Geteuid() {
		return fmt.Errorf("cannot act as uid %d: the server runs as uid %d", u.UID, os.Geteuid())
	}
	result := make(chan error, 1)
	go func() {
		// Not unlocked: the thread has lost its rights and must not serve
		// anybody else, so the runtime ends it with the goroutine.
		runtime.LockOSThread()
		private()
		var err error
		if root {
			err = become(u)
		}
		if err == nil {
			err = call(f)
		}
		result <- err
	}()
	return <-result
}

// unshare is replaced by tests.
var unshare = unix.Unshare

// private gives the calling thread a umask of its own. Containers usually may
// not call unshare, whatever for; there the umask that the server has set for
// itself holds (Umask).
func private() {
	if unshare(unix.CLONE_FS) == nil {
		unix.Umask(Umask)
	}
}

// Umask is what the server's process sets: what it makes is for its owner alone.
const Umask = 0o077

// call turns a panic of f into an error: it happens in a goroutine of its own,
// where no caller could recover.
func call(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}

// become changes the calling thread alone. The functions of package syscall
// would change every thread of the process.
func become(u User) error {
	groups := make([]uint32, 0, len(u.Groups)+1)
	for _, g := range u.Groups {
		groups = append(groups, uint32(g))
	}
	if err := setgroups(groups); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	const keep = ^uintptr(0)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, keep, uintptr(u.GID), keep); e != 0 {
		return fmt.Errorf("setegid %d: %w", u.GID, e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(u.UID), keep); e != 0 {
		return fmt.Errorf("seteuid %d: %w", u.UID, e)
	}
	return nil
}

// Attributes start a program as the user, in a session of its own.
func Attributes(u User) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		groups := make([]uint32, 0, len(u.Groups))
		for _, g := range u.Groups {
			groups = append(groups, uint32(g))
		}
		a.Credential = &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID), Groups: groups}
	}
	return a
}
