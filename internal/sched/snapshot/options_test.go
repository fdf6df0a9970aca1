package snapshot

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/option"
)

// rack puts a node below a switch.
func rack(path string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[wire.LabelTopology] = path }
}

// cores gives a node sockets and threads, eight CPUs in all.
func cores(sockets, threads int) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("8")
		n.Annotations[wire.AnnotationSockets] = fmt.Sprint(sockets)
		n.Annotations[wire.AnnotationThreads] = fmt.Sprint(threads)
	}
}

// disk sets the size of the local disk that a node's kubelet reports.
func disk(size string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceEphemeralStorage] = resource.MustParse(size) }
}

// optionNodes are six nodes: two fast ones, one of them red, two below one
// switch with them, one of two sockets, and one with two threads in a core.
func optionNodes() []*corev1.Node {
	return []*corev1.Node{
		schedtest.Node("n1", schedtest.Feature("fast"), rack("a.1")),
		schedtest.Node("n2", schedtest.Feature("fast"), schedtest.Feature("red"), rack("a.2")),
		schedtest.Node("n3", rack("a.2"), disk("10Gi")),
		schedtest.Node("n4", rack("b.1"), disk("20Gi")),
		schedtest.Node("n5", rack("b.2"), cores(2, 1)),
		schedtest.Node("n6", rack("b.2"), cores(2, 2)),
	}
}

// parsed is the job that sbatch makes of a command line.
func parsed(t *testing.T, id int64, line string) *v1alpha1.BatchJob {
	t.Helper()
	p, err := option.Parse(option.Sbatch, append(strings.Fields(line), "job.sh"), nil)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if err := p.Verify(); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	submit := metav1.NewMicroTime(schedtest.Now)
	return schedtest.Job(id, func(b *v1alpha1.BatchJob) {
		b.Spec.User, b.Spec.SubmitTime, b.Spec.Job = fmt.Sprintf("user%d", id%2), &submit, p.Job
	})
}

// planned shows the plan of the last of the jobs.
func planned(s *Snapshot) string {
	all := s.Plan().Decisions
	d := all[len(all)-1]
	var out []string
	switch {
	case d.StartNow:
	case d.Start == 0:
		out = append(out, "waits:")
	default:
		out = append(out, fmt.Sprintf("in %d s:", d.Start-s.Now))
	}
	for _, a := range d.Nodes {
		out = append(out, fmt.Sprintf("%s/%d:%s", s.Nodes[a.Node].Name, a.Tasks, a.CPUs))
	}
	if w := s.Info(d.ID); d.StartNow && d.Duration != backfill.Forever {
		out = append(out, fmt.Sprintf("for %d min", w.TimeLimitOf(d)))
	}
	if d.Reason != "" {
		out = append(out, d.Reason)
	}
	return strings.Join(out, " ")
}

