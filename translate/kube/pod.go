package kube

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"

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

// pod makes the template of a run's pods: the Partition's, with the agent in it.
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
	pod.Annotations[wire.AnnotationNodeOffset] = strconv.Itoa(int(r.offset))

	spec := &pod.Spec
	spec.SchedulerName = wire.SchedulerName
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.ServiceAccountName = v1alpha1.ServiceAccountName
	spec.AutomountServiceAccountToken = ptr(true)
	spec.EnableServiceLinks = ptr(false)
	spec.TerminationGracePeriodSeconds = ptr(in.killWait())
	spec.SecurityContext = in.podSecurity(spec.SecurityContext)
	return pod, in.agent(spec, r)
}

// agent puts the agent into the container that runs the job.
func (in Input) agent(spec *corev1.PodSpec, r run) error {
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
	binDir, err := in.binVolume(spec, c)
	if err != nil {
		return err
	}
	c.Command = []string{path.Join(binDir, "agent")}
	c.Args = nil
	c.Env = append(c.Env, in.agentEnv(r.offset, binDir)...)
	c.Resources = corev1.ResourceRequirements{Requests: r.resources, Limits: r.limits}
	c.SecurityContext = restricted(c.SecurityContext)
	hostsFile(spec, c)
	mustExist(spec, shared, image.Sources(in.Job.Spec.Job.Batch.Container))
	return nil
}

// binVolume mounts the agent's folder, and says where.
func (in Input) binVolume(spec *corev1.PodSpec, c *corev1.Container) (string, error) {
	source := in.Partition.Spec.Agent
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
		return "", fmt.Errorf("partition %s: agent.initContainer is not supported yet", in.Partition.Name)
	default:
		return "", fmt.Errorf("partition %s does not say where the agent comes from (spec.agent)", in.Partition.Name)
	}
	spec.Volumes = append(spec.Volumes, v)
	c.VolumeMounts = append(c.VolumeMounts, m)
	return m.MountPath, nil
}

// hostsFile gives the pod an /etc/hosts of its own, which the agent can write
// to. A kubelet makes a folder of a subPath that does not exist, so a file is
// put there first; process nodes need no help.
func hostsFile(spec *corev1.PodSpec, c *corev1.Container) {
	const dir, file = "/run/berth-hosts", "hosts"
	spec.Volumes = append(spec.Volumes, corev1.Volume{
		Name: volumeHosts, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeHosts, MountPath: "/etc/hosts", SubPath: file})
	if c.Image == HostImage {
		return
	}
	spec.InitContainers = append(spec.InitContainers, corev1.Container{
		Name:            volumeHosts,
		Image:           c.Image,
		ImagePullPolicy: c.ImagePullPolicy,
		Command:         []string{"/bin/sh", "-c", "cp /etc/hosts " + dir + "/" + file},
		// The greater of init and job containers counts, so this is free.
		Resources:       c.Resources,
		SecurityContext: c.SecurityContext,
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeHosts, MountPath: dir}},
	})
}

// mustExist lets the pod fail when a folder that the user wants to mount is not
// there, or not to be seen by the user: the kubelet would make it, as root.
func mustExist(spec *corev1.PodSpec, shared []corev1.VolumeMount, sources []string) {
	i := slices.IndexFunc(spec.InitContainers, func(c corev1.Container) bool { return c.Name == volumeHosts })
	if len(sources) == 0 || i < 0 {
		return
	}
	c := &spec.InitContainers[i]
	c.Command[2] += ` && for d; do [ -e "$d" ] || { echo "--container-mounts: $d does not exist" >&2; exit 1; }; done`
	c.Command = append(append(c.Command, "sh"), sources...)
	c.VolumeMounts = append(c.VolumeMounts, shared...)
}

// podSecurity is the user's numbers, and what the partition says otherwise.
func (in Input) podSecurity(sc *corev1.PodSecurityContext) *corev1.PodSecurityContext {
	if sc == nil {
		sc = &corev1.PodSecurityContext{}
	}
	u := in.User.Spec
	gid := u.GID
	if g := in.Job.Spec.Job.Batch.Group; g != nil { // admission let it pass
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

// restricted fills in the restricted profile of pod security where the
// partition's template is silent.
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
