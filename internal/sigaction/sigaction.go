//go:build linux

// Package sigaction prepares a process for exec: it resets signals to their default
// actions without losing any. os/signal cannot do that, because it loses the signals
// that it has caught.
package sigaction

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Terminating are the signals that terminate a program by default and that Go's
// runtime catches. It must not be changed.
var Terminating = []unix.Signal{
	unix.SIGHUP,
	unix.SIGINT,
	unix.SIGQUIT,
	unix.SIGUSR1,
	unix.SIGUSR2,
	unix.SIGALRM,
	unix.SIGTERM,
}

// kernelAction is the kernel's struct sigaction. It begins with the handler on every
// architecture; the length is an upper bound.
type kernelAction struct {
	handler uintptr
	_       [7]uintptr
}

const (
	ignored  = 1 // SIG_IGN
	last     = 64
	maskSize = last / 8 // bytes
)

// ResetCaught resets caught terminating signals to their default action. A signal that
// one thread of Go's runtime handles while another executes the program would be lost
// with that thread. By default the kernel terminates all threads at once. Ignored
// signals remain ignored.
func ResetCaught() {
	reset(func(sig unix.Signal, handler uintptr) bool {
		return handler != ignored && slices.Contains(Terminating, sig)
	})
}

// ResetAll resets caught terminating signals and all ignored signals to their default
// action. The program would inherit ignored signals and could outlive its terminal:
// daemons and children of nohup ignore SIGHUP, and children of posix_spawn(3), such
// as those of make, ignore signal 32, with which the C library cancels threads.
func ResetAll() {
	reset(func(sig unix.Signal, handler uintptr) bool {
		return handler == ignored || slices.Contains(Terminating, sig)
	})
}

// reset resets the selected signals to their default action.
func reset(which func(sig unix.Signal, handler uintptr) bool) {
	for sig := unix.Signal(1); sig <= last; sig++ {
		var now kernelAction
		if errno := action(sig, nil, &now); errno == 0 && which(sig, now.handler) {
			// SIGKILL and SIGSTOP always have their default action, so this cannot fail.
			_ = action(sig, new(kernelAction), nil)
		}
	}
}

// action is rt_sigaction(2).
func action(sig unix.Signal, set, get *kernelAction) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), maskSize, 0, 0)
	return errno
}