// Options of sbatch, seen in the plan. The line before the last is a job that
// runs already or has priority.
func TestOptionsInThePlan(t *testing.T) {
	for _, c := range []struct{ before, line, want string }{
		{"", "--tmp=15G -x n1,n2,n5,n6", "n4/1:0"},
		{"", "--tmp=5G -x n1,n2,n5,n6 -N2", "n3/1:0 n4/1:0"},
		{"", "--tmp=15G -w n3", "waits: BadConstraints"},
		{"", "--tmp=99G -w n5", "n5/1:0"}, // it does not say
		{"", "-C fast*1 -N2", "n1/1:0 n2/1:0"},
		{"", "-C [fast|red] -N1 -x n1,n2", "waits: BadConstraints"},
		{"", "-C [red|fast] -N2", "n1/1:0 n2/1:0"},
		{"", "-C (fast&red)|fast -w n2", "n2/1:0"},
		{"", "--prefer=red", "n2/1:0"},
		{"-w n2 --exclusive", "--prefer=red", "n1/1:0"},
		{"-w n2 --exclusive", "--contiguous -N3", "n3/1:0 n4/1:0 n5/1:0"},
		{"", "-N2", "n2/1:0 n3/1:0"},
		{"-w n2 --exclusive -t 1", "-N2 --switches=1 -x n5,n6", "in 60 s: n2/1: n3/1: Resources"},
		{"-w n2 --exclusive -t 10", "-N2 --switches=1@2 -x n5,n6 -t 5", "in 120 s: n1/1: n3/1: Resources"},
		// Blocks: n1; n2 n3; n4; n5 n6.
		{"", "-N2 --segment=1", "n1/1:0 n4/1:0"},
		{"", "-N2 --segment=1 --consolidate-segments", "n2/1:0 n3/1:0"},
		{"", "-N4 --segment=2 -w n6", "n2/1:0 n3/1:0 n5/1:0 n6/1:0-1"},
		{"", "-N2 --segment=2 -w n6", "n5/1:0 n6/1:0-1"},
		{"-w n2 --exclusive -t 1", "-N4 --segment=2", "in 60 s: n2/1: n3/1: n5/1: n6/1: Resources"},
		{"", "-N2 --segment=1 --spread-segments -x n1,n4", "n2/1:0 n5/1:0"},
		{"", "-N3 --segment=3", "waits: BadConstraints"},
		{"", "-N1-5 --segment=2", "n2/1:0 n3/1:0 n5/1:0 n6/1:0-1"},
		{"", "-N2 -n12 --segment=2", "n5/8:0-7 n6/4:0-1,4-5"},
		{"", "--sockets-per-node=2", "n5/1:0"},
		{"", "--cores-per-socket=5", "waits: BadConstraints"},
		{"", "--threads-per-core=2", "n6/1:0-1"},
		{"", "-B 2:2:2", "n6/8:0-7"},
		{"", "-w n5 -n2 -m block:block", "n5/2:0-1"},
		{"", "-w n5 -n2", "n5/2:0,4"},
		{"", "-w n5 -n4 --ntasks-per-socket=2 -m block:block", "n5/4:0-1,4-5"},
		{"", "-w n6 -n2 --ntasks-per-core=1", "n6/2:0-1,4-5"},
		{"", "-w n6 -n2 --hint=nomultithread", "n6/2:0-1,4-5"},
		{"", "-w n6 -n2 -m block:block --hint=memory_bound", "n6/2:0-1,4-5"},
		{"", "-n5 --spread-job -N1-4 -x n5,n6", "n1/2:0-1 n2/1:0 n3/1:0 n4/1:0"},
		{"", "-N1-4 -n5 --use-min-nodes -x n5,n6", "n2/4:0-3 n3/1:0"},
		{"-w n1 --exclusive=user", "-w n1", "waits: Resources"},
		{"-w n1 -n1", "-w n1 --exclusive=user", "waits: Resources"},
	} {
		jobs := []*v1alpha1.BatchJob{}
		if c.before != "" {
			jobs = append(jobs, parsed(t, 2, c.before))
		}
		jobs = append(jobs, parsed(t, 3, c.line))
		s := New(Input{Now: schedtest.Now, Nodes: optionNodes(), Jobs: jobs, Partitions: schedtest.Partitions()})
		if got := planned(s); got != c.want {
			t.Errorf("%q after %q: %s, want %s", c.line, c.before, got, c.want)
		}
	}
}

