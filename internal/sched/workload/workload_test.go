package workload

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// bench is a Controller of a cluster in memory, which admits pods of the namespace ml.
type bench struct {
	*testing.T
	*Controller
	ids int64
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{T: t}
	c := fake.Cluster(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if o.GetUID() == "" { // as the API server does
			o.SetUID(types.UID(o.GetName()))
		}
		return c.Create(ctx, o, opts...)
	}}, objects...)
	c.NextID = func(ctx context.Context) (int64, error) { b.ids++; return b.ids, nil }
	b.Controller = New(c, func() time.Time { return time.Unix(1000, 0) }, slog.New(slog.DiscardHandler))
	b.gather = 0
	fake.Feed(c, fake.Settings(v1alpha1.ClusterSpec{WorkloadNamespaces: []string{"ml", "user-a"}, Licenses: map[string]int32{"matlab": 2}}),
		fake.Partition("debug", func(p *v1alpha1.PartitionSpec) { p.Default = true }), fake.Partition("gpu", nil),
		fake.Partition("root", func(p *v1alpha1.PartitionSpec) { p.RootOnly = true }), fake.User("a", 1000))
	return b
}

// settle makes the Controller handle everything that is queued.
func (b *bench) settle() {
	b.Helper()
	for b.queue.Len() > 0 {
		key, _ := b.queue.Get()
		if err := b.reconcile(b.Context(), key); err != nil {
			b.Errorf("%s: %v", key, err)
		}
		b.queue.Done(key)
	}
}

// jobs returns the jobs of the queue in the order of their ids.
func (b *bench) jobs() []*v1alpha1.BatchJob {
	list := b.cluster.Jobs.List()
	slices.SortFunc(list, func(x, y *v1alpha1.BatchJob) int { return int(x.Spec.JobID - y.Spec.JobID) })
	return list
}

// events returns the texts of all events.
func (b *bench) events() string {
	b.Helper()
	var list corev1.EventList
	if err := b.cluster.Client.List(b.Context(), &list); err != nil {
		b.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, e.InvolvedObject.Name+": "+e.Message)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func (b *bench) feed(objects ...client.Object) {
	b.Helper()
	fake.Feed(b.cluster, objects...)
	b.settle()
}

func aPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}},
		Spec: corev1.PodSpec{SchedulerName: wire.SchedulerName, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi"), "nvidia.com/gpu": resource.MustParse("2")}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func annotated(pairs ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			p.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func grouped(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[podgroup.PodGroupLabel] = name }
}

func aGroup(name string, least int32, annotations map[string]string) *podgroup.PodGroup {
	return &podgroup.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, Annotations: annotations},
		Spec: podgroup.PodGroupSpec{MinMember: least}}
}

func TestPodBecomesAJob(t *testing.T) {
	b := newBench(t)
	b.feed(aPod("p", annotated("berth.hpc/time-limit", "1:30:00", "berth.hpc/partition", "gpu", "slinky.slurm.net/account", "physics",
		"slurmjob.slinky.slurm.net/timelimit", "7", "berth.hpc/licenses", "matlab:2")))
	if len(b.jobs()) != 1 {
		t.Fatalf("%d jobs; events: %s", len(b.jobs()), b.events())
	}
	o := b.jobs()[0]
	j := &o.Spec.Job
	if o.Namespace != "ml" || o.Spec.JobID != 1 || o.Spec.User != "k8s_ml" || o.Spec.Partition != "gpu" || j.Name != "p" || j.Account != "physics" || j.Time.Limit != 90 {
		t.Errorf("%+v", o.Spec)
	}
	if j.Shape.Tasks != 1 || j.Shape.CPUsPerTask != 2 || *j.Shape.MemPerCPU != 512 ||
		!slices.Equal(j.Shape.GRES, []job.GRES{{Name: "gpu", Count: 2, Per: job.PerTask}}) {
		t.Errorf("%+v", j.Shape)
	}
	if !slices.Equal(j.Licenses, []job.License{{Name: "matlab", Count: 2}}) || j.Batch.Requeue == nil || *j.Batch.Requeue {
		t.Errorf("%+v", j)
	}
	if w := o.Spec.Workload; w.Kind != "Pod" || w.Group != "" || len(w.Pods) != 1 || w.Pods[0].UID != "uid-p" {
		t.Errorf("%+v", w)
	}
	b.feed(aPod("p", func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }))
	if len(b.jobs()) != 1 {
		t.Error("a pod has two jobs")
	}
}

