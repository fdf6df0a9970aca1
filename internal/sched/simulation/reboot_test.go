package simulation

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/sched/power"
	"github.com/berth-hpc/berth/internal/sched/reboot"
	"github.com/berth-hpc/berth/internal/wire"
)

// Operators request reboots of nodes at random. The site's program reboots machines, some of
// which never come back. No machine is rebooted while a job runs there.

// requestReboot requests the reboot of a node, as scontrol reboot does.
func (m *machine) requestReboot() bool {
	name := nodeName(m.sim.random.IntN(m.sim.nodes))
	o, ok := m.sim.api.objects[objectKey{kind: kindNode, name: name}].(*corev1.Node)
	if !ok || m.isLost(name) || o.Annotations[wire.AnnotationReboot] != "" || o.Spec.Unschedulable {
		return false
	}
	n, r := copyOf(o), wire.NodeReboot{}
	if n.Annotations = map[string]string{}; m.sim.chance(2) { // ASAP
		r.Drained, r.NextState = true, wire.RebootResume
		n.Annotations[wire.AnnotationState], n.Spec.Unschedulable = "drain", true
	}
	n.Annotations[wire.AnnotationReboot] = r.String()
	m.sim.api.put(n)
	return true
}

// reboot reboots the machines. What runs there ends, which must be nothing.
func (m *machine) reboot(names []string) {
	for _, name := range names {
		if _, reboots := m.reboots[name]; reboots || m.isLost(name) {
			continue
		}
		for _, part := range m.sim.truth.parts() {
			if part.node != name {
				continue
			}
			if !m.isOrphan(part) {
				m.sim.truth.violate("%s was rebooted while %s ran there", name, part.run)
			}
			m.endPart(part)
		}
		m.sim.truth.seen["nodes that rebooted"]++
		m.reboots[name] = time.Now().Add(m.sim.between(time.Second, 40*time.Second))
		if m.sim.chance(6) {
			m.reboots[name] = time.Time{}
			m.sim.truth.seen["nodes that did not come back"]++
		}
		m.boots[name]++
		m.writeNode(name, false)
	}
}

// rebootChoices are the returns of machines.
func (m *machine) rebootChoices(add func(string, func())) {
	for i := range m.sim.nodes {
		name := nodeName(i)
		if at, reboots := m.reboots[name]; reboots && !at.IsZero() && !time.Now().Before(at) {
			add("node "+name+" has rebooted", func() { m.endReboot(name) })
		}
	}
}

func (m *machine) endReboot(name string) {
	delete(m.reboots, name)
	if m.sim.api.objects[objectKey{kind: kindNode, name: name}] != nil {
		m.writeNode(name, true)
	}
}

// rebootDue returns the time until the next machine returns.
func (m *machine) rebootDue() time.Duration {
	d := time.Hour
	for _, at := range m.reboots {
		if !at.IsZero() {
			d = min(d, max(time.Until(at), time.Millisecond))
		}
	}
	return d
}

// repairNodes makes the machines that have not come back run, and resumes all nodes, as
// operators do.
func (m *machine) repairNodes() {
	for i := range m.sim.nodes {
		name := nodeName(i)
		if _, reboots := m.reboots[name]; reboots {
			m.endReboot(name)
		}
		o, ok := m.sim.api.objects[objectKey{kind: kindNode, name: name}].(*corev1.Node)
		if ok && o.Annotations[wire.AnnotationState] == "down" && o.Annotations[wire.AnnotationReboot] == "" {
			n := copyOf(o)
			n.Annotations, n.Spec.Unschedulable = nil, false
			m.sim.api.put(n)
		}
	}
}

// bootID returns the boot ID of a node.
func (m *machine) bootID(name string) string { return strconv.Itoa(m.boots[name]) }

// Reboot is reboot.Controller.Perform.
func (s site) Reboot(_ context.Context, _ string, nodes []string) error {
	return s.request("reboot", nodes, s.process.sim.machine.reboot)
}

// updateNodes is planner.Planner.UpdatePower.
func updateNodes(
	nodes *power.Controller, reboots *reboot.Controller,
) func(context.Context, func() map[string]time.Time) time.Time {
	return func(ctx context.Context, planned func() map[string]time.Time) time.Time {
		due, again := reboots.Update(ctx), nodes.Update(ctx, planned)
		if due.IsZero() || !again.IsZero() && again.Before(due) {
			return again
		}
		return due
	}
}
