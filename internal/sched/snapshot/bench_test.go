package snapshot

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/internal/wire"
)

// fullCluster returns the input of a cluster that is full.
func fullCluster(nodes, pending int) Input {
	c := schedtest.NewFullCluster(nodes, pending)
	return Input{Now: c.Now, Nodes: c.Nodes, Pods: c.Pods, Jobs: c.Jobs}
}

func BenchmarkNew(b *testing.B) {
	for _, c := range []struct{ nodes, pending int }{{1000, 10000}, {10000, 100000}} {
		in := fullCluster(c.nodes, c.pending)
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", c.nodes, c.pending), func(b *testing.B) {
			for b.Loop() {
				New(in)
			}
		})
		b.Run(fmt.Sprintf("plan/nodes=%d/pending=%d", c.nodes, c.pending), func(b *testing.B) {
			s := New(in)
			for b.Loop() {
				s.Plan()
			}
		})
	}
}

// BenchmarkFollow measures one event, from the objects to the decisions: a job ends,
// another is submitted, and jobs that can start now start. The first figure is
// processor time, including garbage collection, because machines are busy; the
// second is elapsed time.
func BenchmarkFollow(b *testing.B) {
	for _, c := range []struct{ nodes, pending int }{{1000, 10000}, {10000, 100000}} {
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", c.nodes, c.pending), func(b *testing.B) {
			e := newEventBench(b, fullCluster(c.nodes, c.pending))
			var took, waited []time.Duration
			for b.Loop() {
				cpu, began := processorTime(), time.Now()
				e.event(b)
				took, waited = append(took, processorTime()-cpu), append(waited, time.Since(began))
			}
			percentiles(b, took, "cpu-us")
			percentiles(b, waited, "us")
		})
	}
}

// BenchmarkFollowMemory measures the memory of an Incremental of 100,000 pending jobs
// and 10,000 nodes, and of the objects that it is made from.
func BenchmarkFollowMemory(b *testing.B) {
	for b.Loop() {
		before := heap()
		in := fullCluster(10000, 100000)
		objects := heap()
		e := newEventBench(b, in)
		b.ReportMetric(float64(objects-before)/(1<<20), "objects-MiB")
		b.ReportMetric(float64(heap()-objects)/(1<<20), "view-MiB")
		runtime.KeepAlive(e)
		runtime.KeepAlive(in)
	}
}

// BenchmarkFirstDecision measures a restart: from the objects of 5,000 nodes, 100,000
// running pods and 10,000 pending jobs to the first decision.
func BenchmarkFirstDecision(b *testing.B) {
	in := fullCluster(5000, 10000)
	running, pods := in.Jobs[:5000], in.Pods
	for i := range 5000 {
		in.Nodes[i].Status.Allocatable["cpu"] = resource.MustParse("20")
		for k := 1; k < 20; k++ {
			j, p := running[i].DeepCopy(), pods[i].DeepCopy()
			j.Spec.JobID = int64(1_000_000 + 20*i + k)
			j.Status.Allocation.Nodes[0].CPUs, j.Status.Allocation.Nodes[0].CPUIDs = 1, fmt.Sprint(k)
			p.Labels[wire.LabelJobID] = fmt.Sprint(j.Spec.JobID)
			in.Jobs, in.Pods = append(in.Jobs, j), append(in.Pods, p)
		}
		running[i].Status.Allocation.Nodes[0].CPUs, running[i].Status.Allocation.Nodes[0].CPUIDs = 1, "0"
	}
	for b.Loop() {
		x, ok := NewIncremental(in, func(int64) []*corev1.Pod { return nil })
		if !ok || len(x.Decide()) != 0 {
			b.Fatal("a job starts in a full cluster")
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// processorTime returns the processor time that the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func percentiles(b *testing.B, took []time.Duration, unit string) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-"+unit)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-"+unit)
}

// eventBench is a cluster in which jobs end and are submitted.
type eventBench struct {
	incremental *Incremental
	rnd         *rand.Rand
	now         time.Time
	next        int64
	running     []*v1alpha1.BatchJob
	templates   []*v1alpha1.BatchJob
}

func newEventBench(b *testing.B, in Input) *eventBench {
	e := &eventBench{rnd: rand.New(rand.NewPCG(3, 4)), now: in.Now, next: 10_000_000}
	ok := false
	if e.incremental, ok = NewIncremental(in, func(int64) []*corev1.Pod { return nil }); !ok {
		b.Fatal("the cluster cannot be followed")
	}
	e.incremental.expires = in.Now.Unix() + 1<<30
	for _, j := range in.Jobs {
		if j.HoldsAllocation() {
			e.running = append(e.running, j)
		} else {
			e.templates = append(e.templates, j)
		}
	}
	e.incremental.Decide()
	return e
}

func (e *eventBench) event(b *testing.B) {
	e.now = e.now.Add(time.Second)
	i := e.rnd.IntN(len(e.running))
	ended := e.running[i].DeepCopy()
	ended.Status.State, ended.Status.Allocation = v1alpha1.StateCompleted, nil
	e.running[i] = e.running[len(e.running)-1]
	e.running = e.running[:len(e.running)-1]
	e.next++
	submitted := e.templates[e.rnd.IntN(len(e.templates))].DeepCopy()
	submitted.Spec.JobID = e.next
	e.follow(b, ended, submitted)
	start := metav1.NewMicroTime(e.now)
	decisions := slices.Clone(e.incremental.Decide())
	allocator := e.incremental.NewAllocator()
	for _, d := range decisions {
		j := e.incremental.Job(d.ID).DeepCopy()
		info := e.incremental.Info(d.ID)
		j.Status = v1alpha1.BatchJobStatus{
			State:      v1alpha1.StateRunning,
			StartTime:  &start,
			TimeLimit:  info.TimeLimitOf(d),
			Allocation: allocator.Allocation(d),
		}
		e.follow(b, j)
		e.running = append(e.running, j)
	}
}

func (e *eventBench) follow(b *testing.B, jobs ...*v1alpha1.BatchJob) {
	changed := map[int64]*v1alpha1.BatchJob{}
	for _, j := range jobs {
		changed[j.Spec.JobID] = j
	}
	if !e.incremental.Follow(e.now, changed) {
		b.Fatal("the event was not followed")
	}
}
