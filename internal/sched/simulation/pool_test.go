package simulation

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/power"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// The last nodes of a simulation with a pool run only while jobs need them. The site starts and
// removes their machines as a process requests; some of them never register, register too late,
// with fewer CPUs than promised, or stay registered when they are gone. At the end no machine is
// left, and none is removed while a job runs there.

// poolName is the name of the pool's object.
const poolName = "cloud"

// pool returns the object of the pool.
func (s *simulation) newPool() *v1alpha1.NodePool {
	var names []string
	for i := s.nodes - s.pool; i < s.nodes; i++ {
		names = append(names, nodeName(i))
	}
	idle := int32(60)
	return &v1alpha1.NodePool{
		ObjectMeta: metav1.ObjectMeta{
			Name: poolName, UID: "uid-" + poolName, Finalizers: []string{wire.Finalizer},
		},
		Spec: v1alpha1.NodePoolSpec{
			Nodes: hostlist.Fold(names), Resources: node(0, true).Status.Allocatable,
			BootTime: 30, ResumeTimeout: 60, SuspendTimeout: 30, SuspendTime: &idle,
			Program: &v1alpha1.NodeProgram{Resume: "/resume", Suspend: "/suspend"},
		},
	}
}

// rented is a machine of the pool.
type rented struct {
	registers time.Time // when its kubelet registers; zero: never
	less      bool      // it has fewer CPUs than promised
	up        bool      // it has registered
}

// isOfPool reports whether the node runs only while jobs need it.
func (m *machine) isOfPool(name string) bool {
	for i := m.sim.nodes - m.sim.pool; i < m.sim.nodes; i++ {
		if nodeName(i) == name {
			return true
		}
	}
	return false
}

// isOff reports whether the node belongs to the pool and its machine does not run.
func (m *machine) isOff(name string) bool {
	x := m.rented[name]
	return m.isOfPool(name) && (x == nil || !x.up)
}

// rent starts the machines that are not there.
func (m *machine) rent(names []string) {
	for _, name := range names {
		if m.rented[name] != nil {
			continue
		}
		x := &rented{registers: time.Now().Add(m.sim.between(time.Second, 40*time.Second))}
		switch m.sim.random.IntN(12) {
		case 0:
			x.registers = time.Time{}
			m.sim.truth.seen["machines that never registered"]++
		case 1:
			x.registers = x.registers.Add(time.Minute)
			m.sim.truth.seen["machines that registered too late"]++
		case 2:
			x.less = true
			m.sim.truth.seen["machines with fewer CPUs"]++
		}
		m.rented[name] = x
	}
}

// giveBack removes machines. What runs there ends, which must be nothing.
func (m *machine) giveBack(names []string) {
	for _, name := range names {
		x := m.rented[name]
		if x == nil {
			continue
		}
		delete(m.rented, name)
		delete(m.reboots, name)
		_, wasLost := m.lost[name]
		delete(m.lost, name)
		for _, part := range m.sim.truth.parts() {
			if part.node != name {
				continue
			}
			if !wasLost && !m.isOrphan(part) {
				m.sim.truth.violate("the machine of %s was removed while %s ran there", name, part.run)
			}
			m.endPart(part)
		}
		if !x.up {
			continue
		}
		m.sim.truth.seen["nodes of the pool came and went"]++
		k := objectKey{kind: kindNode, name: name}
		if m.sim.api.objects[k] == nil {
			continue
		}
		if m.sim.chance(2) {
			m.sim.api.remove(k)
		} else {
			m.writeNode(name, false)
		}
	}
}

// poolChoices are the registrations of machines.
func (m *machine) poolChoices(add func(string, func())) {
	for i := m.sim.nodes - m.sim.pool; i < m.sim.nodes; i++ {
		name := nodeName(i)
		x := m.rented[name]
		if x == nil || x.up || x.registers.IsZero() || time.Now().Before(x.registers) {
			continue
		}
		add("node "+name+" registers", func() {
			x.up = true
			n := node(i, true)
			n.Status.NodeInfo.BootID = m.bootID(name)
			if x.less {
				n.Status.Allocatable[corev1.ResourceCPU] = *resource.NewQuantity(1, resource.DecimalSI)
			}
			if old := m.sim.api.objects[keyOf(n)]; old != nil {
				n.UID = old.GetUID()
			}
			m.sim.api.put(n)
		})
	}
}

// awaitedPool reports whether the last attempt of the job had a node of the pool.
func (t *truth) awaitedPool(h *history, b *v1alpha1.BatchJob) bool {
	placed := h.placed[b.Status.Attempt]
	return placed != nil && slices.ContainsFunc(placed.Status.Allocation.Nodes, func(n v1alpha1.NodeAllocation) bool {
		return t.sim.machine.isOfPool(n.Node)
	})
}

// poolDue returns the time until the next machine registers.
func (m *machine) poolDue() time.Duration {
	d := time.Hour
	for _, x := range m.rented {
		if !x.up && !x.registers.IsZero() {
			d = min(d, time.Until(x.registers))
		}
	}
	return d
}

// site is the site's programs for a process.
type site struct{ process *process }

func (s site) request(verb string, nodes []string, perform func([]string)) error {
	what := verb + " " + strings.Join(nodes, ",")
	_, err := s.process.call(context.Background(), http.MethodPost, what, func() (client.Object, error) {
		perform(nodes)
		return nil, nil
	})
	return err
}

// Resume implements power.Provider.
func (s site) Resume(_ context.Context, _ *v1alpha1.NodePool, nodes []string) error {
	return s.request("start", nodes, s.process.sim.machine.rent)
}

// Suspend implements power.Provider.
func (s site) Suspend(_ context.Context, _ *v1alpha1.NodePool, nodes []string) error {
	return s.request("remove", nodes, s.process.sim.machine.giveBack)
}

// Failed implements power.Provider.
func (site) Failed(context.Context, *v1alpha1.NodePool, []string) error { return nil }

// Progress implements power.Provider.
func (site) Progress(context.Context, *v1alpha1.NodePool, []string) (map[string]power.Progress, error) {
	return nil, nil
}

// resumeNodes makes nodes that failed ones that may be requested, as operators do.
func (s *simulation) resumeNodes() {
	k := objectKey{kind: kindNodePool, name: poolName}
	p := copyOf(s.api.objects[k].(*v1alpha1.NodePool)) //nolint:forcetypeassert // of that kind
	for i := range p.Status.Nodes {
		if n := &p.Status.Nodes[i]; n.State == v1alpha1.PoolFailed {
			n.State, n.Retry, n.Reason, n.Failures = v1alpha1.PoolPoweredDown, nil, "", 0
		}
	}
	s.api.put(p)
}
