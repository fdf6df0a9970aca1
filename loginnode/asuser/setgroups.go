package asuser

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// setgroups sets the supplementary groups of the calling thread.
func setgroups(groups []uint32) error {
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0])
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); e != 0 {
		return e
	}
	return nil
}
