package spawn

import (
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

// heedSignals gives the deadly signals that Go's runtime catches their default
// action. One that a thread of the runtime has taken while another becomes the
// task is lost with that thread: the job would live on though scancel has told
// it to end. By default the kernel ends all threads at once. What is ignored
// stays so.
func heedSignals() {
	const ignored, maskSize = 1, 8
	for _, sig := range deadly {
		var now kernelAction
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&now)), maskSize, 0, 0); errno == 0 && now.handler != ignored {
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(new(kernelAction))), 0, maskSize, 0, 0)
		}
	}
}
