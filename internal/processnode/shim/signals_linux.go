package shim

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelAction is the kernel's struct sigaction, which begins with the handler
// on every architecture; its length here is an upper bound.
type kernelAction struct {
	handler uintptr
	_       [7]uintptr
}

// deadly are the signals that end a program from outside.
var deadly = []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGTERM}

// heedSignals gives every ignored signal its default action, and every deadly
// one. What the node's process ignores (a daemon ignores SIGHUP; whatever
// posix_spawn(3) started, as make does, the signal 32 by which the C library
// cancels threads) would stay ignored. The deadly ones Go's runtime catches: a
// signal that one of its threads has taken while another becomes the command
// is lost with that thread. By default the kernel ends all threads at once.
// os/signal cannot do it: what it catches is lost meanwhile.
func heedSignals() {
	const ignored, maskSize = 1, 8
	for sig := uintptr(1); sig <= 64; sig++ {
		var now kernelAction
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&now)), maskSize, 0, 0)
		if errno != 0 || now.handler != ignored && !slices.Contains(deadly, unix.Signal(sig)) {
			continue
		}
		// SIGKILL and SIGSTOP cannot be ignored, so this has no reason to fail.
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(new(kernelAction))), 0, maskSize, 0, 0)
	}
}
