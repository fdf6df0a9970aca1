package clusterview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/reserve"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/gres"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
	"github.com/berth-hpc/berth/internal/sched/pools"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// Nodes returns a row for every node of the pool, ordered by name. What completing
// jobs hold is shown as free, as Slurm shows it: only the flag COMPLETING says why the
// next job still waits.
func Nodes(s *snapshot.Snapshot) []status.Node {
	rows := make([]status.Node, len(s.Nodes))
	used := make([][]backfill.GRES, len(s.Nodes))
	devices := make([]devicesByKind, len(s.Nodes))
	for i := range s.Nodes {
		rows[i] = nodeRow(s, i)
	}
	for _, r := range s.Running {
		b := s.Job(r.ID)
		completing := b.Status.State == v1alpha1.StateCompleting
		for _, a := range r.Allocation {
			row := &rows[a.Node]
			if completing {
				addFlag(row, "COMPLETING")
				continue
			}
			row.CPUsAlloc += int32(a.CPUs.Len())
			row.MemAlloc += a.Memory
			used[a.Node] = gres.Add(used[a.Node], a.GRES)
			if len(a.GRES) > 0 {
				devices[a.Node] = devices[a.Node].with(b, s.Nodes[a.Node].Name)
			}
		}
	}
	byName := make([]status.Node, len(rows))
	for i := range rows {
		rows[i].GRESUsed = formatGRES(used[i])
		rows[i].GRESDevices = devices[i].format(used[i])
		if rows[i].State == "IDLE" {
			rows[i].State = allocationState(&rows[i])
		}
		byName[s.Nodes[i].Position] = rows[i]
	}
	return byName
}

func addFlag(row *status.Node, flag string) {
	if !slices.Contains(row.Flags, flag) {
		row.Flags = append(row.Flags, flag)
	}
}

// MarkReserved marks the rows of the nodes that are in a reservation at the instant,
// in Unix seconds. rows are those that Nodes returned.
func MarkReserved(s *snapshot.Snapshot, rows []status.Node, now int64) {
	for i := range s.AdvanceReservations {
		r := &s.AdvanceReservations[i]
		object := s.Reservation(r.Name)
		if object == nil || now < r.Start || now >= r.End {
			continue // without an object it is a node whose kubelet refused pods
		}
		for n := range s.Nodes {
			if _, cores := r.Cores[n]; cores || r.Nodes.Has(n) {
				markReserved(&rows[s.Nodes[n].Position], object)
			}
		}
	}
}

func markReserved(row *status.Node, r *v1alpha1.Reservation) {
	if reserve.Flagged(&r.Spec, "MAINT") {
		addFlag(row, "MAINTENANCE")
	}
	addFlag(row, "RESERVED")
	row.Reservation = v1alpha1.UserName(r.Name, r.Annotations)
}

// MarkPlanned marks the rows of idle nodes on which a pending job will start after
// now. starts holds the latest planned start on each node, by short name.
func MarkPlanned(rows []status.Node, starts map[string]time.Time, now time.Time) {
	for i := range rows {
		start, planned := starts[rows[i].Name]
		if planned && start.After(now) && rows[i].State == "IDLE" && !slices.Contains(rows[i].Flags, "DRAIN") {
			rows[i].Flags = append(rows[i].Flags, "PLANNED")
		}
	}
}

// allocationState returns the base state of a node that is up.
func allocationState(n *status.Node) string {
	switch {
	case n.CPUsAlloc == 0:
		return "IDLE"
	case n.CPUsAlloc < n.CPUs:
		return "MIXED"
	}
	return "ALLOCATED"
}

