package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/processnode"
	"github.com/berth-hpc/berth/internal/wire"
)

// native is a cluster whose namespace "ml" may queue pods, with an administrator's
// client.
type native struct {
	*cluster
	*testing.T
	client client.Client
}

func newNative(t *testing.T) *native {
	t.Helper()
	n := &native{cluster: start(t, "--nodes", "2", "--cpus", "4"), T: t}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(n.state, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if n.client, err = client.New(config, client.Options{Scheme: control.NewScheme()}); err != nil {
		t.Fatal(err)
	}
	n.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml"}})
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterName}}
	if err := n.client.Create(t.Context(), c); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	n.patch(c, `{"spec":{"workloadNamespaces":["ml"]}}`)
	// The namespace's ServiceAccount must be there before its pods.
	n.until("the service account", func() bool {
		return n.client.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "default"}, &corev1.ServiceAccount{}) == nil
	})
	return n
}

func (n *native) create(objects ...client.Object) {
	n.Helper()
	for _, o := range objects {
		if err := n.client.Create(n.Context(), o); err != nil {
			n.Fatal(err)
		}
	}
}

func (n *native) patch(o client.Object, merge string) {
	n.Helper()
	if err := n.client.Patch(n.Context(), o, client.RawPatch("application/merge-patch+json", []byte(merge))); err != nil {
		n.Fatal(err)
	}
}

func (n *native) until(what string, done func() bool) {
	n.Helper()
	deadline := time.Now().Add(eventually.Timeout)
	for !done() {
		if time.Now().After(deadline) {
			n.Fatalf("waited %v for %s; squeue:\n%s", eventually.Timeout, what, n.run("squeue", "-t", "all", "-o", "%i %u %j %T %r %D %N"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// run is the standard output of a command, which must succeed.
func (n *native) run(name string, args ...string) string {
	n.Helper()
	cmd := exec.Command(filepath.Join(n.bin, name), args...)
	cmd.Env = n.environ(n.TempDir())
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		n.Fatalf("%s %v: %v\n%s", name, args, err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// queue waits until squeue shows exactly these rows, by id: user, name, state,
// reason, nodes, node list.
func (n *native) queue(rows ...string) {
	n.Helper()
	want := strings.TrimSpace(strings.Join(rows, "\n"))
	n.until("squeue to show\n"+want, func() bool {
		return n.run("squeue", "-h", "-S", "i", "-o", "%u %j %T %r %D %N") == want
	})
}

// podSpec requests cpus CPUs and runs a command.
func podSpec(cpus string, command ...string) corev1.PodSpec {
	return corev1.PodSpec{
		SchedulerName: wire.SchedulerName, TerminationGracePeriodSeconds: new(int64),
		Containers: []corev1.Container{{Name: "main", Image: processnode.HostImage, Command: command,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus)}}}},
	}
}

// group is a ReplicaSet of two pods of three CPUs with a PodGroup that
// requires both.
func group(name string) []client.Object {
	labels := map[string]string{"app": name, podgroup.PodGroupLabel: name}
	two := int32(2)
	return []client.Object{
		&podgroup.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}, Spec: podgroup.PodGroupSpec{MinMember: 2}},
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name},
			Spec: appsv1.ReplicaSetSpec{Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec("3", "/bin/sleep", "600")}}},
	}
}

// phases returns how many of the ReplicaSet's pods run, and how many wait.
func (n *native) phases(name string) string {
	n.Helper()
	var list corev1.PodList
	if err := n.client.List(n.Context(), &list, client.InNamespace("ml"), client.MatchingLabels{"app": name}); err != nil {
		n.Fatal(err)
	}
	running, pending := 0, 0
	for _, p := range list.Items {
		switch {
		case p.DeletionTimestamp != nil:
		case p.Status.Phase == corev1.PodRunning:
			running++
		case p.Status.Phase == corev1.PodPending && p.Spec.NodeName == "":
			pending++
		}
	}
	return fmt.Sprintf("%d run, %d wait", running, pending)
}

// TestWorkloads queues pods that none of Berth's commands submitted.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	n := newNative(t)
	for _, tt := range []struct {
		name string
		run  func(*native)
	}{{"groups", groupsQueue}, {"pods", podsQueue}, {"controllers", controllersQueue}, {"rejection", rejectionRequeues}} {
		t.Run(tt.name, func(t *testing.T) { tt.run(&native{n.cluster, t, n.client}) })
	}
}

