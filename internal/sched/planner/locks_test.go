package planner

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/starter"
)

// fullCluster returns a cluster whose CPUs are all allocated, with pending jobs.
func fullCluster(nodes, pending int) *control.Cluster {
	c := fake.Cluster(
		interceptor.Funcs{
			SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
				return nil
			},
		},
	)
	rnd, start := rand.New(rand.NewPCG(1, 2)), metav1.NewMicroTime(time.Now())
	fake.Feed(c, fake.Partition("debug", func(p *v1alpha1.PartitionSpec) { p.Default, p.Nodes = true, "ALL" }))
	for i := range nodes {
		n := aNode()
		n.Name = fmt.Sprintf("n%d", i)
		j := &v1alpha1.BatchJob{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("r-%d", i)},
			Spec:       v1alpha1.BatchJobSpec{JobID: int64(i + 1), User: "a"},
		}
		j.Status = v1alpha1.BatchJobStatus{
			State:     v1alpha1.StateRunning,
			StartTime: &start,
			TimeLimit: 10 + rnd.Int32N(1440),
			Allocation: &v1alpha1.Allocation{
				Nodes: []v1alpha1.NodeAllocation{{Name: n.Name, Node: n.Name, CPUs: 4, CPUIDs: "0-3"}},
			},
		}
		fake.Feed(c, n, j)
	}
	for i := range pending {
		fake.Feed(c, waitingJob(int64(nodes+i+1), 1+rnd.Int32N(8), 1+rnd.Int32N(1440)))
	}
	return c
}

func waitingJob(id int64, nodes, limit int32) *v1alpha1.BatchJob {
	j := &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("j-%d", id)},
		Spec:       v1alpha1.BatchJobSpec{JobID: id, User: "b", Partition: "debug"},
	}
	j.Spec.Job.Shape.MinNodes, j.Spec.Job.Shape.MaxNodes, j.Spec.Job.Time.Limit = nodes, nodes, limit
	return j
}

// BenchmarkLocks measures how long other callers wait for locks at most while 100,000 jobs are
// planned on 10,000 nodes: callers that read and write jobs and nodes, and that query the plan
// and the feasibility of a job. It reports wall-clock times, the least of several tries, because
// other processes may use the processor.
func BenchmarkLocks(b *testing.B) {
	c := fullCluster(10000, 100000)
	p := New(c, starter.New(c, nil, time.Now), time.Now, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(ctx) })
	for !p.HasPlan() {
		time.Sleep(time.Millisecond)
	}
	next := int64(1_000_000)
	ask := map[string]func(){
		"read":     func() { c.Job(20000) },
		"planned":  func() { p.Planned(20000) },
		"feasible": func() { _ = p.Feasible(waitingJob(1, 3, 10)) },
		"node":     func() { fake.Feed(c, aNode()) },
		"submit": func() {
			next++
			fake.Feed(c, waitingJob(next, 2, 60))
		},
	}
	least := map[string]time.Duration{}
	for b.Loop() {
		for what, d := range longestWaits(ask) {
			if was, known := least[what]; !known || d < was {
				least[what] = d
			}
		}
	}
	cancel()
	wg.Wait()
	for what, d := range least {
		b.ReportMetric(float64(d.Microseconds()), what+"-us")
	}
	b.ReportMetric(float64(p.Stats().Cycles), "plans")
}

// longestWaits repeats each call for three seconds and returns the longest time of each.
func longestWaits(ask map[string]func()) map[string]time.Duration {
	var wg sync.WaitGroup
	var mu sync.Mutex
	out := map[string]time.Duration{}
	over := atomic.Bool{}
	time.AfterFunc(3*time.Second, func() { over.Store(true) })
	for what, do := range ask {
		wg.Go(func() {
			longest := time.Duration(0)
			for !over.Load() {
				began := time.Now()
				do()
				longest = max(longest, time.Since(began))
				time.Sleep(5 * time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			out[what] = longest
		})
	}
	wg.Wait()
	return out
}
