package objects

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/kube"
)

// exampleInput returns the input for the objects in an example cluster: a user with the
// ids of this process, the partition of a new cluster, and nodes that have exactly the
// requested resources. component is the index in a heterogeneous job.
func exampleInput(p *stdio.Process, s *translate.Submission, component int) kube.Input {
	user := p.Env("USER")
	if user == "" {
		user = "user"
	}
	j := s.Job
	if component > 0 {
		j = s.Components[component-1]
	}
	b := &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{Name: "j-example", Namespace: "user-" + user},
		Spec:       v1alpha1.BatchJobSpec{JobID: int64(1 + component), User: user, Job: j},
	}
	if a := j.Array; a != nil && len(a.Indexes) > 1 || component > 0 {
		b.Spec.Origin = &v1alpha1.Origin{Name: b.Name, JobID: 1}
	}
	b.Status.Attempt = 1
	b.Status.Allocation = &v1alpha1.Allocation{Nodes: place(&j.Shape)}
	partition := &v1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "main"}}
	if len(j.Partitions) > 0 {
		partition.Name = j.Partitions[0]
	}
	partition.Spec.Agent.HostPath = wire.DefaultBinDir
	if len(j.Batch.Container) > 0 {
		partition.Spec.AllowImages = []string{"*"}
		partition.Spec.Template.Raw = []byte(realNodes)
	}
	return kube.Input{
		Job:       b,
		Partition: partition,
		User: &v1alpha1.User{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			Spec:       v1alpha1.UserSpec{UID: int64(p.UID), GID: int64(p.GID)},
		},
		API: "https://berth-api.berth-system:8443",
	}
}

// realNodes is the template of an example partition whose jobs run in images.
const realNodes = `{"spec":{"volumes":[{"name":"home","hostPath":{"path":"/home"}}],
	"containers":[{"name":"job","image":"the-partitions-own","volumeMounts":[{"name":"home","mountPath":"/home"}]}]}}`

// place distributes the tasks evenly over the minimum number of nodes.
func place(s *job.Shape) []v1alpha1.NodeAllocation {
	count := max(1, s.MinNodes)
	tasks := s.Tasks
	if tasks == 0 {
		tasks = count * max(1, s.TasksPerNode)
	}
	if per := s.TasksPerNode; per > 0 {
		count = max(count, (tasks+per-1)/per)
	}
	nodes := make([]v1alpha1.NodeAllocation, count)
	for i := range nodes {
		n := &nodes[i]
		n.Name = fmt.Sprintf("node-%d", i+1)
		n.Tasks = tasks / count
		if int32(i) < tasks%count {
			n.Tasks++
		}
		n.GRES = devices(s, n.Tasks, int32(i), count)
		if s.Tasks == 0 && s.TasksPerNode == 0 && s.TasksPerGPU > 0 {
			n.Tasks = s.TasksOfGPUs(gpus(n))
		}
		n.CPUs = cpus(s, n)
		n.Memory = memory(s, n)
	}
	return nodes
}

func cpus(s *job.Shape, n *v1alpha1.NodeAllocation) int32 {
	want := n.Tasks * max(1, s.CPUsPerTask)
	if s.Overcommit {
		want = max(1, s.CPUsPerTask)
	}
	return max(1, want, s.MinCPUs, s.CPUsPerGPU*int32(gpus(n)))
}

func memory(s *job.Shape, n *v1alpha1.NodeAllocation) int64 {
	switch {
	case s.MemPerNode != nil:
		return *s.MemPerNode
	case s.MemPerCPU != nil:
		return *s.MemPerCPU * int64(n.CPUs)
	case s.MemPerGPU != nil:
		return *s.MemPerGPU * gpus(n)
	}
	return 0
}

func gpus(n *v1alpha1.NodeAllocation) (sum int64) {
	for _, g := range n.GRES {
		if g.Name == "gpu" {
			sum += g.Count
		}
	}
	return sum
}

// devices returns the generic resources of node i of count.
func devices(s *job.Shape, tasks, i, count int32) []v1alpha1.GRESAllocation {
	var out []v1alpha1.GRESAllocation
	for _, g := range s.GRES {
		n := g.Count
		switch g.Per {
		case job.PerTask:
			n *= int64(tasks)
		case job.PerSocket:
			n *= int64(max(1, s.SocketsPerNode))
		case job.PerJob:
			n = g.Count / int64(count)
			if int64(i) < g.Count%int64(count) {
				n++
			}
		}
		out = append(out, v1alpha1.GRESAllocation{Name: g.Name, Type: g.Type, Count: n})
	}
	return out
}