// Users who may write such pods have no effect in the namespaces of users, nor in
// namespaces that are not listed.
func TestOnlyAllowedNamespaces(t *testing.T) {
	b := newBench(t)
	b.feed(aPod("p", func(p *corev1.Pod) { p.Namespace = "elsewhere" }), aPod("q", func(p *corev1.Pod) { p.Namespace = "user-a" }),
		aPod("other", func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }))
	if n := len(b.jobs()); n != 0 {
		t.Errorf("%d jobs", n)
	}
	want := "p: the namespace elsewhere is not among the workloadNamespaces of the Cluster berth\n" +
		"q: pods in the namespace of the user a are created only by Berth; submit a job"
	if got := b.events(); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
	b.feed(fake.Settings(v1alpha1.ClusterSpec{WorkloadNamespaces: []string{"elsewhere"}}))
	if n := len(b.jobs()); n != 1 {
		t.Errorf("%d jobs once the namespace is allowed", n)
	}
}

func TestMalformedAnnotationIsOneEvent(t *testing.T) {
	for _, tt := range []struct{ key, value, want string }{
		{"berth.hpc/time-limit", "soon", `annotation berth.hpc/time-limit="soon": Invalid --time specification`},
		{"slinky.slurm.net/timelimit", "", `annotation slinky.slurm.net/timelimit="": empty`},
		{"slurmjob.slinky.slurm.net/min-nodes", "0", `annotation slurmjob.slinky.slurm.net/min-nodes="0": not a number from 1`},
		{"berth.hpc/exclusive", "perhaps", `annotation berth.hpc/exclusive="perhaps": neither true, false nor user`},
		{"berth.hpc/job-name", "a\nb", `annotation berth.hpc/job-name="a\nb": too long, or not one line`},
		{"berth.hpc/licenses", "matlab:x", `annotation berth.hpc/licenses="matlab:x": Invalid license specification`},
		{"berth.hpc/licenses", "matlab:3", "Invalid license specification"},
		{"berth.hpc/partition", "none", "Invalid partition name specified"},
		{"berth.hpc/partition", "root", "Access/permission denied"},
		{"berth.hpc/reservation", "none", "Requested reservation is invalid"},
	} {
		t.Run(tt.key+"="+tt.value, func(t *testing.T) {
			b := newBench(t)
			b.feed(aPod("p", annotated(tt.key, tt.value)))
			b.feed(aPod("p", annotated(tt.key, tt.value), func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }))
			if n := len(b.jobs()); n != 0 {
				t.Errorf("%d jobs", n)
			}
			if got := b.events(); got != "p: "+tt.want {
				t.Errorf("events %q, want %q", got, tt.want)
			}
			b.feed(aPod("p"))
			if n := len(b.jobs()); n != 1 {
				t.Errorf("%d jobs after the annotation was corrected", n)
			}
		})
	}
}

func TestAnnotationsWithoutEffectAreReported(t *testing.T) {
	b := newBench(t)
	b.feed(aPod("p", annotated("slinky.slurm.net/user-id", "0", "berth.hpc/colour", "red", "slinky.slurm.net/slurm-node", "n1")))
	want := "p: annotation berth.hpc/colour is unknown\n" +
		"p: annotation slinky.slurm.net/user-id has no effect: pods of workloads belong to no user of the cluster"
	if got := b.events(); got != want || len(b.jobs()) != 1 {
		t.Errorf("%d jobs, events\n%s", len(b.jobs()), got)
	}
}

func TestPendingJobFollowsItsPods(t *testing.T) {
	b := newBench(t)
	b.feed(aPod("p", annotated("berth.hpc/time-limit", "5")))
	made, err := b.cluster.EnsureCreated(t.Context(), b.jobs()[0])
	if err != nil {
		t.Fatal(err)
	}
	held := made.DeepCopy()
	held.Spec.Job.Hold = "admin"
	if err := b.cluster.Client.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	b.cluster.ApplyJob(held)
	b.feed(aPod("p", annotated("berth.hpc/time-limit", "9")))
	if j := b.jobs()[0].Spec.Job; j.Time.Limit != 9 || j.Hold != "admin" {
		t.Errorf("limit %d, hold %q", j.Time.Limit, j.Hold)
	}
	b.feed(aPod("p", annotated("berth.hpc/time-limit", "never")))
	if j := b.jobs()[0].Spec.Job; j.Time.Limit != 9 || b.events() == "" {
		t.Errorf("limit %d after a malformed one; events %q", j.Time.Limit, b.events())
	}
}