// groupsQueue: the two examples of slurm-bridge's talk: a ReplicaSet of two pods with a
// PodGroup of minMember 2, and behind it a group of two pods that waits for Resources
// and runs when the first one ends.
func groupsQueue(n *native) {
	n.create(group("first")...)
	n.queue("k8s_ml first RUNNING None 2 n[1-2]")
	n.until("the first group's pods", func() bool { return n.phases("first") == "2 run, 0 wait" })
	var list corev1.PodList // pods that waited for one another were not written to
	if err := n.client.List(n.Context(), &list, client.InNamespace("ml")); err != nil {
		n.Fatal(err)
	}
	for _, p := range list.Items {
		if p.Status.NominatedNodeName != "" {
			n.Errorf("pod %s was nominated for %s", p.Name, p.Status.NominatedNodeName)
		}
		own := func(t corev1.Toleration) bool { return t.Key == wire.LabelManaged }
		if i := slices.IndexFunc(p.Spec.Tolerations, own); i < 0 || slices.ContainsFunc(p.Spec.Tolerations[i+1:], own) {
			n.Errorf("pod %s tolerates %+v, want the taint of Berth's nodes once", p.Name, p.Spec.Tolerations)
		}
	}
	n.create(group("second")...)
	n.queue("k8s_ml first RUNNING None 2 n[1-2]", "k8s_ml second PENDING Resources 2")
	if got := n.phases("second"); got != "0 run, 2 wait" {
		n.Errorf("the second group: %s", got)
	}
	// A batch job queues behind it.
	third := n.run("sbatch", "--parsable", "-N2", "--exclusive", "--chdir", n.TempDir(), "--wrap", "true")
	n.until("the third to wait", func() bool {
		return n.run("squeue", "-h", "-j", third, "-o", "%T %r") == "PENDING Priority"
	})
	n.run("scancel", third)
	remove := func(name string) {
		n.Helper()
		if err := n.client.Delete(n.Context(), group(name)[1], client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			n.Fatal(err)
		}
	}
	remove("first")
	n.queue("k8s_ml second RUNNING None 2 n[1-2]")
	n.until("the second group's pods", func() bool { return n.phases("second") == "2 run, 0 wait" })
	// Cancelling it ends its pods; the ReplicaSet creates others, which are queued.
	before := n.run("squeue", "-h", "-o", "%i")
	n.run("scancel", before)
	n.until("another job of the group", func() bool {
		text := n.run("squeue", "-h", "-o", "%i %j %T")
		return strings.HasSuffix(text, " second RUNNING") && !strings.HasPrefix(text, before+" ")
	})
	remove("second")
	n.queue("")
}

// podsQueue: each pod without a group is a job, which ends as the pod does.
func podsQueue(n *native) {
	n.create(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "once", Annotations: map[string]string{
		"slurmjob.slinky.slurm.net/timelimit": "5", "berth.hpc/job-name": "train"}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: with(podSpec("1", "/bin/true"), func(s *corev1.PodSpec) {
			s.RestartPolicy = corev1.RestartPolicyNever
		})}}})
	ended := func(row string) {
		n.Helper()
		n.until(row, func() bool {
			return strings.Contains("\n"+n.run("squeue", "-h", "-t", "all", "-o", "%j %T %l")+"\n", "\n"+row+"\n")
		})
	}
	ended("train COMPLETED 5:00")
	bad := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "bad", Annotations: map[string]string{"berth.hpc/time-limit": "soon"}},
		Spec: podSpec("1", "/bin/sleep", "600")}
	n.create(bad)
	n.until("an event", func() bool {
		var list corev1.EventList
		if err := n.client.List(context.Background(), &list, client.InNamespace("ml")); err != nil {
			return false
		}
		for _, e := range list.Items {
			if e.InvolvedObject.Name == "bad" && e.Message == `annotation berth.hpc/time-limit="soon": Invalid --time specification` {
				return true
			}
		}
		return false
	})
	n.queue("")
	n.patch(bad, `{"metadata":{"annotations":{"berth.hpc/time-limit":"1"}}}`)
	n.queue("k8s_ml bad RUNNING None 1 n1")
	n.run("scancel", "--name", "bad")
	ended("bad CANCELLED 1:00")
	n.until("the pod to go", func() bool {
		return apierrors.IsNotFound(n.client.Get(n.Context(), client.ObjectKeyFromObject(bad), &corev1.Pod{}))
	})
	// Pods of other namespaces are not queued.
	n.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stray"}, Spec: podSpec("1", "/bin/true")})
	n.until("an event", func() bool {
		var list corev1.EventList
		return n.client.List(context.Background(), &list, client.InNamespace("default")) == nil && strings.Contains(fmt.Sprint(list.Items), "workloadNamespaces")
	})
	n.queue("")
}

