// Package asuser runs functions with the rights of a user on files: opening a key file,
// listening on a Unix socket, writing a credential. So the kernel checks access, not
// this code.
package asuser

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// User is the user whose rights a function has.
type User struct {
	UID, GID int
	Groups   []int // supplementary
}

// Do runs f on a thread whose effective uid, gid and groups are the user's, and waits
// for it. Only the user can access what f creates (umask 077). The real and the saved
// uid stay the server's: otherwise the user could kill the thread, and the process with
// it. The thread ends with f. f must not start goroutines that need the rights, because
// they run on other threads.
//
// If Many calls for a user are still running, Do returns ErrBusy: on a dead file server
// each of them blocks a thread, and Go's runtime ends a process with too many threads.
//
// A server that is not root can act only as itself: f runs if the user is the server's
// own, and is refused otherwise.
func Do(u User, f func() error) error {
	root := os.Geteuid() == 0
	if !root && u.UID != os.Geteuid() {
		return fmt.Errorf("cannot act as uid %d: the server runs as uid %d", u.UID, os.Geteuid())
	}
	if !enter(u.UID) {
		return ErrBusy
	}
	result := make(chan error, 1)
	go func() {
		defer leave(u.UID)
		// The thread is not unlocked: it has lost its rights, so the runtime must end
		// it with the goroutine.
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

// Wait runs f, which may block on a file of the user, with the server's rights, and
// counts it among the user's calls.
func Wait(u User, f func() error) error {
	if !enter(u.UID) {
		return ErrBusy
	}
	defer leave(u.UID)
	return call(f)
}

// Nobody is the UID for calls of Wait that are for no user.
const Nobody = -1

// ErrBusy reports that too many earlier calls for the user are still running.
var ErrBusy = errors.New("too many file operations of this user are already waiting")

// Many limits the running calls for one user, and for all users. Further calls wait for
// patience.
const (
	Many = 32
	all  = 4096
)

// patience is replaced by tests.
var patience = 5 * time.Second

var (
	running = make(chan struct{}, all)
	byUser  sync.Map // chan struct{} by uid
)

// enter reserves a place for a call. It returns false if there is none within patience.
func enter(uid int) bool {
	own, _ := byUser.LoadOrStore(uid, make(chan struct{}, Many))
	end := time.NewTimer(patience)
	defer end.Stop()
	select {
	case own.(chan struct{}) <- struct{}{}:
	case <-end.C:
		return false
	}
	select {
	case running <- struct{}{}:
		return true
	case <-end.C:
		<-own.(chan struct{})
		return false
	}
}

func leave(uid int) {
	own, _ := byUser.Load(uid)
	<-own.(chan struct{})
	<-running
}

// unshare is replaced by tests.
var unshare = unix.Unshare

// private sets the umask of the calling thread only. Containers usually may not call
// unshare; there the server's own umask applies (Umask).
func private() {
	if unshare(unix.CLONE_FS) == nil {
		unix.Umask(Umask)
	}
}

// Umask is the umask of the server: only the owner can access what it creates.
const Umask = 0o077

// call turns a panic of f into an error, because a caller cannot recover it in another
// goroutine.
func call(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}

// become changes the rights of the calling thread only. The functions of package
// syscall would change every thread of the process.
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