// extra returns the text of an operator, or else the name of the node's object if users know it
// by another name, and what Berth says about its hardware.
func extra(o *corev1.Node, name string) string {
	if text := o.Annotations[wire.AnnotationExtra]; text != "" {
		return text
	}
	object := ""
	if o.Name != name {
		object = "Kubernetes node " + o.Name
	}
	parts := []string{object, nodeinfo.CoresOfJobs(o), nodeinfo.AssumedHardware(o)}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

func nodeRow(s *snapshot.Snapshot, i int) status.Node {
	n, o := &s.Nodes[i], s.NodeObject(i)
	threads, sockets := max(1, n.ThreadsPerCore), nodeinfo.Sockets(o)
	info := &o.Status.NodeInfo
	row := status.Node{
		Name: n.Name, State: "IDLE",
		CPUs: int32(n.CPUs), Threads: int32(threads), Sockets: int32(sockets),
		Cores:    int32(nodeinfo.CoresPerSocket(o, max(1, n.CPUs/threads/sockets))),
		Memory:   n.Memory,
		Weight:   int32(nodeinfo.Weight(o)),
		TmpDisk:  nodeinfo.TmpDisk(o),
		Features: s.NodeFeatures(i),
		GRES:     formatGRES(n.GRES),
		Boot:     o.CreationTimestamp.Unix(),
		Port:     o.Status.DaemonEndpoints.KubeletEndpoint.Port,
		OS:       strings.TrimSpace(systemName(info.OperatingSystem) + " " + info.KernelVersion),
		Arch:     machine(info.Architecture),
		Comment:  o.Annotations[wire.AnnotationComment],
		Extra:    extra(o, n.Name),
		CPUBind:  o.Annotations[wire.AnnotationCPUBind],
		// As in Slurm without NodeAddr in slurm.conf. Jobs reach each other by this name; at
		// the address of the Node object, which is the kubelet's, no job listens.
		Address: n.Name,
	}
	row.Load, row.FreeMem = nodeinfo.Load(o)
	if o.Name != n.Name {
		row.Object = o.Name
	}
	for _, p := range s.Partitions() {
		if p.Nodes.Has(i) {
			row.Partitions = append(row.Partitions, p.Name)
		}
	}
	addPower(&row, s.NodePower(i))
	switch nodeinfo.Unavailable(o) {
	case nodeinfo.Down:
		row.State = "DOWN"
	case nodeinfo.Unknown:
		row.Flags = append(row.Flags, "NOT_RESPONDING")
		if !nodeinfo.IsUnreachable(o) || nodeinfo.IsLost(o, s.Parameters().NodeTimeout(), time.Unix(s.Time(), 0)) {
			row.State = "DOWN"
		}
	case nodeinfo.Drain:
		row.Flags = append(row.Flags, "DRAIN")
	}
	addReboot(&row, wire.ParseNodeReboot(o.Annotations))
	if row.State == "DOWN" || nodeinfo.Unavailable(o) != nodeinfo.Unknown {
		row.Reason, row.ReasonBy, row.ReasonAt = nodeinfo.Reason(o)
	}
	if p := s.NodePower(i); p != nil && row.Reason == "" {
		row.Reason = p.Trouble(o)
	}
	row.DeviceTrouble = s.DeviceTrouble(i)
	row.Reason = cmp.Or(row.Reason, row.DeviceTrouble)
	return row
}

// addReboot adds the flags of a node whose reboot is requested; r may be nil.
func addReboot(row *status.Node, r *wire.NodeReboot) {
	switch {
	case r == nil:
		return
	case r.Issued == nil:
		addFlag(row, "REBOOT_REQUESTED")
	default:
		if r.Drained || r.State == "drain" || r.Cordoned && r.State == "" {
			addFlag(row, "DRAIN")
		}
		addFlag(row, "REBOOT_ISSUED")
	}
	row.NextState = r.NextState
}

// addPower adds the flags of a node of a pool to its row.
func addPower(row *status.Node, p *pools.Power) {
	if p == nil {
		return
	}
	row.Flags = append(row.Flags, "CLOUD")
	if p.PowerDown {
		row.Flags = append(row.Flags, "POWER_DOWN")
	}
	switch p.State {
	case v1alpha1.PoolPoweringUp:
		row.Flags = append(row.Flags, "POWERING_UP")
	case v1alpha1.PoolPoweringDown:
		row.Flags = append(row.Flags, "POWERING_DOWN")
	case v1alpha1.PoolPoweredDown, v1alpha1.PoolFailed:
		row.Flags = append(row.Flags, "POWERED_DOWN")
	}
	if p.State != v1alpha1.PoolRunning {
		row.Boot = 0
	}
}

// NodeEvent returns the accounting event of a node on which no job may start; its
// Node is the Kubernetes name. State is empty if jobs may start there.
func NodeEvent(o *corev1.Node) status.AcctEvent {
	e := status.AcctEvent{Node: o.Name}
	switch nodeinfo.Unavailable(o) {
	case nodeinfo.Down:
		e.State = "DOWN"
	case nodeinfo.Unknown:
		e.State = "DOWN*"
	case nodeinfo.Drain:
		e.State = "DRAIN"
	default:
		return e
	}
	e.Reason, e.User, _ = nodeinfo.Reason(o)
	allocatable := o.Status.Allocatable
	e.TRES = fmt.Sprintf("billing=%d,cpu=%[1]d,mem=%dM", allocatable.Cpu().Value(), allocatable.Memory().Value()>>20)
	return e
}

// systemName returns the name that uname(1) has for a system of Go.
func systemName(goos string) string {
	if goos == "" {
		return ""
	}
	return strings.ToUpper(goos[:1]) + goos[1:]
}

// machine returns the name that uname(1) has for a processor architecture of Go.
func machine(goarch string) string {
	switch goarch {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return goarch
}

// formatGRES formats generic resources as "gpu:a100:2,fpga:1".
func formatGRES(list []backfill.GRES) string {
	var out []string
	for _, g := range list {
		s := g.Name
		if g.Type != "" {
			s += ":" + g.Type
		}
		out = append(out, s+":"+strconv.FormatInt(g.Count, 10))
	}
	return strings.Join(out, ",")
}
