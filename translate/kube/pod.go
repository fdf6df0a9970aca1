package kube

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/kube/image"
)

// Names of the volumes that every pod of a job has.
const (
	volumeBin   = "berth-bin"
	volumeHosts = "berth-hosts"
)

// volumeTemp is the volume for temporary files if the root file system is read-only.
const volumeTemp = "berth-tmp"

// containerPrepare is the init container of pods on a kubelet.
const containerPrepare = "berth-prepare"

// pod returns the template of a run's pods: the Partition's, with the agent added.
func (in Input) pod(r run) (*corev1.PodTemplateSpec, error) {
	pod := &corev1.PodTemplateSpec{}
	if raw := in.Partition.Spec.Template.Raw; len(raw) > 0 {
		if err := json.Unmarshal(raw, pod); err != nil {
			return nil, fmt.Errorf("template of partition %s: %w", in.Partition.Name, err)
		}
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	for k, v := range in.labels() {
		pod.Labels[k] = v
	}
	pod.Labels[podgroup.PodGroupLabel] = in.name()
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	if list := r.list(); list != "" {
		pod.Annotations[wire.AnnotationNodes] = list
	} else {
		pod.Annotations[wire.AnnotationNodeOffset] = strconv.Itoa(int(r.offset()))
	}

	spec := &pod.Spec
	spec.SchedulerName = wire.SchedulerName
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.ServiceAccountName = v1alpha1.ServiceAccountName
	spec.AutomountServiceAccountToken = ptr(true)
	spec.EnableServiceLinks = ptr(false)
	spec.TerminationGracePeriodSeconds = ptr(in.killWait())
	spec.SecurityContext = in.podSecurity(spec.SecurityContext)
	tolerateUnreachable(spec)
	return pod, in.agent(pod, r)
}

// tolerateUnreachable keeps Kubernetes from evicting the pod when its node has been unreachable
// for five minutes: how long a job's nodes are waited for is decided by SlurmdTimeout.
func tolerateUnreachable(spec *corev1.PodSpec) {
	chosen := func(t corev1.Toleration) bool {
		return t.Key == corev1.TaintNodeUnreachable || t.Key == "" && t.Operator == corev1.TolerationOpExists
	}
	if slices.ContainsFunc(spec.Tolerations, chosen) { // by the partition's template
		return
	}
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
		Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
	})
}

// agent adds the agent to the container that runs the job.
func (in Input) agent(pod *corev1.PodTemplateSpec, r run) error {
	spec := &pod.Spec
	i := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == ContainerName })
	if i < 0 {
		spec.Containers = append(spec.Containers, corev1.Container{Name: ContainerName})
		i = len(spec.Containers) - 1
	}
	c := &spec.Containers[i]
	if c.Image == "" {
		c.Image = HostImage
	}
	shared := slices.Clone(c.VolumeMounts)
	if err := image.Apply(in.Partition, c, in.Job.Spec.Job.Batch.Container); err != nil {
		return err
	}
	binDir, agentImage, err := in.binVolume(spec, c)
	if err != nil {
		return err
	}
	c.Command = []string{path.Join(binDir, "agent")}
	c.Args = nil
	c.Env = append(c.Env, in.agentEnv(&r, binDir)...)
	c.Resources = corev1.ResourceRequirements{Requests: r.resources, Limits: r.limits}
	c.SecurityContext = restricted(c.SecurityContext)
	addTemporary(spec, c)
	if c.Image == HostImage {
		hostsFile(spec, c)
		return nil
	}
	binds := image.Binds(in.Job.Spec.Job.Batch.Container)
	if agentImage == "" && len(binds) == 0 && in.unprepared(pod, c) {
		return nil
	}
	hostsFile(spec, c)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeHosts, MountPath: wire.RunDir})
	prepare(spec, c, binDir, agentImage, in.names(c), shared, binds)
	return nil
}

// binVolume mounts the directory of the agent and returns its path. If image is not empty,
// the agent has to be copied from that image when the pod starts.
func (in Input) binVolume(spec *corev1.PodSpec, c *corev1.Container) (dir, image string, err error) {
	source := in.Partition.Spec.Agent
	if source == (v1alpha1.AgentSource{}) {
		source = in.Agent
	}
	v := corev1.Volume{Name: volumeBin}
	m := corev1.VolumeMount{Name: volumeBin, ReadOnly: true}
	switch {
	case source.HostPath != "":
		v.HostPath = &corev1.HostPathVolumeSource{Path: source.HostPath, Type: ptr(corev1.HostPathDirectory)}
		m.MountPath = source.HostPath
	case source.Image != "" && !source.InitContainer:
		v.Image = &corev1.ImageVolumeSource{Reference: source.Image}
		m.MountPath, m.SubPath = wire.DefaultBinDir, wire.DefaultBinDir[1:]
	case source.Image != "":
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		m.MountPath, image = wire.DefaultBinDir, source.Image
	default:
		return "", "", fmt.Errorf("partition %s has no source of the agent (spec.agent)", in.Partition.Name)
	}
	spec.Volumes = append(spec.Volumes, v)
	c.VolumeMounts = append(c.VolumeMounts, m)
	return m.MountPath, image, nil
}

