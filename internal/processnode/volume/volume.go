// Package volume prepares the volumes of a pod on a process node and mounts them into its
// containers. Contents that come from the API server are written as by a kubelet; tokens
// are renewed.
package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berth-hpc/berth/internal/processnode/identity"
	"github.com/berth-hpc/berth/internal/processnode/podenv"
	"github.com/berth-hpc/berth/internal/processnode/shim"
)

// Set has the volumes of a pod. Its methods must not be called at the same time.
type Set struct {
	Pod *corev1.Pod
	// Dir is the directory of the volumes, which exists.
	Dir string
	// Memory is the pod's directory in memory; empty: there is none.
	Memory string
	Root   bool // whether this process runs as root
	Facts  *podenv.Facts
	Client kubernetes.Interface
	// Hosts returns the initial content of the pod's /etc/hosts.
	Hosts func() string
	// Later calls f after d, unless the pod's processes have ended before.
	Later func(d time.Duration, f func())
	Log   func(format string, args ...any)

	prepared map[string]volume // by name
}

// volume is a prepared volume.
type volume struct {
	path     string
	own      bool // used by the pod only
	empty    bool // an emptyDir
	readOnly bool
}

// Prepare creates all volumes. It may be called again after an error. ctx ends with the
// pod's processes, and with it the renewal of tokens.
func (vs *Set) Prepare(ctx context.Context) error {
	if vs.prepared == nil {
		vs.prepared = map[string]volume{}
	}
	for i := range vs.Pod.Spec.Volumes {
		v := &vs.Pod.Spec.Volumes[i]
		if _, done := vs.prepared[v.Name]; done {
			continue
		}
		made, err := vs.prepare(ctx, v)
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
		vs.prepared[v.Name] = made
	}
	return nil
}

func (vs *Set) prepare(ctx context.Context, v *corev1.Volume) (volume, error) {
	dir := filepath.Join(vs.Dir, v.Name)
	switch {
	case v.HostPath != nil:
		return volume{path: v.HostPath.Path}, prepareHostPath(v.HostPath)
	case v.EmptyDir != nil:
		if v.EmptyDir.Medium == corev1.StorageMediumMemory && vs.Memory != "" {
			own, err := vs.MemoryDir()
			if err != nil {
				return volume{}, err
			}
			dir = filepath.Join(own, "volume-"+v.Name)
		}
		return volume{path: dir, own: true, empty: true}, vs.makeEmptyDir(dir)
	case v.Projected != nil, v.Secret != nil, v.ConfigMap != nil, v.DownwardAPI != nil:
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return volume{}, err
		}
		return volume{path: dir, own: true, readOnly: true}, vs.fill(ctx, v, dir)
	}
	return volume{}, errors.New(
		"process nodes support only hostPath, emptyDir, projected, secret, configMap and downwardAPI volumes")
}

// Private creates a directory that only this process's user can access. Containers see its
// contents through mounts, which are created before they change to their user. Other users
// of the machine, who can read a pod's UID in /proc, cannot access it.
func Private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700) //nolint:gosec // a directory
}

// MemoryDir creates the pod's directory in memory and returns it.
func (vs *Set) MemoryDir() (string, error) { return vs.Memory, Private(vs.Memory) }

func (vs *Set) makeEmptyDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	mode := fs.FileMode(0o777) // regardless of the umask
	if g := vs.fsGroup(); g >= 0 {
		if err := os.Chown(dir, -1, g); err != nil {
			return err
		}
		mode |= fs.ModeSetgid
	}
	return os.Chmod(dir, mode)
}

// fsGroup returns the group that owns the pod's own volumes, or -1.
func (vs *Set) fsGroup() int {
	if sc := vs.Pod.Spec.SecurityContext; sc != nil && sc.FSGroup != nil {
		return int(*sc.FSGroup)
	}
	return -1
}

func prepareHostPath(h *corev1.HostPathVolumeSource) error {
	kind := corev1.HostPathUnset
	if h.Type != nil {
		kind = *h.Type
	}
	info, err := os.Stat(h.Path)
	if errors.Is(err, fs.ErrNotExist) {
		switch kind {
		case corev1.HostPathDirectoryOrCreate:
			return os.MkdirAll(h.Path, 0o755)
		case corev1.HostPathFileOrCreate:
			return os.WriteFile(h.Path, nil, 0o644)
		}
	}
	if err != nil {
		return fmt.Errorf("hostPath: %w", err)
	}
	mode := info.Mode()
	ok := true
	switch kind {
	case corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate:
		ok = mode.IsDir()
	case corev1.HostPathFile, corev1.HostPathFileOrCreate:
		ok = mode.IsRegular()
	case corev1.HostPathSocket:
		ok = mode&fs.ModeSocket != 0
	case corev1.HostPathCharDev:
		ok = mode&fs.ModeCharDevice != 0
	case corev1.HostPathBlockDev:
		ok = mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0
	}
	if !ok {
		return fmt.Errorf("hostPath %s is not a %s", h.Path, kind)
	}
	return nil
}

// Mounts returns the mounts of the volumes into a container. values expand subPathExpr.
func (vs *Set) Mounts(
	c *corev1.Container, id identity.Identity, values map[string]string,
) ([]shim.Mount, error) {
	var mounts []shim.Mount
	for _, vm := range c.VolumeMounts {
		v, ok := vs.prepared[vm.Name]
		if !ok {
			return nil, fmt.Errorf("volume mount %s: no such volume %s", vm.MountPath, vm.Name)
		}
		sub := vm.SubPath
		if vm.SubPathExpr != "" {
			sub = podenv.Expand(vm.SubPathExpr, values)
		}
		source, err := vs.subPath(v, sub, vm.MountPath, id)
		if err != nil {
			return nil, fmt.Errorf("volume mount %s: %w", vm.MountPath, err)
		}
		target := vm.MountPath
		if !filepath.IsAbs(target) {
			target = "/" + target
		}
		mounts = append(mounts, shim.Mount{
			Source: source, Target: target, ReadOnly: vm.ReadOnly || v.readOnly, Own: v.own,
		})
	}
	return mounts, nil
}

// subPath returns the path of a volume's subPath. If it does not exist in an emptyDir, it is
// created: as a directory, or as a file if the machine has a file at the mount path (for
// /etc/hosts).
func (vs *Set) subPath(v volume, sub, target string, id identity.Identity) (string, error) {
	if sub == "" {
		return v.path, nil
	}
	if filepath.IsAbs(sub) || !filepath.IsLocal(sub) {
		return "", fmt.Errorf("subPath %q is outside of the volume", sub)
	}
	full := filepath.Join(v.path, sub)
	_, err := os.Stat(full)
	if errors.Is(err, fs.ErrNotExist) && !v.readOnly {
		err = vs.makeSubPath(v, full, target, id)
	}
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(full)
	if err != nil {
		return "", err
	}
	base, err := filepath.EvalSymlinks(v.path)
	if err != nil {
		return "", err
	}
	if real != base && !strings.HasPrefix(real, base+"/") {
		return "", fmt.Errorf("subPath %q is outside of the volume", sub)
	}
	return real, nil
}

func (vs *Set) makeSubPath(v volume, full, target string, id identity.Identity) error {
	info, err := os.Stat(target)
	if !v.empty || err != nil || !info.Mode().IsRegular() {
		return os.MkdirAll(full, 0o777)
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		return err
	}
	var content string
	if filepath.Clean(target) == "/etc/hosts" {
		content = vs.Hosts()
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		return err
	}
	if vs.Root {
		return os.Chown(full, int(id.UID), int(id.GID))
	}
	return nil
}