func TestGroupIsOneJob(t *testing.T) {
	b := newBench(t)
	b.feed(aPod("p1", grouped("g")))
	if n := len(b.jobs()); n != 0 {
		t.Errorf("%d jobs without a PodGroup", n)
	}
	b.feed(aGroup("g", 2, map[string]string{"slurmjob.slinky.slurm.net/timelimit": "5"}))
	if n := len(b.jobs()); n != 0 {
		t.Errorf("%d jobs for half a group", n)
	}
	b.feed(aPod("p2", grouped("g")), aPod("p3", grouped("g")))
	if len(b.jobs()) != 1 {
		t.Fatalf("%d jobs; %s", len(b.jobs()), b.events())
	}
	o := b.jobs()[0]
	if o.Spec.Job.Name != "g" || o.Spec.Job.Time.Limit != 5 || o.Spec.Job.Shape.Tasks != 2 || len(o.Spec.Workload.Pods) != 2 {
		t.Errorf("%+v", o.Spec)
	}
	// One of them is replaced while the group waits.
	b.feed(aPod("p1", grouped("g"), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(999, 0)} }))
	if p := b.jobs()[0].Spec.Workload.Pods; len(b.jobs()) != 1 || p[0].UID != "uid-p2" || p[1].UID != "uid-p3" {
		t.Errorf("members %+v of %d jobs", p, len(b.jobs()))
	}
	// Pods beyond the gang are jobs of their own after the gang was placed.
	placed := b.jobs()[0].DeepCopy()
	placed.Status.State, placed.Status.Allocation = v1alpha1.StateRunning, &v1alpha1.Allocation{}
	if err := b.cluster.Client.Status().Update(t.Context(), placed); err != nil {
		t.Fatal(err)
	}
	b.cluster.ApplyJob(placed)
	b.feed(aPod("p4", grouped("g")))
	if o := b.jobs(); len(o) != 2 || len(o[1].Spec.Workload.Pods) != 1 || o[1].Spec.Workload.Pods[0].UID != "uid-p4" || o[1].Spec.Job.Time.Limit != 5 {
		t.Errorf("%d jobs", len(o))
	}
}

func TestGroupOfLeaderWorkerSetIsOneJob(t *testing.T) {
	b := newBench(t)
	member := func(index int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Labels[control.LabelLWS], p.Labels[control.LabelLWSGroup], p.Labels[control.LabelLWSIndex] = "llm", "3", fmt.Sprint(index)
			p.Annotations = map[string]string{lwsSize: "3"}
		}
	}
	b.feed(aPod("a", member(2)), aPod("b", member(0)))
	if n := len(b.jobs()); n != 0 {
		t.Errorf("%d jobs for two of three", n)
	}
	b.feed(aPod("c", member(1)))
	if o := b.jobs(); len(o) != 1 || o[0].Spec.Workload.Kind != "LeaderWorkerSet" || o[0].Spec.Job.Name != "llm-3" ||
		o[0].Spec.Workload.Pods[0].Name != "b" || o[0].Spec.Workload.Pods[2].Name != "a" {
		t.Errorf("%+v", o)
	}
}

// Annotations of the controllers of a pod count; those of the nearest one come first.
func TestAnnotationsOfControllersCount(t *testing.T) {
	yes := true
	replicas := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "web-1", UID: "rs", Annotations: map[string]string{"berth.hpc/time-limit": "11"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d", Controller: &yes}}}}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "web", UID: "d", Annotations: map[string]string{
			"berth.hpc/time-limit": "12", "slinky.slurm.net/qos": "high"}}}
	b := newBench(t, replicas, deployment)
	b.feed(aPod("p", func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "rs", Controller: &yes}}
	}))
	if o := b.jobs(); len(o) != 1 || o[0].Spec.Job.Time.Limit != 11 || o[0].Spec.Job.QOS != "high" {
		t.Errorf("%+v; %s", o, b.events())
	}
}