// TestSizesInThePlan: how many nodes, tasks, CPUs, bytes and GPUs are requested,
// depending on the nodes with room. Three nodes of four CPUs and 4000 MB, of which n1
// has two GPUs, n2 two of a type, and n3 none.
func TestSizesInThePlan(t *testing.T) {
	for _, c := range []struct{ before, line, want string }{
		{"", "--nodes=2", "n1/1:0 n2/1:0"},
		{"", "--ntasks=5", "n1/4:0-3 n2/1:0"},
		{"", "-N2 --ntasks=5", "n1/4:0-3 n2/1:0"},
		{"", "-N2 -n6", "n1/4:0-3 n2/2:0-1"},
		{"", "--ntasks=13", "waits: BadConstraints"},
		{"", "-N2 --ntasks-per-node=2", "n1/2:0-1 n2/2:0-1"},
		{"", "-n2 --cpus-per-task=3", "n1/1:0-2 n2/1:0-2"},
		{"", "--cpus-per-task=5", "waits: BadConstraints"},
		{"", "--overcommit -n9 -N1", "n1/9:0"},
		{"", "--mem=3G", "n1/1:0"},
		{"", "--mem=4001M", "waits: BadConstraints"},
		{"", "-n2 --mem-per-cpu=2G", "n1/1:0 n2/1:0"},
		{"", "-n2 --mem-per-cpu=1G", "n1/2:0-1"},
		{"", "--gres=gpu:2", "n1/1:0"},
		{"", "--gres=gpu:3", "waits: BadConstraints"},
		{"", "--gpus=2", "n1/1:0"},
		{"", "--gpus=2 --mem-per-gpu=2000M", "n1/1:0"},
		{"", "--gpus=a100:2", "n2/1:0"},
		{"", "--gpus-per-node=2 -N2", "n1/1:0 n2/1:0"},
		{"", "--gpus-per-node=1 -N3", "waits: BadConstraints"},
		{"", "-n2 --gpus-per-task=1", "n1/2:0-1"},
		{"", "-n2 --gpus-per-task=2", "n1/1:0 n2/1:0"},
		{"", "--gpus-per-socket=2 --sockets-per-node=1", "n1/1:0"},
		{"", "-n2 --tres-per-task=cpu=2,gres/gpu=1", "n1/2:0-3"},
		{"", "--gpus=2 --cpus-per-gpu=2", "n1/1:0-3"},
		{"", "--gpus=1 --cpus-per-gpu=5", "waits: BadConstraints"},
		{"", "--gpus=3", "n1/1:0 n2/1:0"},
		{"", "--gpus=2 --cpus-per-gpu=3", "n1/1:0-2 n2/1:0-2"},
		{"", "--gpus=2 --mem-per-gpu=2500M", "n1/1:0 n2/1:0"},
		{"", "--gpus=3 -N1", "waits: BadConstraints"},
		{"", "-N1 -n2 --gres=gpu:2 --gpus-per-task=1", "n1/2:0-1"},
		{"", "--gres=gpu:2,gpu:2", "n1/1:0"},
		{"", "-N1 --gpus-per-node=1 --gres=gpu:2", "n1/1:0"},
		{"", "-N1 --gpus-per-node=2 --gpus=2", "n1/1:0"},
		{"", "--gpus-per-node=2 --gpus=4", "n1/1:0 n2/1:0"},
		{"", "--gpus=2 --gpus-per-task=1", "n1/2:0-1"},
		{"", "-n2 --gpus=2 --gpus-per-task=1", "n1/2:0-1"},
		{"", "--gres=gpu:1,craynetwork:0", "n1/1:0"},
		{"", "--mem-per-cpu=0", "n1/1:0"},
		{"-w n1 --mem=1", "--mem-per-cpu=0", "n2/1:0"},
		{"", "--gpus=5", "waits: BadConstraints"},
		{"-w n1 -n3", "--mincpus=2", "n2/1:0-1"},
		{"-w n1 --mem=3G", "--mem=3G", "n2/1:0"},
		{"-w n1 --mem=3G", "--mem=900M", "n1/1:1"},
		{"-w n1 --gpus=1", "--gpus-per-node=2", "n2/1:0"},
		{"-w n1 --gpus=1", "--gpus=1", "n1/1:1"},
	} {
		jobs := []*v1alpha1.BatchJob{}
		if c.before != "" {
			jobs = append(jobs, parsed(t, 2, c.before))
		}
		jobs = append(jobs, parsed(t, 3, c.line))
		s := New(Input{Now: schedtest.Now, Nodes: sizeNodes(), Jobs: jobs, Partitions: schedtest.Partitions()})
		if got := planned(s); got != c.want {
			t.Errorf("%q after %q: %s, want %s", c.line, c.before, got, c.want)
		}
	}
}

