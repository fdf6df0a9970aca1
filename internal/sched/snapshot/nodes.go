package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/gres"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
	"github.com/berth-hpc/berth/internal/sched/pools"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/topology"
)

// node is what the snapshot holds about a node beside backfill.Node.
type node struct {
	object   *corev1.Node
	features []string
	power    *pools.Power // nil: it belongs to no pool
}

// addNodes adds the managed nodes, numbered by weight and then by name, and the resources that
// pods other than jobs use on them. Nodes that have to boot come after those that run.
func (s *Snapshot) addNodes(in *Input) {
	nodes, power := pools.Merge(in.NodePools, in.Nodes, in.Now)
	pool := slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { return !nodeinfo.Managed(n) })
	short := nodeinfo.ShortNames(pool)
	slices.SortFunc(pool, func(a, b *corev1.Node) int { return hostlist.Compare(short[a.Name], short[b.Name]) })
	positions := map[string]int{}
	for i, n := range pool {
		positions[n.Name] = i
	}
	slices.SortStableFunc(pool, func(a, b *corev1.Node) int {
		p, q := power[a.Name], power[b.Name]
		return cmp.Or(comparePower(&p, &q), cmp.Compare(nodeinfo.Weight(a), nodeinfo.Weight(b)), compareBoot(&p, &q))
	})
	table := gres.Of(&s.params)
	s.network = buildNetwork(s.params.Topology, pool, short)
	for i, n := range pool {
		s.byName[short[n.Name]], s.byObject[n.Name] = i, i
		features := nodeinfo.Features(n, s.params.FeatureLabels)
		for _, f := range features {
			s.features[f] = true
		}
		s.nodes = append(s.nodes, node{object: n, features: features})
		s.Nodes = append(s.Nodes, buildNode(n, short[n.Name], table))
		s.Nodes[i].Position = positions[n.Name]
		s.Nodes[i].TopologyPath = s.network.Path(short[n.Name])
		if p, ok := power[n.Name]; ok {
			s.setPower(i, &p)
		}
	}
	s.addComing(in.Nodes)
	s.addWorkloadPods(in.Pods)
	s.addUsed(in.Pods, table)
}

// addComing notes the objects of nodes that have come and do not run yet: in their place, the
// snapshot has nodes with the names that their pools list, but jobs may already be recorded on
// the objects.
func (s *Snapshot) addComing(nodes []*corev1.Node) {
	for _, n := range nodes {
		if name := nodeinfo.PoolName(n); name != n.Name {
			if i, ok := s.byObject[name]; ok && s.nodes[i].power != nil {
				s.byComing[n.Name] = i
			}
		}
	}
}

// comparePower puts nodes that run before those that have to boot.
func comparePower(a, b *pools.Power) int { return compareBool(a.Boot > 0, b.Boot > 0) }

