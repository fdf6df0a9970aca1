package kube

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/accounts"
)

// names adds the user to passwd(5) and group(5) of the job's container: it mounts the files
// and returns the arguments with which the agent writes them.
func (in Input) names(c *corev1.Container) []string {
	u, files := in.account(), missingNames(c)
	if u == nil || files == nil {
		return nil
	}
	id := strconv.FormatInt
	args := []string{"-names=" + prepareHosts, "-image-names=" + wire.TerminationLog,
		"-user=" + strings.Join([]string{u.Name, id(u.UID, 10), id(u.GID, 10), u.Home, u.Shell}, ":")}
	for _, g := range u.Groups {
		args = append(args, "-group="+g.Name+":"+id(g.GID, 10))
	}
	mountNames(c, volumeHosts, files)
	return args
}

// account returns the job's user, as programs that call getpwuid(3), such as whoami, ssh and
// git, need it; nil: no line is needed, or none can be written.
func (in Input) account() *accounts.User {
	u := in.User.Spec
	a := &accounts.User{
		Name: in.User.Name, UID: u.UID, GID: u.GID, Groups: in.groups(),
		Home: cmp.Or(u.Home, "/home/"+in.User.Name), Shell: cmp.Or(u.Shell, "/bin/bash"),
	}
	if u.UID == 0 || strings.ContainsAny(a.Home+a.Shell, ":\n") {
		return nil
	}
	return a
}

// missingNames returns which of the files passwd and group are not mounted by the partition or
// the user.
func missingNames(c *corev1.Container) []string {
	var missing []string
	for _, name := range []string{wire.PasswdName, wire.GroupName} {
		at := path.Join("/etc", name)
		mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			p := path.Clean(m.MountPath)
			return p == at || p == "/etc"
		})
		if !mounted {
			missing = append(missing, name)
		}
	}
	return missing
}

// mountNames mounts files of the volume in /etc.
func mountNames(c *corev1.Container, volume string, files []string) {
	for _, name := range files {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
			Name: volume, MountPath: path.Join("/etc", name), SubPath: name, ReadOnly: true})
	}
}

// groups returns the groups of the job's processes whose names are known.
func (in Input) groups() []accounts.Group {
	var all []accounts.Group
	add := func(name string, gid int64) {
		g := accounts.Group{Name: name, GID: gid}
		if name != "" && !strings.ContainsAny(name, ":\n") && !slices.Contains(all, g) {
			all = append(all, g)
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
