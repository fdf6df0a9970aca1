package kube

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/accounts"
)

// volumeNames is the volume with passwd(5) and group(5) of a pod without an init container.
const volumeNames = "berth-names"

// unprepared adds to the pod of a job on one node what an init container would write, if that is
// known before: the kubelet writes /etc/hosts with the name of the node, and the names of the
// user from annotations. Otherwise it changes nothing and returns false.
//
// An init container costs as much as a short job: kubelets notice its end only once a second.
func (in Input) unprepared(pod *corev1.PodTemplateSpec, c *corev1.Container) bool {
	spec := &pod.Spec
	node := in.Job.Status.Allocation.Nodes[0].Name
	if in.Accounts == nil || len(in.Job.Status.Allocation.Nodes) > 1 || spec.HostNetwork {
		return false
	}
	alias, ok := in.submitHost(spec, node)
	if !ok {
		return false
	}
	if u, files := in.account(), missingNames(c); u != nil && files != nil {
		image, known := in.Accounts(c.Image)
		if !known {
			return false
		}
		addNames(pod, c, files, image.With(*u))
	}
	spec.HostAliases = append(spec.HostAliases, alias...)
	spec.Volumes = append(spec.Volumes, corev1.Volume{
		Name: volumeHosts, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeHosts, MountPath: wire.RunDir})
	return true
}

// submitHost returns the line of /etc/hosts for the host that the job was submitted on, if it
// needs one: a name has one line. ok is false if the kubelet cannot write that line.
func (in Input) submitHost(spec *corev1.PodSpec, node string) (alias []corev1.HostAlias, ok bool) {
	b := &in.Job.Spec.Job.Batch
	if b.SubmitHost == "" || b.SubmitAddress == "" || b.SubmitHost == node {
		return nil, true
	}
	for _, a := range spec.HostAliases {
		if slices.Contains(a.Hostnames, b.SubmitHost) {
			return nil, true
		}
	}
	address, err := netip.ParseAddr(b.SubmitAddress)
	if err != nil || address.Zone() != "" || len(validation.IsDNS1123Subdomain(b.SubmitHost)) > 0 {
		return nil, false
	}
	return []corev1.HostAlias{{IP: address.String(), Hostnames: []string{b.SubmitHost}}}, true
}

// addNames mounts the files that the container lacks from annotations of the pod.
func addNames(pod *corev1.PodTemplateSpec, c *corev1.Container, missing []string, files accounts.Files) {
	pod.Annotations[wire.AnnotationPasswd], pod.Annotations[wire.AnnotationGroup] = files.Passwd, files.Group
	item := func(name, annotation string) corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{Path: name, FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: "metadata.annotations['" + annotation + "']"}}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volumeNames, VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			item(wire.PasswdName, wire.AnnotationPasswd), item(wire.GroupName, wire.AnnotationGroup),
		}}}})
	mountNames(c, volumeNames, missing)
}

// ImageAccounts returns what a pod has reported about the accounts of the image of its job's
// container: the reference to the image, the image's id, and passwd(5) and group(5). The id is
// also returned for pods without such a report, and empty until it is known.
func ImageAccounts(pod *corev1.Pod) (image, id string, files accounts.Files, reported bool) {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == ContainerName })
	if i < 0 {
		return "", "", accounts.Files{}, false
	}
	image = pod.Spec.Containers[i].Image
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == ContainerName {
			id = s.ImageID
		}
	}
	for k := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[k]
		if c.Name != containerPrepare || c.Image != image {
			continue
		}
		for _, s := range pod.Status.InitContainerStatuses {
			if s.Name == containerPrepare && s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 {
				files, reported = accounts.OfMessage(s.State.Terminated.Message)
				return image, s.ImageID, files, reported
			}
		}
	}
	return image, id, accounts.Files{}, false
}
