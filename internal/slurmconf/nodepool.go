package slurmconf

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// StateCloud is the state of a node that runs only while jobs need it.
const StateCloud = "cloud"

// powerSaving has the parameters of slurm.conf about nodes that do not always run.
type powerSaving struct {
	spec    v1alpha1.NodePoolSpec
	program v1alpha1.NodeProgram
	reboot  pair // RebootProgram
	// rebootHere: RebootProgram runs where slurmctld does, with the names of the nodes.
	rebootHere bool
}

// powerParameter sets a parameter of power saving; ok is false for other keys.
func (s *powerSaving) powerParameter(kv pair) (ok bool, err error) {
	seconds := func(to *int32) (bool, error) {
		n, err := kv.integer(0, 86400)
		*to = int32(n)
		return true, err
	}
	switch strings.ToLower(kv.key) {
	case "rebootprogram":
		s.reboot = kv
	case "slurmctldparameters":
		s.rebootHere = strings.Contains(strings.ToLower(kv.value), "reboot_from_controller")
		return false, nil
	case "resumeprogram":
		s.program.Resume = kv.value
	case "suspendprogram":
		s.program.Suspend = kv.value
	case "resumefailprogram":
		s.program.ResumeFail = kv.value
	case "resumetimeout":
		return seconds(&s.spec.ResumeTimeout)
	case "suspendtimeout":
		return seconds(&s.spec.SuspendTimeout)
	case "suspendtime":
		s.spec.SuspendTime = nil
		if unlimited(kv.value) || kv.value == "-1" {
			return true, nil
		}
		n, err := kv.integer(0, maxInt32)
		s.spec.SuspendTime = pointer(int32(n))
		return true, err
	default:
		return false, nil
	}
	return true, nil
}

// readReboot sets what reboots nodes, and how long that may take.
func (p *parser) readReboot() error {
	p.config.Cluster.ResumeTimeout = p.power.spec.ResumeTimeout
	kv := p.power.reboot
	switch {
	case kv.value == "":
		return nil
	case p.power.rebootHere:
		return script(func(c *v1alpha1.ClusterSpec) *string { return &c.RebootProgram })(&p.config.Cluster, kv)
	}
	p.warn(kv, "runs on the nodes in Slurm; set rebootProgram of the Cluster, which runs in the scheduler")
	return nil
}

// readPools adds a pool for each set of equal nodes in state CLOUD.
func (p *parser) readPools() error {
	byShape := map[string]int{}
	var members [][]*Node
	for _, name := range p.order {
		n := p.nodes[name]
		if n.State != StateCloud {
			continue
		}
		shape := *n
		shape.Name = ""
		key := fmt.Sprintf("%+v", shape)
		i, known := byShape[key]
		if !known {
			i = len(members)
			byShape[key] = i
			members = append(members, nil)
		}
		members[i] = append(members[i], n)
	}
	taken := map[string]bool{}
	for _, nodes := range members {
		p.config.NodePools = append(p.config.NodePools, p.pool(nodes, taken))
	}
	if program := p.power.program; len(members) > 0 && (program.Resume == "" || program.Suspend == "") {
		p.warn(pair{line: p.nodeLine[members[0][0].Name], key: "NodeName"},
			"nodes in state CLOUD need ResumeProgram and SuspendProgram")
	}
	return nil
}

// pool returns the pool of equal nodes. Its name is the beginning of their names.
func (p *parser) pool(nodes []*Node, taken map[string]bool) v1alpha1.NodePool {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	base := strings.Trim(strings.TrimRight(v1alpha1.ObjectNamed(nodes[0].Name), "0123456789"), "-.")
	if base == "" {
		base = "pool"
	}
	name := base
	for i := 2; taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	taken[name] = true
	n, spec := nodes[0], p.power.spec
	spec.Nodes = hostlist.Fold(names)
	spec.Resources = resourcesOf(n)
	spec.Features = n.Features
	spec.Sockets, spec.CoresPerSocket = int32(n.Sockets), int32(n.CoresPerSocket)
	spec.ThreadsPerCore, spec.Weight = int32(n.ThreadsPerCore), int32(n.Weight)
	if program := p.power.program; program.Resume != "" && program.Suspend != "" {
		spec.Program = &program
	}
	return v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

// resourcesOf returns what a node has for pods. slurm.conf's RealMemory is 1 MiB if it is not
// given.
func resourcesOf(n *Node) corev1.ResourceList {
	out := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(n.CPUs), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(max(1, n.RealMemory)<<20, resource.BinarySI),
	}
	if n.TmpDisk > 0 {
		out[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(n.TmpDisk<<20, resource.BinarySI)
	}
	for _, g := range n.GRES {
		name := wire.ResourceGRES + g.Name
		if g.Type != "" {
			name += "-" + g.Type
		}
		q := out[corev1.ResourceName(name)]
		q.Add(*resource.NewQuantity(g.Count, resource.DecimalSI))
		out[corev1.ResourceName(name)] = q
	}
	return out
}
