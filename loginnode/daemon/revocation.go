package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// revocation ends what users of the cluster have here when they are disabled or deleted.
func (f *File) revocation(c *loginnode.Config, cluster *Connected) {
	if cluster.Revoked == nil {
		return
	}
	onlyCluster := len(f.Users) == 1 && f.Users[0].Cluster
	c.Revoked = func(u *auth.User) bool {
		// Of the user of an adopted pod the source is not known.
		if u.Source != userSource(u.Name) && (u.Source != "" || !onlyCluster) {
			return false
		}
		return cluster.Revoked(u.Name, u.UID)
	}
	switch {
	case c.Session.EndAll != nil:
		c.EndProcesses = func(u *auth.User) error { return c.Session.EndAll(u.UID) }
	case hasOwnProcesses():
		c.EndProcesses = func(u *auth.User) error { return killAll("/proc", u.UID) }
	}
}

// userSource is the source of users who are Users of the cluster.
func userSource(name string) string { return "User " + name }

// hasOwnProcesses reports whether only this program and sessions run in its PID namespace, as
// in a container: other programs there might be those of the user's jobs.
func hasOwnProcesses() bool {
	first, err1 := os.Readlink("/proc/1/exe")
	own, err2 := os.Readlink("/proc/self/exe")
	return err1 == nil && err2 == nil && os.Getppid() == 1 && first == own
}

// killAll kills the processes of a user, and those that they start meanwhile.
func killAll(proc string, uid int) error {
	if uid == 0 || uid == os.Getuid() {
		return errors.New("not those of the server's own user")
	}
	const rounds = 5
	for range rounds {
		found, err := processesOf(proc, uid)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, pid := range found {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return errors.New("they start others as fast as they are killed")
}

// processesOf returns the processes with the real uid that have not ended.
func processesOf(proc string, uid int) (pids []int, err error) {
	files, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "status"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		if bytes.Contains(text, []byte("\nState:\tZ")) {
			continue
		}
		_, ids, _ := bytes.Cut(text, []byte("\nUid:\t"))
		first, _, _ := bytes.Cut(ids, []byte("\t"))
		if string(first) != strconv.Itoa(uid) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
