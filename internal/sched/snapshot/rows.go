package snapshot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/reserve"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

func compareNames(a, b string) int { return hostlist.Compare(a, b) }

// NodeRows describes every node of the pool, by name.
func (v *View) NodeRows() []status.Node {
	rows := make([]status.Node, len(v.nodes))
	used := make([][]backfill.GRES, len(v.nodes))
	for i := range v.nodes {
		rows[i] = v.nodeRow(i)
	}
	for _, r := range v.Running {
		completing := v.jobs[r.ID].Status.State == "COMPLETING"
		for _, h := range r.Allocation {
			rows[h.Node].CPUsAlloc += int32(h.CPUs.Len())
			rows[h.Node].MemAlloc += h.Memory
			used[h.Node] = addGRES(used[h.Node], h.GRES)
			if f := &rows[h.Node].Flags; completing && !slices.Contains(*f, "COMPLETING") {
				*f = append(*f, "COMPLETING")
			}
		}
	}
	for i := range rows {
		rows[i].GRESUsed = gresText(used[i])
		if rows[i].State == "IDLE" {
			rows[i].State = usage(&rows[i])
		}
	}
	inOrder := make([]status.Node, len(rows))
	for i := range rows {
		inOrder[v.Nodes[i].Position] = rows[i]
	}
	return inOrder
}

// MarkReserved says of the nodes, as NodeRows has them, which are in a
// reservation at an instant, Unix seconds.
func (v *View) MarkReserved(rows []status.Node, now int64) {
	for i := range v.AdvanceReservations {
		b := &v.AdvanceReservations[i]
		if now < b.Start || now >= b.End {
			continue
		}
		r := v.reservations[b.Name]
		for n := range v.Nodes {
			if _, some := b.Cores[n]; some || b.Nodes.Has(n) {
				markReserved(&rows[v.Nodes[n].Position], r)
			}
		}
	}
}

func markReserved(row *status.Node, r *v1alpha1.Reservation) {
	if reserve.Flagged(&r.Spec, "MAINT") && !slices.Contains(row.Flags, "MAINTENANCE") {
		row.Flags = append(row.Flags, "MAINTENANCE")
	}
	if !slices.Contains(row.Flags, "RESERVED") {
		row.Flags = append(row.Flags, "RESERVED")
	}
	row.Reservation = v1alpha1.UserName(r.Name, r.Annotations)
}

// usage is the base state of a node that is up.
func usage(n *status.Node) string {
	switch {
	case n.CPUsAlloc == 0:
		return "IDLE"
	case n.CPUsAlloc < n.CPUs:
		return "MIXED"
	}
	return "ALLOCATED"
}

func (v *View) nodeRow(i int) status.Node {
	n, o := &v.Nodes[i], v.nodes[i].object
	threads := max(1, n.ThreadsPerCore)
	sockets := annotated(o, wire.AnnotationSockets, 1)
	row := status.Node{
		Name: n.Name, State: "IDLE",
		CPUs: int32(n.CPUs), Threads: int32(threads), Sockets: int32(sockets),
		Cores:    int32(annotated(o, wire.AnnotationCores, max(1, n.CPUs/threads/sockets))),
		Memory:   n.Memory,
		Weight:   int32(weight(o)),
		TmpDisk:  o.Status.Allocatable.StorageEphemeral().Value() >> 20,
		Features: v.nodes[i].features,
		GRES:     gresText(n.GRES),
		Boot:     o.CreationTimestamp.Unix(),
		Version:  o.Status.NodeInfo.KubeletVersion,
		OS:       strings.TrimSpace(o.Status.NodeInfo.OperatingSystem + " " + o.Status.NodeInfo.KernelVersion),
		Arch:     arch(o.Status.NodeInfo.Architecture),
		Comment:  o.Annotations[wire.AnnotationComment],
		Extra:    unknown(o),
	}
	if o.Name != n.Name {
		row.Object = o.Name
	}
	for _, a := range o.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && row.Address == "" {
			row.Address = a.Address
		}
	}
	for _, p := range v.partitions {
		if p.nodes.Has(i) {
			row.Partitions = append(row.Partitions, p.name)
		}
	}
	switch Unavailable(o) {
	case "DOWN":
		row.State = "DOWN"
	case "UNKNOWN":
		row.State, row.Flags = "DOWN", append(row.Flags, "NOT_RESPONDING")
	case "DRAIN":
		row.Flags = append(row.Flags, "DRAIN")
	}
	row.Reason, row.ReasonBy, row.ReasonAt = reasonOf(o)
	return row
}

