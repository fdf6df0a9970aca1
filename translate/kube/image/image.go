// Package image applies the container options of a job (--container-image and the other
// options of pyxis) to a partition's template, as far as the partition allows. A job may
// choose the image, and mount directories of the partition's volumes. User, security
// context and agent cannot be changed. The package is pure.
package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/value"
)

// JobContainer is the name of the container of a Partition's template that runs
// the job. HostImage is, in place of an image, the file system of a process node.
const (
	JobContainer = "job"
	HostImage    = "berth.hpc/host"
)

// reserved are paths that belong to the agent or the pod.
var reserved = []string{
	"/", "/etc", "/run", "/var", "/var/run", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/passwd",
	"/etc/group", "/etc/shadow", "/etc/ld.so.preload", "/etc/ld.so.cache",
}

// reservedTrees are directories at and below which nothing can be mounted.
var reservedTrees = []string{"/proc", "/sys", "/dev", "/berth", "/run/berth", "/run/secrets", "/var/run/secrets"}

// Check returns why jobs of the partition must not use these options, or nil. choice is
// job.Batch.Container. The error's text is for the user.
func Check(part *v1alpha1.Partition, choice map[string]string) error {
	if len(choice) == 0 {
		return nil
	}
	var pod corev1.PodTemplateSpec
	if raw := part.Spec.Template.Raw; len(raw) > 0 {
		if err := json.Unmarshal(raw, &pod); err != nil {
			return fmt.Errorf("template of partition %s: %w", part.Name, err)
		}
	}
	c := &corev1.Container{Name: JobContainer}
	isJob := func(c corev1.Container) bool { return c.Name == JobContainer }
	if i := slices.IndexFunc(pod.Spec.Containers, isJob); i >= 0 {
		c = &pod.Spec.Containers[i]
	}
	return Apply(part, c, choice)
}

// Apply applies the options to c, the job's container in the partition's template.
func Apply(part *v1alpha1.Partition, c *corev1.Container, choice map[string]string) error {
	if len(choice) == 0 {
		return nil
	}
	image := choice["image"]
	switch {
	case image == "":
		return errors.New("pyxis: the --container options need --container-image")
	case c.Image == "" || c.Image == HostImage:
		return fmt.Errorf(
			"pyxis: partition %s runs jobs as processes of its nodes, without images; omit --container-image",
			part.Name,
		)
	case !allowed(part.Spec.AllowImages, image):
		return fmt.Errorf("pyxis: partition %s does not allow image %s", part.Name, image)
	}
	if dir := choice["workdir"]; dir != "" && !path.IsAbs(dir) {
		return fmt.Errorf("pyxis: --container-workdir: %s is not an absolute path", dir)
	}
	if err := rootFS(part, c, choice); err != nil {
		return err
	}
	c.Image = image
	return mount(part, c, choice["mounts"])
}

// rootFS makes the container's file system read-only if the job requests it. It
// returns an error if the job requests a writable one and the partition's is read-only.
func rootFS(part *v1alpha1.Partition, c *corev1.Container, choice map[string]string) error {
	sc := c.SecurityContext
	if choice["writable"] != "" && sc != nil && sc.ReadOnlyRootFilesystem != nil && *sc.ReadOnlyRootFilesystem {
		return fmt.Errorf("pyxis: --container-writable: partition %s mounts the file systems of containers read-only",
			part.Name)
	}
	if choice["readonly"] != "" {
		if sc = sc.DeepCopy(); sc == nil {
			sc = &corev1.SecurityContext{}
		}
		yes := true
		sc.ReadOnlyRootFilesystem = &yes
		c.SecurityContext = sc
	}
	return nil
}

// allowed reports whether an image matches one of the patterns, in which an asterisk
// matches any text.
func allowed(patterns []string, image string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, image) })
}

func match(pattern, text string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	if !strings.HasPrefix(text, head) {
		return false
	}
	for i := len(head); i <= len(text); i++ {
		if match(rest, text[i:]) {
			return true
		}
	}
	return false
}

// mount adds mounts of directories in volumes that the container has.
func mount(part *v1alpha1.Partition, c *corev1.Container, text string) error {
	if text == "" {
		return nil
	}
	mounts, err := value.Mounts(text)
	if err != nil {
		return fmt.Errorf("pyxis: --container-mounts: %w", err)
	}
	own := slices.Clone(c.VolumeMounts)
	for _, m := range mounts {
		if isReserved(m.Target) {
			return fmt.Errorf("pyxis: --container-mounts: cannot mount anything at %s", m.Target)
		}
		from := mountOf(own, m.Source)
		if from == nil {
			return fmt.Errorf("pyxis: --container-mounts: %s is not on a volume of partition %s", m.Source, part.Name)
		}
		mounted := func(v corev1.VolumeMount) bool { return v.MountPath == m.Target }
		if slices.ContainsFunc(c.VolumeMounts, mounted) {
			continue
		}
		sub := strings.TrimPrefix(strings.TrimPrefix(m.Source, from.MountPath), "/")
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
			Name:      from.Name,
			MountPath: m.Target,
			SubPath:   path.Join(from.SubPath, sub),
			ReadOnly:  from.ReadOnly || m.ReadOnly,
		})
	}
	return nil
}

// isReserved reports whether target is a path of the system or the agent, at which a job
// must not mount anything.
func isReserved(target string) bool {
	below := func(dir string) bool { return target == dir || strings.HasPrefix(target, dir+"/") }
	return slices.Contains(reserved, target) || slices.ContainsFunc(reservedTrees, below)
}

// Binds returns the mounts of a valid choice, each as SOURCE:TARGET.
func Binds(choice map[string]string) []string {
	var out []string
	if choice["mounts"] == "" {
		return nil
	}
	mounts, _ := value.Mounts(choice["mounts"])
	for _, m := range mounts {
		out = append(out, m.Source+":"+m.Target)
	}
	return out
}

// mountOf returns the mount with the longest path that contains source, or nil.
func mountOf(mounts []corev1.VolumeMount, source string) *corev1.VolumeMount {
	var best *corev1.VolumeMount
	for i := range mounts {
		p := strings.TrimSuffix(mounts[i].MountPath, "/")
		contains := source == p || strings.HasPrefix(source, p+"/")
		longer := best == nil || len(p) > len(best.MountPath)
		if contains && longer && mounts[i].SubPathExpr == "" {
			best = &mounts[i]
		}
	}
	return best
}
