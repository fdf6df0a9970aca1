package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stateSize is the size of the file system of the state directory, which a run of hours
// does not fill.
const stateSize = "2g"

// mountState gives the state directory a file system of its own, which can be full. Only
// root may mount one.
func (c *Cluster) mountState() error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := os.Mkdir(c.state, 0o711); err != nil {
		return err
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=711,size="+stateSize, "tmpfs",
		c.state).CombinedOutput(); err != nil {
		return fmt.Errorf("mount: %w: %s", err, out)
	}
	c.SmallDisk = true
	c.undo = append(c.undo, func() {
		if log, err := os.ReadFile(filepath.Join(c.state, "log")); err == nil {
			_ = os.WriteFile(filepath.Join(c.Dir, "cluster.log"), log, 0o600)
		}
		// Processes that were just killed may still hold it for a moment.
		for i := 0; i < 50 && exec.Command("umount", c.state).Run() != nil; i++ {
			time.Sleep(100 * time.Millisecond)
		}
	})
	return nil
}

// FillDisk leaves no room in the state directory until free is called.
func (c *Cluster) FillDisk() (free func(), err error) {
	name := filepath.Join(c.state, "ballast")
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	free = func() { _ = os.Remove(name) }
	for _, size := range []int{1 << 20, 1 << 12} { // the last kilobytes, too
		block := make([]byte, size)
		for err = nil; err == nil; {
			_, err = f.Write(block)
		}
	}
	_ = f.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		free()
		return nil, err
	}
	return free, nil
}

// Runs reports whether the process of the control plane runs.
func (c *Cluster) Runs() bool {
	pid, err := c.controlPlane()
	return err == nil && syscall.Kill(pid, 0) == nil && !isZombie(pid)
}