// compareBoot puts the cheapest of nodes that have to boot first, and of those the ones that
// boot soonest.
func compareBoot(a, b *pools.Power) int {
	if a.Boot == 0 || b.Boot == 0 {
		return 0
	}
	requested := compareBool(a.State != v1alpha1.PoolPoweringUp, b.State != v1alpha1.PoolPoweringUp)
	cost := cmp.Compare(pools.Cost(&a.Pool.Spec), pools.Cost(&b.Pool.Spec))
	return cmp.Or(requested, cost, cmp.Compare(a.Boot, b.Boot))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// setPower sets when the node, which belongs to a pool, can run jobs.
func (s *Snapshot) setPower(i int, p *pools.Power) {
	s.nodes[i].power = p
	if !p.IsUsable() {
		s.Nodes[i].Unavailable = true
		return
	}
	s.Nodes[i].Boot = int64((p.Boot + time.Second - 1) / time.Second)
}

// NodePower returns the state of the node with the number if it belongs to a pool, or nil.
func (s *Snapshot) NodePower(i int) *pools.Power { return s.nodes[i].power }

// addUsed sets the resources of each node that pods other than jobs use. Jobs get
// whole CPUs, so the requests are summed before they are rounded, together with the part
// of a CPU that the node has beyond whole ones: a node with ten small daemons does not lose
// ten CPUs, and none at all if they fit in what its kubelet does not reserve of one.
func (s *Snapshot) addUsed(pods []*corev1.Pod, table gres.Table) {
	milliCPUs, memory := make([]int64, len(s.Nodes)), make([]int64, len(s.Nodes))
	for _, p := range pods {
		i, inPool := s.byObject[p.Spec.NodeName]
		if !inPool || s.isAccounted(p) {
			continue
		}
		r := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
		milliCPUs[i] += r.Cpu().MilliValue()
		memory[i] += r.Memory().Value()
		s.Nodes[i].UsedGRES = gres.Add(s.Nodes[i].UsedGRES, table.List(r, s.nodes[i].object.Labels))
	}
	for i := range s.Nodes {
		free := max(0, s.nodes[i].object.Status.Allocatable.Cpu().MilliValue()-milliCPUs[i]) / 1000
		s.Nodes[i].UsedCPUs = s.Nodes[i].CPUs - int(free)
		s.Nodes[i].UsedMemory = (memory[i] + 1<<20 - 1) >> 20
	}
}

func buildNode(n *corev1.Node, name string, table gres.Table) backfill.Node {
	a := n.Status.Allocatable
	out := backfill.Node{
		Name:           name,
		CPUs:           int(a.Cpu().MilliValue() / 1000),
		ThreadsPerCore: nodeinfo.ThreadsPerCore(n),
		Sockets:        nodeinfo.Sockets(n),
		Memory:         a.Memory().Value() >> 20,
		GRES:           table.List(a, n.Labels),
		Unavailable:    nodeinfo.Unavailable(n) != "",
	}
	if len(table.Missing(n)) > 0 {
		out.AllGRES = table.List(n.Status.Capacity, n.Labels)
	}
	setAlignment(&out, nodeinfo.TopologyManagerOf(n))
	return out
}

// buildNetwork returns the network of the nodes, whose short names are given by their names.
func buildNetwork(spec *v1alpha1.Topology, pool []*corev1.Node, short map[string]string) *topology.Network {
	nodes := make([]topology.Node, len(pool))
	for i, n := range pool {
		nodes[i] = topology.Node{Name: short[n.Name], Labels: n.Labels}
	}
	return topology.Build(spec, nodes)
}

// Network returns the network of the nodes.
func (s *Snapshot) Network() *topology.Network { return s.network }

// NodeObject returns the object of the node with the number.
func (s *Snapshot) NodeObject(i int) *corev1.Node { return s.nodes[i].object }

// UnpreparedMemory is how long it is known that a node has not prepared the devices of a job.
const UnpreparedMemory = 15 * time.Minute

// DeviceTrouble returns which devices of the node with the number cannot be used and why, or "".
func (s *Snapshot) DeviceTrouble(i int) string {
	n := s.nodes[i].object
	text := gres.Of(&s.params).Trouble(n)
	if jobs := s.unprepared[n.Name]; text == "" && jobs > 0 {
		text = fmt.Sprintf("the devices of %d jobs were not prepared in the last %.0f minutes", jobs,
			UnpreparedMemory.Minutes())
	}
	return text
}

// NodeFeatures returns the features of the node with the number.
func (s *Snapshot) NodeFeatures(i int) []string { return s.nodes[i].features }

// NodeNumber returns the number of the node with the short name.
func (s *Snapshot) NodeNumber(name string) (i int, ok bool) {
	i, ok = s.byName[name]
	return i, ok
}

// HasFeature reports whether any node has the feature.
func (s *Snapshot) HasFeature(name string) bool { return s.features[name] }

// HasTmpDisk reports whether the node has so much local disk, in MiB, for all of
// its pods together. A node that does not report its disk is assumed to have
// enough.
func (s *Snapshot) HasTmpDisk(i int, minimum int64) bool {
	if minimum <= 0 {
		return true
	}
	disk := nodeinfo.TmpDisk(s.nodes[i].object)
	return disk == 0 || disk >= minimum
}