// sizeNodes are those of TestSizesInThePlan.
func sizeNodes() []*corev1.Node {
	gpus := func(kind corev1.ResourceName) func(*corev1.Node) {
		return func(n *corev1.Node) {
			delete(n.Status.Allocatable, wire.ResourceGRES+"gpu-tesla")
			if kind != "" {
				n.Status.Allocatable[wire.ResourceGRES+kind] = resource.MustParse("2")
			}
		}
	}
	return []*corev1.Node{
		schedtest.Node("n1", gpus("gpu")),
		schedtest.Node("n2", gpus("gpu-a100")),
		schedtest.Node("n3", gpus("")),
	}
}

// Nodes get as many tasks as their GPUs are for (--ntasks-per-gpu).
func TestTasksPerGPU(t *testing.T) {
	gpus := func(n *corev1.Node) { n.Status.Allocatable[wire.ResourceGRES+"gpu"] = resource.MustParse("2") }
	for line, want := range map[string]string{
		"-G2 --ntasks-per-gpu=2":                   "n1/4:0-3",
		"-n4 --ntasks-per-gpu=2":                   "n1/4:0-3",
		"-n4 --ntasks-per-tres=2":                  "n1/4:0-3",
		"-N2 --gpus-per-node=1 --ntasks-per-gpu=2": "n1/2:0-1 n2/2:0-1",
		"-N2 --gpus-per-node=2 --ntasks-per-gpu=1": "n1/2:0-1 n2/2:0-1",
		"-n3 --gpus-per-node=1 --ntasks-per-gpu=2": "n1/2:0-1 n2/1:0",
	} {
		b := parsed(t, 3, line)
		s := New(
			Input{
				Now:        schedtest.Now,
				Nodes:      []*corev1.Node{schedtest.Node("n1", gpus), schedtest.Node("n2", gpus)},
				Jobs:       []*v1alpha1.BatchJob{b},
				Partitions: schedtest.Partitions(),
			},
		)
		if got := planned(s); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// Nodes share the GPUs of --gpus, as many on the first as it has room for.
func TestGPUsInAll(t *testing.T) {
	gpus := func(n *corev1.Node) {
		delete(n.Status.Allocatable, wire.ResourceGRES+"gpu-tesla")
		n.Status.Allocatable[wire.ResourceGRES+"gpu"] = resource.MustParse("4")
	}
	for line, want := range map[string]string{
		"-N2 --gpus=3":                   "2 1",
		"-N3 --gpus=4":                   "2 1 1",
		"-N3 --gpus=7":                   "3 3 1",
		"-N1-3 --gpus=2":                 "1 1",
		"-N2 --gpus=4":                   "2 2",
		"--gpus=6":                       "3 3",
		"-N2 --gpus-per-node=1 --gpus=2": "1 1",
	} {
		b := parsed(t, 3, line)
		nodes := []*corev1.Node{schedtest.Node("n1", gpus), schedtest.Node("n2", gpus), schedtest.Node("n3", gpus)}
		s := New(
			Input{Now: schedtest.Now, Nodes: nodes, Jobs: []*v1alpha1.BatchJob{b}, Partitions: schedtest.Partitions()},
		)
		var got []string
		for _, n := range s.NewAllocator().Allocation(s.Plan().Decisions[0]).Nodes {
			for _, g := range n.GRES {
				got = append(got, strconv.FormatInt(g.Count, 10))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", line, got, want)
		}
	}
}

// A count that no cluster has takes no longer to refuse than others.
func TestGPUsWithoutBound(t *testing.T) {
	for _, line := range []string{"--gpus=9000000000000000000", "-N1-3 --gpus=9000000000000000000"} {
		b := parsed(t, 3, line)
		s := New(
			Input{
				Now:        schedtest.Now,
				Nodes:      sizeNodes(),
				Jobs:       []*v1alpha1.BatchJob{b},
				Partitions: schedtest.Partitions(),
			},
		)
		if d := s.Plan().Decisions[0]; d.StartNow || d.Reason != backfill.ReasonBadConstraints {
			t.Errorf("%s: %+v", line, d)
		}
	}
}

// The batch host is the first node that has the features of --batch, and the
// first node where none has.
func TestBatchHost(t *testing.T) {
	for line, want := range map[string]string{
		"-N3 -w n1,n2,n3 --batch=red":           "n2 n1 n3",
		"-N2 -w n1,n3 --batch=red":              "n1 n3",
		"-N2 -w n1,n2 -C fast --batch=fast&red": "n2 n1",
		"-N2 -w n1,n2":                          "n1 n2",
	} {
		b := parsed(t, 3, line)
		s := New(
			Input{
				Now:        schedtest.Now,
				Nodes:      optionNodes(),
				Jobs:       []*v1alpha1.BatchJob{b},
				Partitions: schedtest.Partitions(),
			},
		)
		var got []string
		for _, n := range s.NewAllocator().Allocation(s.Plan().Decisions[0]).Nodes {
			got = append(got, n.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", line, got, want)
		}
	}
}

// With --time-min a job takes the time that is left before a reservation or its
// --deadline, and
// with --oversubscribe CPUs that others have, where the partition allows it.
func TestTimeMinDeadlineAndOversubscribe(t *testing.T) {
	nodes := optionNodes()[:1]
	r := &v1alpha1.Reservation{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	r.Spec.StartTime, r.Spec.Duration, r.Spec.Nodes = metav1.NewTime(schedtest.Now.Add(600e9)), 60, "n1"
	in := Input{
		Now:          schedtest.Now,
		Nodes:        nodes,
		Partitions:   schedtest.Partitions(),
		Reservations: []*v1alpha1.Reservation{r},
		Jobs:         []*v1alpha1.BatchJob{parsed(t, 3, "-t 30 --time-min=5")},
	}
	if got := planned(New(in)); got != "n1/1:0 for 10 min" {
		t.Errorf("before a reservation in ten minutes: %s", got)
	}
	in.Jobs[0].Spec.Job.Time.Deadline = schedtest.Now.Unix() + 400
	if got := planned(New(in)); got != "n1/1:0 for 6 min" {
		t.Errorf("and with a deadline before it: %s", got)
	}
	in.Jobs[0].Spec.Job.Time.Deadline = schedtest.Now.Unix() + 200
	if got := planned(New(in)); got != "waits: DeadLine" {
		t.Errorf("with a deadline that it cannot keep: %s", got)
	}
	in.Reservations = nil
	for _, c := range []struct {
		line, want string
		seconds    int64
	}{
		{"-t 120 --time-min=20", "n1/1:0 for 60 min", 3600}, {"-t 120 --time-min=20", "n1/1:0 for 59 min", 3599},
		{"", "n1/1:0 for 9 min", 600}, {"--time-min=5", "n1/1:0 for 9 min", 599}, {"", "waits: DeadLine", 59},
	} {
		in.Jobs[0] = parsed(t, 3, c.line)
		in.Jobs[0].Spec.Job.Time.Deadline = schedtest.Now.Unix() + c.seconds
		if got := planned(New(in)); got != c.want {
			t.Errorf("%q with a deadline in %d s: %s, want %s", c.line, c.seconds, got, c.want)
		}
	}
	in.Partitions[0].Spec.OverSubscribe = "YES:2"
	in.Jobs = []*v1alpha1.BatchJob{parsed(t, 2, "-n4 --oversubscribe"), parsed(t, 3, "-n2 --oversubscribe")}
	s := New(in)
	if got := planned(s); got != "n1/2:0-1" {
		t.Errorf("the second of two that share: %s", got)
	}
	for _, d := range s.Plan().Decisions {
		if a := s.NewAllocator().Allocation(d); a.Nodes[0].Sharers != 2 {
			t.Errorf("job %d: %+v", d.ID, a.Nodes[0])
		}
	}
	in.Jobs[1] = parsed(t, 3, "-n2")
	if got := planned(New(in)); !strings.HasPrefix(got, "in ") {
		t.Errorf("one that does not share beside one that does: %s", got)
	}
}
