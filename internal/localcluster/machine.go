package localcluster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-hpc/berth/internal/wire"
)

// machineFile is a kubeconfig in one of wire.MachineKubeconfigs.
type machineFile struct {
	path string
	user Account
	data []byte
}

// publish writes the kubeconfig of u where commands find it by uid. Of several clusters
// on a machine the last one started is found, and when it has ended another one. As another
// user than root it does nothing if the machine has no runtime directory for the user.
//
// A plain cluster is not found: the commands could do nothing there.
func (k *cluster) publish(u Account, data []byte) error {
	if k.Plain {
		return nil
	}
	paths := wire.MachineKubeconfigs(int(u.UID))
	path := paths[0]
	if os.Geteuid() == 0 {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("kubeconfig of user %s: %w", u.Name, err)
		}
	} else if path = paths[1]; !isDir(filepath.Dir(path)) {
		return nil
	}
	if err := replaceFile(path, int(u.UID), int(u.GID), data); err != nil {
		return fmt.Errorf("kubeconfig of user %s: %w", u.Name, err)
	}
	k.machine = append(k.machine, machineFile{path, u, data})
	return nil
}

// renew replaces the file, unless another cluster has replaced it or it was removed.
func (f *machineFile) renew(data []byte) error {
	now, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(now, f.data) {
		return nil
	}
	if err == nil {
		err = replaceFile(f.path, int(f.user.UID), int(f.user.GID), data)
	}
	if err != nil {
		return fmt.Errorf("kubeconfig of user %s: %w", f.user.Name, err)
	}
	f.data = data
	return nil
}

// restoreInterval is how long commands may find no cluster after one of several has ended.
const restoreInterval = 3 * time.Second

// restore writes the files that are missing: of several clusters on a machine, the one that
// was started last and has been found so far has ended.
func (k *cluster) restore() {
	k.kubeconfigs.Lock()
	defer k.kubeconfigs.Unlock()
	for i := range k.machine {
		f := &k.machine[i]
		if _, err := os.Lstat(f.path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := replaceFile(f.path, int(f.user.UID), int(f.user.GID), f.data); err != nil {
			k.Log.Warn("commands may not find this cluster", "user", f.user.Name, "error", err)
		}
	}
}

// withdraw removes the files that no other cluster has replaced.
func withdraw(files []machineFile) error {
	var errs []error
	for _, f := range files {
		now, err := os.ReadFile(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
		case bytes.Equal(now, f.data):
			errs = append(errs, os.Remove(f.path))
		}
	}
	return errors.Join(errs...)
}

// replaceFile puts a file that only its owner can read in the place of the old one. The
// directory must not be writable for anybody else than the owner and root.
func replaceFile(path string, uid, gid int, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if os.Geteuid() == 0 {
		err = errors.Join(err, f.Chown(uid, gid))
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func isDir(path string) bool {
	s, err := os.Stat(path)
	return err == nil && s.IsDir()
}