// controllersQueue: each pod of a Deployment and of a JobSet is a job; the pods of a
// LeaderWorkerSet's group are one job. Its controller is not installed here: the pods have
// the labels that it would set.
func controllersQueue(n *native) {
	labels := map[string]string{"app": "web"}
	two := int32(2)
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "web", Annotations: map[string]string{"berth.hpc/job-name": "web"}},
		Spec: appsv1.DeploymentSpec{Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec("3", "/bin/sleep", "600")}}}
	n.create(web)
	n.queue("k8s_ml web RUNNING None 1 n1", "k8s_ml web RUNNING None 1 n2")
	var pods []client.Object
	for i := range 2 {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprintf("llm-0-%d", i),
			Labels:      map[string]string{control.LabelLWS: "llm", control.LabelLWSGroup: "0", control.LabelLWSIndex: fmt.Sprint(i), "app": "llm"},
			Annotations: map[string]string{"leaderworkerset.sigs.k8s.io/size": "2"}},
			Spec: podSpec("3", "/bin/sleep", "600")})
	}
	n.create(pods[0])
	n.create(pods[1])
	n.queue("k8s_ml web RUNNING None 1 n1", "k8s_ml web RUNNING None 1 n2", "k8s_ml llm-0 PENDING Resources 2")
	if got := n.phases("llm"); got != "0 run, 2 wait" {
		n.Errorf("the group: %s", got)
	}
	if err := n.client.Delete(n.Context(), web, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		n.Fatal(err)
	}
	n.queue("k8s_ml llm-0 RUNNING None 2 n[1-2]")
	n.until("the group's pods", func() bool { return n.phases("llm") == "2 run, 0 wait" })
	n.run("scancel", "--name", "llm-0")
	n.queue("")
	set := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "set", Annotations: map[string]string{"berth.hpc/job-name": "set"}},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{Name: "r", Replicas: 1, Template: batchv1.JobTemplateSpec{
			Spec: batchv1.JobSpec{Parallelism: &two, Completions: &two, Template: corev1.PodTemplateSpec{
				Spec: with(podSpec("1", "/bin/true"), func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyNever })}}}}}}}
	n.create(set)
	n.until("the JobSet to complete", func() bool {
		var now jobset.JobSet
		return n.client.Get(n.Context(), client.ObjectKeyFromObject(set), &now) == nil && now.Status.TerminalState == string(jobset.JobSetCompleted)
	})
	n.until("its two jobs to be over", func() bool {
		return n.run("squeue", "-h", "-t", "all", "-n", "set", "-o", "%u %T") == "k8s_ml COMPLETED\nk8s_ml COMPLETED"
	})
	n.queue("")
}

func with(s corev1.PodSpec, change func(*corev1.PodSpec)) corev1.PodSpec {
	change(&s)
	return s
}

// rejectionRequeues: a kubelet with fewer CPUs than its Node object reports rejects its pod of
// a gang: the whole gang is requeued, and starts when the object has the right values again.
func rejectionRequeues(n *native) {
	var nodes corev1.NodeList
	if err := n.client.List(n.Context(), &nodes); err != nil {
		n.Fatal(err)
	}
	setCPUs := func(cpus string) {
		n.Helper()
		o := &nodes.Items[1]
		err := n.client.Status().Patch(n.Context(), o, client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"status":{"allocatable":{"cpu":%q},"capacity":{"cpu":%q}}}`, cpus, cpus)))
		if err != nil {
			n.Fatal(err)
		}
	}
	setCPUs("8")
	id := n.run("sbatch", "--parsable", "-N2", "--exclusive", "--chdir", n.TempDir(), "--wrap", "echo all of us")
	text := ""
	n.until("the gang to be requeued", func() bool {
		setCPUs("8") // until the pod is rejected, because the kubelet corrects it
		text = n.run("scontrol", "show", "job", id)
		return !strings.Contains(text, "Restarts=0") && strings.Contains(text, "JobState=PENDING")
	})
	if strings.Contains(text, " NodeList=n") { // a moment later it may have started again
		n.Errorf("it still holds its nodes:\n%s", text)
	}
	var pods corev1.PodList
	n.until("its pods to go", func() bool {
		return n.client.List(context.Background(), &pods, client.MatchingLabels{wire.LabelJobID: id}) == nil && len(pods.Items) == 0
	})
	setCPUs("4")
	n.until("the gang to run", func() bool {
		return n.run("squeue", "-h", "-t", "all", "-j", id, "-o", "%T") == "COMPLETED"
	})
}
