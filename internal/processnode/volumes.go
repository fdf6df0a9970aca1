package processnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/processnode/shim"
)

// volume is a prepared volume of a pod.
type volume struct {
	path     string
	own      bool // used by the pod only
	empty    bool // an emptyDir
	readOnly bool
}

// prepareVolumes creates all volumes of the pod. It may be called again after an error.
func (p *pod) prepareVolumes(ctx context.Context) error {
	for i := range p.spec.Spec.Volumes {
		v := &p.spec.Spec.Volumes[i]
		if _, done := p.volumes[v.Name]; done {
			continue
		}
		made, err := p.prepareVolume(ctx, v)
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
		p.volumes[v.Name] = made
	}
	return nil
}

func (p *pod) prepareVolume(ctx context.Context, v *corev1.Volume) (volume, error) {
	dir := filepath.Join(p.dir, "volumes", v.Name)
	switch {
	case v.HostPath != nil:
		return volume{path: v.HostPath.Path}, prepareHostPath(v.HostPath)
	case v.EmptyDir != nil:
		if v.EmptyDir.Medium == corev1.StorageMediumMemory && p.m.shm != "" {
			own, err := p.memoryDir()
			if err != nil {
				return volume{}, err
			}
			dir = filepath.Join(own, "volume-"+v.Name)
		}
		return volume{path: dir, own: true, empty: true}, p.makeEmptyDir(dir)
	case v.Projected != nil, v.Secret != nil, v.ConfigMap != nil, v.DownwardAPI != nil:
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return volume{}, err
		}
		return volume{path: dir, own: true, readOnly: true}, p.fillVolume(ctx, v, dir)
	}
	return volume{}, errors.New(
		"process nodes support only hostPath, emptyDir, projected, secret, configMap and downwardAPI volumes")
}

// private creates a directory that only this process's user can access. Containers see its
// contents through mounts, which are created before they change to their user. Other users
// of the machine, who can read a pod's UID in /proc, cannot access it.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700) //nolint:gosec // a directory
}

// memoryDir returns the pod's directory in memory.
func (p *pod) memoryDir() (string, error) {
	dir := filepath.Join(p.m.shm, string(p.spec.UID))
	return dir, private(dir)
}

func (p *pod) makeEmptyDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	mode := fs.FileMode(0o777) // regardless of the umask
	if g := p.fsGroup(); g >= 0 {
		if err := os.Chown(dir, -1, g); err != nil {
			return err
		}
		mode |= fs.ModeSetgid
	}
	return os.Chmod(dir, mode)
}

// fsGroup returns the group that owns the pod's own volumes, or -1.
func (p *pod) fsGroup() int {
	if sc := p.spec.Spec.SecurityContext; sc != nil && sc.FSGroup != nil {
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

// mounts returns the mounts of a container. values expand subPathExpr.
func (p *pod) mounts(c *corev1.Container, id identity, values map[string]string) ([]shim.Mount, error) {
	var mounts []shim.Mount
	hosts := p.spec.Spec.HostNetwork
	for _, vm := range c.VolumeMounts {
		v, ok := p.volumes[vm.Name]
		if !ok {
			return nil, fmt.Errorf("volume mount %s: no such volume %s", vm.MountPath, vm.Name)
		}
		sub := vm.SubPath
		if vm.SubPathExpr != "" {
			sub = expand(vm.SubPathExpr, values)
		}
		source, err := p.subPath(v, sub, vm.MountPath, id)
		if err != nil {
			return nil, fmt.Errorf("volume mount %s: %w", vm.MountPath, err)
		}
		target := vm.MountPath
		if !filepath.IsAbs(target) {
			target = "/" + target
		}
		hosts = hosts || filepath.Clean(target) == "/etc/hosts"
		mounts = append(mounts, shim.Mount{
			Source: source, Target: target, ReadOnly: vm.ReadOnly || v.readOnly, Own: v.own,
		})
	}
	if !hosts {
		file := filepath.Join(p.dir, "hosts")
		if err := os.WriteFile(file, []byte(p.hostsFile()), 0o644); err != nil {
			return nil, err
		}
		mounts = append(mounts, shim.Mount{Source: file, Target: "/etc/hosts"})
	}
	if source := resolvConf(os.ReadFile); p.net.Namespace() != nil && source != "" {
		mounts = append(mounts, shim.Mount{Source: source, Target: "/etc/resolv.conf", ReadOnly: true})
	}
	return mounts, nil
}

// subPath returns the path of a volume's subPath. If it does not exist in an emptyDir, it is
// created: as a directory, or as a file if the machine has a file at the mount path (for
// /etc/hosts).
func (p *pod) subPath(v volume, sub, target string, id identity) (string, error) {
	if sub == "" {
		return v.path, nil
	}
	if filepath.IsAbs(sub) || !filepath.IsLocal(sub) {
		return "", fmt.Errorf("subPath %q is outside of the volume", sub)
	}
	full := filepath.Join(v.path, sub)
	_, err := os.Stat(full)
	if errors.Is(err, fs.ErrNotExist) && !v.readOnly {
		err = p.makeSubPath(v, full, target, id)
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

func (p *pod) makeSubPath(v volume, full, target string, id identity) error {
	info, err := os.Stat(target)
	if !v.empty || err != nil || !info.Mode().IsRegular() {
		return os.MkdirAll(full, 0o777)
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		return err
	}
	var content string
	if filepath.Clean(target) == "/etc/hosts" {
		content = p.hostsFile()
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		return err
	}
	if p.m.iso.Root {
		return os.Chown(full, int(id.uid), int(id.gid))
	}
	return nil
}
