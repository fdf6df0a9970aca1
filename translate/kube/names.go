package kube

import (
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// names adds the user to passwd(5) and group(5) of the job's container, as programs that
// call getpwuid(3), such as whoami, ssh and git, fail otherwise. It mounts the files and
// returns the arguments with which the agent writes them: those of the image, with
// the user before them. Mounts of the partition or the user at these paths are kept.
func (in Input) names(c *corev1.Container) []string {
	u := in.User.Spec
	home, shell := u.Home, u.Shell
	if home == "" {
		home = "/home/" + in.User.Name
	}
	if shell == "" {
		shell = "/bin/bash"
	}
	if u.UID == 0 || strings.ContainsAny(home+shell, ":\n") {
		return nil
	}
	id := strconv.FormatInt
	user := strings.Join([]string{in.User.Name, id(u.UID, 10), id(u.GID, 10), home, shell}, ":")
	args := []string{"-names=" + prepareHosts, "-user=" + user}
	for _, g := range in.groups() {
		args = append(args, "-group="+g)
	}
	var files []corev1.VolumeMount
	for _, name := range []string{wire.PasswdName, wire.GroupName} {
		at := path.Join("/etc", name)
		mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			p := path.Clean(m.MountPath)
			return p == at || p == "/etc"
		})
		if mounted {
			continue
		}
		files = append(files, corev1.VolumeMount{Name: volumeHosts, MountPath: at, SubPath: name, ReadOnly: true})
	}
	if files == nil {
		return nil
	}
	c.VolumeMounts = append(c.VolumeMounts, files...)
	return args
}

// groups returns the groups of the job's processes whose names are known, as NAME:GID.
func (in Input) groups() []string {
	var all []string
	add := func(name string, gid int64) {
		line := name + ":" + strconv.FormatInt(gid, 10)
		if name != "" && !strings.ContainsAny(name, ":\n") && !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	if g := in.Job.Spec.Job.Batch.Group; g != nil {
		add(g.Name, g.GID)
	}
	for _, g := range in.User.Spec.Groups {
		add(g.Name, g.GID)
	}
	return all
}
