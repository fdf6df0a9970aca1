package acct

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// ledger is what has happened beside jobs and is not written yet. The Recorder's
// lock guards it. Nodes have their Kubernetes names until they are written.
type ledger struct {
	store.Ledger
	cores []map[string]string // by node, of reservations of cores; like Reservations
}

// nodeChanged records the node's new state, if it differs.
func (r *Recorder) nodeChanged(old, now *corev1.Node) {
	if r.NodeEvent == nil {
		return
	}
	var before, after status.AcctEvent
	if old != nil {
		before = r.NodeEvent(old)
		after.Node = before.Node // its state after it was deleted
	}
	if now != nil {
		after = r.NodeEvent(now)
	}
	start := r.Now().Unix()
	appears := old == nil || now == nil // or disappears
	var events []status.AcctEvent
	if appears || before.State != after.State || before.Reason != after.Reason {
		after.Start = start
		events = append(events, after)
	}
	if appears || !sameResources(old, now) {
		events = append(events, status.AcctEvent{Start: start}) // of the cluster; completed when it is written
	}
	if len(events) == 0 {
		return
	}
	r.mu.Lock()
	r.ledger.Events = append(r.ledger.Events, events...)
	r.mu.Unlock()
	r.notify()
}

func sameResources(a, b *corev1.Node) bool {
	return a.Status.Allocatable.Cpu().Equal(*b.Status.Allocatable.Cpu()) &&
		a.Status.Allocatable.Memory().Equal(*b.Status.Allocatable.Memory())
}

// RecordTransactions records changes by sacctmgr.
func (r *Recorder) RecordTransactions(list []status.Transaction) {
	if r.Address == "" || len(list) == 0 {
		return
	}
	r.mu.Lock()
	r.ledger.Transactions = append(r.ledger.Transactions, list...)
	r.mu.Unlock()
	r.notify()
}

// reservationChanged records the change of a reservation.
func (r *Recorder) reservationChanged(old, now *v1alpha1.Reservation) {
	resv := now
	if resv == nil {
		resv = old
	}
	v := store.ReservationVersion{UID: string(resv.UID), At: r.Now().Unix(), Deleted: now == nil}
	v.Row.Start, v.Row.End = change.Span(&resv.Spec)
	v.Row.Name = v1alpha1.UserName(resv.Name, resv.Annotations)
	v.Row.Flags = resv.Spec.Flags
	if names, err := hostlist.Expand(resv.Spec.Nodes); err == nil {
		v.Row.Nodes = names
	}
	r.mu.Lock()
	r.ledger.Reservations = append(r.ledger.Reservations, v)
	r.ledger.cores = append(r.ledger.cores, resv.Spec.Cores)
	r.mu.Unlock()
	r.notify()
}

// clusterEvent returns the event with the cluster's present resources, from a
// time on. names are the nodes' short names.
func (r *Recorder) clusterEvent(start int64, names map[string]string) status.AcctEvent {
	e := status.AcctEvent{Start: start, Reason: store.ReasonRegistered}
	var nodes []string
	var cpus, memory int64
	for _, n := range r.Cluster.Nodes.List() {
		if n.Labels[wire.LabelManaged] == "false" {
			continue
		}
		nodes = append(nodes, names[n.Name])
		cpus += n.Status.Allocatable.Cpu().Value()
		memory += n.Status.Allocatable.Memory().Value() >> 20
	}
	e.Nodes = hostlist.Fold(nodes)
	e.TRES = fmt.Sprintf("billing=%d,cpu=%d,mem=%dM,node=%d", cpus, cpus, memory, len(nodes))
	return e
}

// completeEvents returns the events with the nodes' short names, and with one
// event of the cluster: each would have its present resources, and a thousand
// nodes that appear at once are a thousand events.
func (r *Recorder) completeEvents(events []status.AcctEvent) []status.AcctEvent {
	if len(events) == 0 {
		return nil
	}
	names := r.NodeNames(r.Cluster.Nodes.List())
	out, hasCluster := make([]status.AcctEvent, 0, len(events)), false
	for _, e := range events {
		switch name := names[e.Node]; {
		case e.Node == "" && hasCluster:
			continue
		case e.Node == "":
			e, hasCluster = r.clusterEvent(e.Start, names), true
		case name != "": // else the node has been deleted
			e.Node = name
		}
		out = append(out, e)
	}
	return out
}

// countCPUs sets the TRES of reservations by what their nodes have.
func (r *Recorder) countCPUs(l *ledger) {
	if len(l.Reservations) == 0 || r.NodeNames == nil {
		return
	}
	nodes := r.Cluster.Nodes.List()
	names := r.NodeNames(nodes)
	cpus, threads := make(map[string]int64, len(nodes)), make(map[string]int64, len(nodes))
	for _, n := range nodes {
		name := names[n.Name]
		cpus[name] = n.Status.Allocatable.Cpu().Value()
		threads[name] = max(1, value.Leading(n.Annotations[wire.AnnotationThreads]))
	}
	for i := range l.Reservations {
		row, cores := &l.Reservations[i].Row, l.cores[i]
		sum := int64(0)
		for _, name := range row.Nodes {
			if len(cores) > 0 {
				sum += int64(len(array.Parse(cores[name]))) * threads[name]
			} else {
				sum += cpus[name]
			}
		}
		if sum > 0 {
			row.TRES = "cpu=" + strconv.FormatInt(sum, 10)
		}
	}
}

// writeLedger stores the ledger. If that fails its entries stay in it.
func (r *Recorder) writeLedger(ctx context.Context, s *store.Store) error {
	r.mu.Lock()
	l := r.ledger
	r.ledger = ledger{}
	r.mu.Unlock()
	if l.Empty() {
		return nil
	}
	r.countCPUs(&l)
	err := s.PutLedger(ctx, &store.Ledger{
		Events: r.completeEvents(l.Events), Transactions: l.Transactions, Reservations: l.Reservations,
	})
	if err != nil {
		r.mu.Lock()
		r.ledger.Events = append(l.Events, r.ledger.Events...)
		r.ledger.Transactions = append(l.Transactions, r.ledger.Transactions...)
		r.ledger.Reservations = append(l.Reservations, r.ledger.Reservations...)
		r.ledger.cores = append(l.cores, r.ledger.cores...)
		r.mu.Unlock()
	}
	return err
}

// currentDatabase returns the database after the ledger was written to it, so
// that queries find what has just happened.
func (r *Recorder) currentDatabase(ctx context.Context) (*store.Store, error) {
	s, err := r.database()
	if err != nil || r.ReadOnly {
		return s, err
	}
	return s, r.writeLedger(ctx, s)
}

// Events returns the events that q selects.
func (r *Recorder) Events(ctx context.Context, q *status.EventQuery) ([]status.AcctEvent, error) {
	s, err := r.database()
	if err != nil {
		return nil, err
	}
	return s.Events(ctx, q)
}

// Transactions returns the changes by sacctmgr that q selects.
func (r *Recorder) Transactions(ctx context.Context, q *status.TransactionQuery) ([]status.Transaction, error) {
	s, err := r.currentDatabase(ctx)
	if err != nil {
		return nil, err
	}
	return s.Transactions(ctx, q)
}

// Reservations returns the reservations between start and end, including deleted
// ones, by name and start.
func (r *Recorder) Reservations(ctx context.Context, start, end int64) ([]status.Reservation, error) {
	s, err := r.currentDatabase(ctx)
	if err != nil {
		return nil, err
	}
	return s.Reservations(ctx, start, end)
}
