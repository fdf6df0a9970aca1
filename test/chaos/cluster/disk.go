package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stateSize is the size of the file system of the state directory, which a run of hours
// does not fill.
const stateSize = "2g"

// mountState gives the state directory a file system of its own, which can be full, and
// read-only if it is on a disk. Only root may mount one.
func (c *Cluster) mountState() error {
	if os.Geteuid() != 0 {
		c.Disk = false
		return nil
	}
	if err := os.Mkdir(c.state, 0o711); err != nil {
		return err
	}
	if c.Disk {
		c.makeDisk()
	}
	if err := c.mountDisk(); err != nil {
		return err
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

// makeDisk makes the image of a disk, in memory. Without the programs or the rights for that
// there is none.
func (c *Cluster) makeDisk() {
	c.image = filepath.Join("/dev/shm", filepath.Base(c.Dir)+".img")
	c.undo = append(c.undo, func() { _ = os.Remove(c.image) })
	for _, args := range [][]string{{"truncate", "-s", stateSize, c.image}, {"mkfs.ext4", "-q", "-m", "0", c.image}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			c.say("the state is on no disk: %s: %v %s", args[0], err, out)
			c.Disk = false
		}
	}
}

func (c *Cluster) mountDisk() error {
	args := []string{"-t", "tmpfs", "-o", "mode=711,size=" + stateSize, "tmpfs", c.state}
	if c.Disk {
		args = []string{"-o", "loop,errors=remount-ro", c.image, c.state}
	}
	if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("mount: %w: %s", err, out)
	}
	return os.Chmod(c.state, 0o711)
}

// FailDisk makes the kernel find an error in the file system of the state directory. It is
// read-only from now on, also for files that are open.
func (c *Cluster) FailDisk() error {
	device, err := c.diskDevice()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join("/sys/fs/ext4", device, "trigger_fs_error"), []byte("1"), 0)
}

// diskDevice returns the name of the device that is mounted as the state directory.
func (c *Cluster) diskDevice() (string, error) {
	out, err := exec.Command("findmnt", "-n", "-o", "SOURCE", c.state).Output()
	return filepath.Base(strings.TrimSpace(string(out))), err
}

// RepairDisk repairs the file system of the state directory, as an operator who finds it
// read-only: everything that uses it is ended, and started again afterwards.
func (c *Cluster) RepairDisk(ctx context.Context) error {
	device, err := c.diskDevice()
	if err != nil {
		return err
	}
	users := slices.Concat(c.Schedulers, c.Readers)
	for _, p := range users {
		if err := p.Kill(time.Hour); err != nil {
			return err
		}
	}
	if c.Runs() {
		if err := c.KillControlPlane(); err != nil {
			return err
		}
	}
	// What was killed may hold it for a moment, also in mount namespaces of pods.
	isMounted := func() bool {
		_ = exec.Command("umount", c.state).Run()
		_, err := os.Stat(filepath.Join("/sys/fs/ext4", device))
		return err == nil
	}
	for deadline := time.Now().Add(time.Minute); isMounted(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return errors.New("the state directory cannot be unmounted")
		}
	}
	out, err := exec.Command("fsck.ext4", "-f", "-y", c.image).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 2 || err != nil && exit == nil {
		return fmt.Errorf("fsck: %w: %s", err, out)
	}
	if err := c.mountDisk(); err != nil {
		return err
	}
	for _, p := range users {
		p.Release()
	}
	return c.Up(ctx)
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
