//go:build linux

// Package sigaction prepares a process to become another program by exec: it
// gives signals back their default actions, which os/signal cannot do, since
// what that catches is lost meanwhile.
package sigaction

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Deadly are the signals that end a program from outside, and that Go's runtime
// catches. Not to be changed.
var Deadly = []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGTERM}

// kernelAction is the kernel's struct sigaction, which begins with the handler
// on every architecture; its length here is an upper bound.
type kernelAction struct {
	handler uintptr
	_       [7]uintptr
}

const (
	ignored  = 1 // SIG_IGN
	last     = 64
	maskSize = last / 8 // bytes
)

// Heed gives the deadly signals that are caught their default action. One that a
// thread of Go's runtime has taken while another becomes the program is lost
// with that thread, and the program lives on. By default the kernel ends all
// threads at once. What is ignored stays so.
func Heed() {
	reset(func(sig unix.Signal, handler uintptr) bool { return handler != ignored && slices.Contains(Deadly, sig) })
}

// HeedAll is Heed, and gives every ignored signal its default action too. What
// this process ignores (a daemon or what nohup started ignores SIGHUP; whatever
// posix_spawn(3) started, as make does, the signal 32 by which the C library
// cancels threads) the program would ignore as well, and could outlive its
// terminal.
func HeedAll() {
	reset(func(sig unix.Signal, handler uintptr) bool { return handler == ignored || slices.Contains(Deadly, sig) })
}

// reset gives the signals of which the answer is true their default action.
func reset(which func(sig unix.Signal, handler uintptr) bool) {
	for sig := unix.Signal(1); sig <= last; sig++ {
		var now kernelAction
		if errno := action(sig, nil, &now); errno == 0 && which(sig, now.handler) {
			// SIGKILL and SIGSTOP have their default always, so this has no reason to fail.
			_ = action(sig, new(kernelAction), nil)
		}
	}
}

// action is rt_sigaction(2).
func action(sig unix.Signal, set, get *kernelAction) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), maskSize, 0, 0)
	return errno
}
