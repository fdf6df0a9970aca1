// Package asuser runs functions with the file rights of a user: opening a key
// file, listening on a Unix socket, writing a credential. The kernel then
// decides what the user may touch, not this code.
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
// Where Many calls for a user hang already it gives up with ErrBusy: a home on a dead file
// server costs a thread for each of them, and a process that has too many
// threads is ended by Go's runtime, with everybody's sessions.
//
// A server that is not root can act for nobody but itself; then f runs as the
// server if the user is the server's own, and is refused otherwise.
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

// Wait runs f, which may hang on a file of the user's, with the server's own
// rights, and counts it among the user's calls.
func Wait(u User, f func() error) error {
	if !enter(u.UID) {
		return ErrBusy
	}
	defer leave(u.UID)
	return call(f)
}

// Nobody is the UID in a User whose calls of Wait are for no user.
const Nobody = -1

// ErrBusy says that what was begun for the user before has not ended.
var ErrBusy = errors.New("too many file operations of this user's wait already")

// Many is how many calls may run for one user, and all for all users. Who comes
// later waits for patience.
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

// enter finds the call a place, or gives up.
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