// Event is the state in which a node takes no jobs, as accounting keeps it; Node
// is its Kubernetes name. State is empty where it takes some.
func Event(o *corev1.Node) status.AcctEvent {
	e := status.AcctEvent{Node: o.Name}
	switch Unavailable(o) {
	case "DOWN":
		e.State = "DOWN"
	case "UNKNOWN":
		e.State = "DOWN*"
	case "DRAIN":
		e.State = "DRAIN"
	default:
		return e
	}
	e.Reason, e.User, _ = reasonOf(o)
	e.TRES = fmt.Sprintf("billing=%d,cpu=%[1]d,mem=%dM", o.Status.Allocatable.Cpu().Value(), o.Status.Allocatable.Memory().Value()>>20)
	return e
}

// reasonOf splits "text [user@2026-01-02T03:04:05]".
func reasonOf(o *corev1.Node) (text, by string, at int64) {
	text = o.Annotations[wire.AnnotationReason]
	if text == "" && Unavailable(o) == "UNKNOWN" {
		return "Not responding", "", 0
	}
	open := strings.LastIndexByte(text, '[')
	if open < 0 || !strings.HasSuffix(text, "]") {
		return text, "", 0
	}
	who, when, ok := strings.Cut(text[open+1:len(text)-1], "@")
	t, err := time.Parse("2006-01-02T15:04:05", when)
	if !ok || err != nil {
		return text, "", 0
	}
	return strings.TrimSpace(text[:open]), who, t.Unix()
}

// arch names machines as uname(1) does.
func arch(goarch string) string {
	switch goarch {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return goarch
}

// gresText is "gpu:a100:2,fpga:1".
func gresText(l []backfill.GRES) string {
	var out []string
	for _, g := range l {
		s := g.Name
		if g.Type != "" {
			s += ":" + g.Type
		}
		out = append(out, s+":"+strconv.FormatInt(g.Count, 10))
	}
	return strings.Join(out, ",")
}

// restrict adds what else the partition's jobs are bound by.
func restrict(row *status.Partition, s *v1alpha1.PartitionSpec) {
	row.DenyAccounts, row.DenyQOS, row.QOS, row.ReqResv = s.DenyAccounts, s.DenyQOS, s.QOS, s.ReqResv
	row.ExclusiveUser, row.GraceTime, row.MaxCPUs, row.PreemptMode = s.ExclusiveUser, s.GraceTime, s.MaxCPUs, s.PreemptMode
	if s.OverTimeLimit != nil {
		row.OverTimeLimit = *s.OverTimeLimit
	}
	for from, to := range map[*int64]*int64{
		s.DefMemPerCPU: &row.DefMemPerCPU, s.DefMemPerNode: &row.DefMemPerNode, s.MaxMemPerCPU: &row.MaxMemPerCPU, s.MaxMemPerNode: &row.MaxMemPerNode,
	} {
		if from != nil {
			*to = *from
		}
	}
}

// PartitionRows describes every partition, by name.
func (v *View) PartitionRows() []status.Partition {
	out := make([]status.Partition, 0, len(v.partitions))
	for _, p := range v.partitions {
		s := p.spec
		row := status.Partition{
			Name: p.name, Default: s.Default || len(v.partitions) == 1, State: "UP",
			MaxTime: p.maxTime(), DefaultTime: s.DefaultTime,
			MinNodes: s.MinNodes, MaxNodes: s.MaxNodes, OverSubscribe: s.OverSubscribe,
			PriorityTier: max(1, s.PriorityTier), PriorityJobFactor: max(1, s.PriorityJobFactor),
			AllowAccounts: s.AllowAccounts, AllowGroups: s.AllowGroups, AllowQOS: s.AllowQOS,
			Hidden: s.Hidden, RootOnly: s.RootOnly,
		}
		restrict(&row, s)
		if s.State != "" {
			row.State = strings.ToUpper(s.State)
		}
		members := p.nodes.Members()
		slices.SortFunc(members, func(a, b int) int { return v.Nodes[a].Position - v.Nodes[b].Position })
		for _, i := range members {
			row.Nodes = append(row.Nodes, v.Nodes[i].Name)
		}
		out = append(out, row)
	}
	return out
}
