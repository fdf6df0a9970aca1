package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// DefaultPartition is the name of the partition that exists when the cluster has
// no Partition object.
const DefaultPartition = "main"

// NoNodes is the value of PartitionSpec.Nodes of a partition that has no nodes, as Slurm
// shows it; an empty value means all nodes.
const NoNodes = "(null)"

// maxLabel is the maximum length of a label's value.
const maxLabel = 63

// nameHash is the number of hexadecimal digits that PartitionObject adds.
const nameHash = 8

var (
	validObject     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	invalidInObject = regexp.MustCompile(`[^a-z0-9]+`)
	validLabel      = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
)

// PartitionObject returns the name of the object of a partition with the given name in
// Slurm. They are equal if Kubernetes accepts the name. Otherwise the object's name is in
// lower case with a hash, so that gpu_a, GPU_A and gpu-a are three partitions, and
// NameAnnotation has the name.
func PartitionObject(name string) string {
	if validObject.MatchString(name) {
		return name
	}
	return hashedName(name)
}

// hashedName returns a readable form of name with a hash, which is valid as the name of an
// object and as the value of a label.
func hashedName(name string) string {
	sum := sha256.Sum256([]byte(name))
	readable := strings.Trim(invalidInObject.ReplaceAllString(strings.ToLower(name), "-"), "-")
	readable = strings.TrimRight(readable[:min(len(readable), maxLabel-1-nameHash)], "-")
	return strings.TrimLeft(readable+"-"+hex.EncodeToString(sum[:])[:nameHash], "-")
}

// PartitionLabel returns the value of the label of pods that run in the partition: its
// name if it is valid as a label, or else its hashed form.
func PartitionLabel(name string) string {
	if len(name) <= maxLabel && validLabel.MatchString(name) {
		return name
	}
	return hashedName(name)
}

// PartitionName returns the name in Slurm of the object of a partition: that of
// NameAnnotation if the object's name results from it, with or without the hash.
func PartitionName(object string, annotations map[string]string) string {
	name := annotations[NameAnnotation]
	if name != "" && (PartitionObject(name) == object || ObjectNamed(name) == object) {
		return name
	}
	return object
}

// NewPartition returns the object of a partition with the given name in Slurm.
func NewPartition(name string) *Partition {
	p := &Partition{}
	if p.Name = PartitionObject(name); p.Name != name {
		p.Annotations = map[string]string{NameAnnotation: name}
	}
	return p
}

// Inherit returns the partition with the template, agent and shared paths of the default
// partition if it has no template, such as a partition that scontrol or berth import
// created. It returns p itself if p has a template, or the default partition has none. The
// result shares memory with p and all, and must not be modified.
func (p *Partition) Inherit(all []*Partition) *Partition {
	if len(p.Spec.Template.Raw) > 0 {
		return p
	}
	from := model(all)
	if from == nil {
		return p
	}
	n := *p
	n.Spec.Template = from.Spec.Template
	if n.Spec.Agent == (AgentSource{}) {
		n.Spec.Agent = from.Spec.Agent
	}
	if len(n.Spec.SharedPaths) == 0 {
		n.Spec.SharedPaths = from.Spec.SharedPaths
	}
	return &n
}

// model returns the partition that others inherit from, or nil.
func model(all []*Partition) *Partition {
	for _, p := range all {
		if p.Spec.Default && len(p.Spec.Template.Raw) > 0 {
			return p
		}
	}
	return nil
}
