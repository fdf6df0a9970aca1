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
	"github.com/berth-hpc/berth/internal/wire"
)

// fullCluster is a cluster on which every CPU is taken and a queue waits.
func fullCluster(nodes, pending int) Input {
	rnd := rand.New(rand.NewPCG(1, 2))
	in := Input{Now: time.Unix(1_800_000_000, 0)}
	start := metav1.NewMicroTime(in.Now.Add(-time.Minute))
	for i := range nodes {
		name := fmt.Sprintf("n%d", i+1)
		in.Nodes = append(in.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("4000Mi")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
		j := &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: int64(i + 1), User: "alice"}}
		j.Status = v1alpha1.BatchJobStatus{State: v1alpha1.StateRunning, StartTime: &start, TimeLimit: 10 + rnd.Int32N(1440),
			Allocation: &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: name, Node: name, CPUs: 4, CPUIDs: "0-3"}}}}
		in.Jobs = append(in.Jobs, j)
		in.Pods = append(in.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{wire.LabelJobID: fmt.Sprint(i + 1), wire.LabelAttempt: "0"}},
			Spec: corev1.PodSpec{NodeName: name}})
	}
	submit := metav1.NewMicroTime(in.Now)
	for i := range pending {
		j := &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: int64(nodes + i + 1), User: "bob", SubmitTime: &submit}}
		j.Spec.Job.Name = "j"
		j.Spec.Job.Shape.MinNodes = 1 + rnd.Int32N(8)
		j.Spec.Job.Shape.MaxNodes = j.Spec.Job.Shape.MinNodes
		j.Spec.Job.Time.Limit = 1 + rnd.Int32N(1440)
		in.Jobs = append(in.Jobs, j)
	}
	return in
}

func BenchmarkBuild(b *testing.B) {
	for _, c := range []struct{ nodes, pending int }{{1000, 10000}, {10000, 100000}} {
		in := fullCluster(c.nodes, c.pending)
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", c.nodes, c.pending), func(b *testing.B) {
			for b.Loop() {
				Build(in)
			}
		})
		b.Run(fmt.Sprintf("plan/nodes=%d/pending=%d", c.nodes, c.pending), func(b *testing.B) {
			v := Build(in)
			for b.Loop() {
				v.Plan()
			}
		})
	}
}

// After one event, from objects to who starts: a job ends, another comes, and
// what can start now does. Processor time, garbage collection included, because
// machines are busy; the clock is the other figure.
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

// Whom a job of eight nodes preempts on a full machine, where every running job
// may be; and that events cost no more where jobs preempt others.
func BenchmarkPreempt(b *testing.B) {
	for _, c := range []struct{ nodes, pending int }{{1000, 10000}, {10000, 100000}} {
		in := fullCluster(c.nodes, c.pending)
		in.Parameters.PreemptType, in.Parameters.PreemptMode = "preempt/qos", ModeRequeue
		in.Policy.QOS = []*v1alpha1.QOS{{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Spec: v1alpha1.QOSSpec{Preempt: []string{""}}}, {}}
		last := in.Jobs[len(in.Jobs)-1]
		last.Spec.Job.QOS, last.Spec.Job.Shape.MinNodes, last.Spec.Job.Shape.MaxNodes = "high", 8, 8
		name := fmt.Sprintf("nodes=%d/pending=%d", c.nodes, c.pending)
		e := newEventBench(b, in)
		b.Run("victims/"+name, func(b *testing.B) {
			for b.Loop() {
				if n := len(e.live.Victims(last.Spec.JobID, nil)); n != 8 {
					b.Fatalf("%d victims", n)
				}
			}
		})
		b.Run("event/"+name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				cpu := processorTime()
				e.event(b)
				took = append(took, processorTime()-cpu)
			}
			percentiles(b, took, "cpu-us")
		})
	}
}

// The memory of a view that follows 100,000 waiting jobs on 10,000 nodes, and of
// the objects that it is made of.
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

// After a restart: from the objects of 5,000 nodes, on which 100,000 pods run,
// and of 10,000 waiting jobs to the first decision.
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
		l, ok := NewLive(in, func(int64) []*corev1.Pod { return nil })
		if !ok || len(l.Decide()) != 0 {
			b.Fatal("something starts on a full machine")
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// processorTime is what the process has used so far.
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

// eventBench is a cluster whose jobs end and come.
type eventBench struct {
	live    *Live
	rnd     *rand.Rand
	now     time.Time
	next    int64
	running []*v1alpha1.BatchJob
	model   []*v1alpha1.BatchJob
}

func newEventBench(b *testing.B, in Input) *eventBench {
	e := &eventBench{rnd: rand.New(rand.NewPCG(3, 4)), now: in.Now, next: 10_000_000}
	ok := false
	if e.live, ok = NewLive(in, func(int64) []*corev1.Pod { return nil }); !ok {
		b.Fatal("cannot be followed")
	}
	e.live.until = in.Now.Unix() + 1<<30
	for _, j := range in.Jobs {
		if j.HoldsAllocation() {
			e.running = append(e.running, j)
		} else {
			e.model = append(e.model, j)
		}
	}
	e.live.Decide()
	return e
}

func (e *eventBench) event(b *testing.B) {
	e.now = e.now.Add(time.Second)
	i := e.rnd.IntN(len(e.running))
	over := e.running[i].DeepCopy()
	over.Status.State, over.Status.Allocation = v1alpha1.StateCompleted, nil
	e.running[i] = e.running[len(e.running)-1]
	e.running = e.running[:len(e.running)-1]
	e.next++
	fresh := e.model[e.rnd.IntN(len(e.model))].DeepCopy()
	fresh.Spec.JobID = e.next
	e.follow(b, over, fresh)
	begun := metav1.NewMicroTime(e.now)
	for _, d := range slices.Clone(e.live.Decide()) {
		j := e.live.Job(d.ID).DeepCopy()
		w := e.live.Wanted(d.ID)
		j.Status = v1alpha1.BatchJobStatus{State: v1alpha1.StateRunning, StartTime: &begun, TimeLimit: w.Limit(d), Allocation: e.live.Allocation(d)}
		e.follow(b, j)
		e.running = append(e.running, j)
	}
}

func (e *eventBench) follow(b *testing.B, jobs ...*v1alpha1.BatchJob) {
	changed := map[int64]*v1alpha1.BatchJob{}
	for _, j := range jobs {
		changed[j.Spec.JobID] = j
	}
	if !e.live.Follow(e.now, changed) {
		b.Fatal("not followed")
	}
}
