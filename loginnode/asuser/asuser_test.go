package asuser

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Users can log in although a container's seccomp profile forbids unshare.
func TestDoWithoutUnshare(t *testing.T) {
	unshare = func(int) error { return unix.EPERM }
	t.Cleanup(func() { unshare = unix.Unshare })
	ran := false
	if err := Do(User{UID: os.Geteuid(), GID: os.Getegid()}, func() error { ran = true; return nil }); err != nil || !ran {
		t.Errorf("ran %v: %v", ran, err)
	}
}

func TestDoChangesOneThread(t *testing.T) {
	file := filepath.Join(t.TempDir(), "private")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := User{UID: 61001, GID: 61002, Groups: []int{61003}}
	if os.Geteuid() != 0 {
		if err := Do(other, func() error { return nil }); err == nil {
			t.Error("Do changes the user without being root")
		}
		return
	}
	err := Do(other, func() error {
		status, err := os.ReadFile("/proc/thread-self/status")
		if err != nil {
			return err
		}
		for _, want := range []string{"Uid:\t0\t61001\t0\t61001", "Gid:\t0\t61002\t0\t61002", "Groups:\t61003"} {
			if !strings.Contains(string(status), want) {
				t.Errorf("%q is not in %s", want, status)
			}
		}
		_, err = os.ReadFile(file)
		return err
	})
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("reading root's file: %v", err)
	}
	if err := Do(other, func() error { panic("defect") }); err == nil {
		t.Error("a panic is not returned as an error")
	}
	for range 100 { // the changed threads are not used again
		done := make(chan int)
		go func() { done <- os.Geteuid() }()
		if uid := <-done; uid != 0 {
			t.Fatalf("a thread of the process has uid %d", uid)
		}
	}
}

// A user with files on a dead server uses a limited number of threads, and does not
// affect other users.
func TestHangingLookupsOfOneUserAreBounded(t *testing.T) {
	u := User{UID: os.Geteuid(), GID: os.Getegid()}
	t.Cleanup(func(was time.Duration) func() { return func() { patience = was } }(patience))
	patience = time.Minute
	dead := make(chan struct{})
	var started, ended sync.WaitGroup
	for range Many {
		started.Add(1)
		ended.Add(1)
		go func() {
			defer ended.Done()
			if err := Do(u, func() error { started.Done(); <-dead; return nil }); err != nil {
				t.Error(err)
			}
		}()
	}
	started.Wait()
	patience = time.Millisecond
	if err := Do(u, func() error { return nil }); !errors.Is(err, ErrBusy) {
		t.Errorf("one more: %v", err)
	}
	if err := Wait(u, func() error { return nil }); !errors.Is(err, ErrBusy) {
		t.Errorf("one more, with the server's rights: %v", err)
	}
	if err := Wait(User{UID: u.UID + 1}, func() error { return nil }); err != nil {
		t.Errorf("another user: %v", err)
	}
	close(dead)
	ended.Wait()
	patience = time.Minute
	if err := Do(u, func() error { return nil }); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