// hostsFile mounts an /etc/hosts that the agent can write.
func hostsFile(spec *corev1.PodSpec, c *corev1.Container) {
	spec.Volumes = append(spec.Volumes, corev1.Volume{
		Name: volumeHosts, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	c.VolumeMounts = append(
		c.VolumeMounts,
		corev1.VolumeMount{Name: volumeHosts, MountPath: "/etc/hosts", SubPath: hostsName},
	)
}

// addTemporary mounts a writable /tmp if the root file system is read-only and the
// partition mounts nothing there.
func addTemporary(spec *corev1.PodSpec, c *corev1.Container) {
	const dir = "/tmp"
	sc := c.SecurityContext
	readOnly := sc.ReadOnlyRootFilesystem != nil && *sc.ReadOnlyRootFilesystem
	mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
		return path.Clean(m.MountPath) == dir
	})
	if !readOnly || mounted {
		return
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{
		Name: volumeTemp, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeTemp, MountPath: dir})
}

// hostsName is the name of the file in the volume of /etc/hosts.
const hostsName = "hosts"

// The mount paths of volumes in the container that prepares the pod.
const (
	prepareHosts = "/run/berth-hosts"
	prepareBin   = "/run/berth-bin"
)

// prepare adds the init container that runs before the job's, with the same rights. It
// runs the agent, so it needs no programs of the image. It creates the file for
// /etc/hosts, as a kubelet creates a directory for a missing subPath; it writes the user's
// name; it copies the agent unless that is a volume; and it fails if a directory that the
// user mounts does not exist or is not accessible, which the kubelet would create as root.
func prepare(spec *corev1.PodSpec, c *corev1.Container, binDir, agentImage string, names []string,
	shared []corev1.VolumeMount, binds []string) {
	first := corev1.Container{
		Name:            containerPrepare,
		Image:           c.Image,
		ImagePullPolicy: c.ImagePullPolicy,
		Command: []string{
			path.Join(binDir, "agent"),
			wire.AgentPrepare,
			"-hosts=" + path.Join(prepareHosts, hostsName),
		},
		// The pod's request is the maximum of init and job containers.
		Resources:       c.Resources,
		SecurityContext: c.SecurityContext,
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeHosts, MountPath: prepareHosts}},
	}
	first.Command = append(first.Command, names...)
	if agentImage != "" {
		first.Image, first.ImagePullPolicy = agentImage, ""
		first.Command[0] = path.Join(wire.DefaultBinDir, "agent")
		first.Command = append(first.Command, "-bin="+prepareBin)
		first.VolumeMounts = append(first.VolumeMounts, corev1.VolumeMount{Name: volumeBin, MountPath: prepareBin})
	} else {
		i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volumeBin })
		first.VolumeMounts = append(first.VolumeMounts, c.VolumeMounts[i])
	}
	if len(binds) > 0 {
		first.Command = append(
			append(first.Command, "-mounts="+path.Join(prepareHosts, wire.MountsFile), "--"),
			binds...)
		first.VolumeMounts = append(first.VolumeMounts, shared...)
	}
	spec.InitContainers = append(spec.InitContainers, first)
}

// ImageVolumes reports whether a node's kubelet and container runtime support image
// volumes with a subPath: kubelets since 1.35 (earlier ones not by default), containerd
// since 2.1, CRI-O since 1.33.
func ImageVolumes(n *corev1.NodeSystemInfo) bool {
	if !atLeast(strings.TrimPrefix(n.KubeletVersion, "v"), 1, 35) {
		return false
	}
	name, version, _ := strings.Cut(n.ContainerRuntimeVersion, "://")
	switch name {
	case "containerd":
		return atLeast(strings.TrimPrefix(version, "v"), 2, 1)
	case "cri-o":
		return atLeast(version, 1, 33)
	}
	return false
}

// atLeast reports whether the first two parts of a version are at least major.minor.
func atLeast(version string, major, minor int) bool {
	a, rest, _ := strings.Cut(version, ".")
	b, _, _ := strings.Cut(rest, ".")
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(strings.TrimRight(b, "+"))
	return errX == nil && errY == nil && (x > major || x == major && y >= minor)
}

// podSecurity returns the security context of the partition with the ids of the user.
func (in Input) podSecurity(sc *corev1.PodSecurityContext) *corev1.PodSecurityContext {
	if sc == nil {
		sc = &corev1.PodSecurityContext{}
	}
	u := in.User.Spec
	gid := u.GID
	if g := in.Job.Spec.Job.Batch.Group; g != nil { // checked by admission
		gid = g.GID
	}
	sc.RunAsUser, sc.RunAsGroup = ptr(u.UID), ptr(gid)
	sc.RunAsNonRoot = nil
	if u.UID != 0 {
		sc.RunAsNonRoot = ptr(true)
	}
	sc.SupplementalGroups = nil
	for _, g := range u.Groups {
		if g.GID != u.GID && g.GID != gid {
			sc.SupplementalGroups = append(sc.SupplementalGroups, g.GID)
		}
	}
	if sc.SeccompProfile == nil {
		sc.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	return sc
}

// restricted adds the settings of the restricted Pod Security Standard that the
// partition's template does not set.
func restricted(sc *corev1.SecurityContext) *corev1.SecurityContext {
	if sc == nil {
		sc = &corev1.SecurityContext{}
	}
	sc.RunAsUser, sc.RunAsGroup, sc.RunAsNonRoot = nil, nil, nil
	if sc.AllowPrivilegeEscalation == nil && (sc.Privileged == nil || !*sc.Privileged) {
		sc.AllowPrivilegeEscalation = ptr(false)
	}
	if sc.Capabilities == nil && (sc.Privileged == nil || !*sc.Privileged) {
		sc.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	return sc
}
