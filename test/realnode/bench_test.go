//go:build e2ereal

package realnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
)

// jobsVariable is how many jobs testBench runs; none without it.
const jobsVariable = "BERTH_E2E_JOBS"

// submitters is how many submit at once.
const submitters = 8

// measured writes a line that test/bench reads.
func measured(t *testing.T, name, format string, args ...any) {
	t.Helper()
	t.Logf("measured %s: %s", name, fmt.Sprintf(format, args...))
}

// testBench runs the same number of jobs of one task as plain JobSets with Kubernetes'
// own scheduler, and then with sbatch, on the same nodes and with the same JobSet
// controller: with a pod for each job, with the same requests and the same deletion (a
// fifth as many, because it is the slowest), and with reused pods.
func testBench(t *testing.T, ctx context.Context, s *Site) {
	jobs, err := strconv.Atoi(os.Getenv(jobsVariable))
	if err != nil {
		t.Skip("without " + jobsVariable)
	}
	api, err := client.NewWithWatch(s.Rest, client.Options{Scheme: control.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	batch := &many{api, namespace, &v1alpha1.BatchJobList{}, func(o client.Object) bool {
		b, ok := o.(*v1alpha1.BatchJob)
		return ok && b.Status.State == v1alpha1.StateCompleted
	}}
	sbatch := func(ctx context.Context, _ int) error {
		_, err := s.As(ctx, user, user.Home(), "sbatch", "-n1", "-o", "/dev/null", "--wrap", "true")
		return err
	}
	runs := []struct {
		name   string
		within *many
		submit func(ctx context.Context, n int) error
		apart  bool
	}{
		{"plain JobSets", &many{api, "default", &jobset.JobSetList{}, func(o client.Object) bool {
			set, ok := o.(*jobset.JobSet)
			return ok && set.Status.TerminalState == string(jobset.JobSetCompleted)
		}}, func(ctx context.Context, n int) error { return api.Create(ctx, plainSet(n)) }, false},
		{"sbatch, a pod for each", batch, sbatch, true},
		{"sbatch", batch, sbatch, false},
	}
	for _, r := range runs {
		if err := podPerJob(ctx, api, r.apart); err != nil {
			t.Fatal(err)
		}
		n := jobs
		if r.apart {
			n = (jobs + 4) / 5
		}
		pods := watchPods(t, ctx, s, r.within.namespace)
		began := time.Now()
		if err := r.within.run(ctx, n, r.submit); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		took := time.Since(began).Seconds()
		measured(t, fmt.Sprintf("%d jobs of one task, %s", n, r.name), "%.1f/s (%.0f s)", float64(n)/took, took)
		t.Logf("pods of %s, medians: %s", r.name, pods)
	}
}

// podPerJob sets whether the jobs of every partition have pods of their own.
func podPerJob(ctx context.Context, api client.Client, want bool) error {
	var list v1alpha1.PartitionList
	if err := api.List(ctx, &list); err != nil {
		return err
	}
	for i := range list.Items {
		p := &list.Items[i]
		before := p.DeepCopy()
		p.Spec.PodPerJob = want
		if err := api.Patch(ctx, p, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

// many are objects of one kind in a namespace, each of which ends.
type many struct {
	api       client.WithWatch
	namespace string
	list      client.ObjectList
	over      func(client.Object) bool
}

// run submits n and returns when as many have ended.
func (m *many) run(ctx context.Context, n int, submit func(context.Context, int) error) error {
	if err := m.api.List(ctx, m.list, client.InNamespace(m.namespace)); err != nil {
		return err
	}
	before := map[string]bool{}
	if err := meta.EachListItem(m.list, func(o runtime.Object) error {
		before[o.(client.Object).GetName()] = true
		return nil
	}); err != nil {
		return err
	}
	w, err := m.api.Watch(ctx, m.list, client.InNamespace(m.namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: m.list.GetResourceVersion()}})
	if err != nil {
		return err
	}
	defer w.Stop()
	group, inside := errgroup.WithContext(ctx)
	group.SetLimit(submitters + 1)
	group.Go(func() error {
		ended := map[string]bool{}
		for len(ended) < n {
			select {
			case e, ok := <-w.ResultChan():
				if !ok {
					return errors.New("the watch ended")
				}
				if o, ok := e.Object.(client.Object); ok && m.over(o) && !before[o.GetName()] {
					ended[o.GetName()] = true
				}
			case <-inside.Done():
				return fmt.Errorf("%d have ended: %w", len(ended), context.Cause(inside))
			}
		}
		return nil
	})
	for i := range n {
		group.Go(func() error { return submit(inside, i) })
	}
	return group.Wait()
}

// plainSet is a JobSet as small as the one that Berth makes of a job.
func plainSet(n int) *jobset.JobSet {
	ptr := func(n int32) *int32 { return &n }
	indexed, names := batchv1.IndexedCompletion, false
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "job", Image: SystemImage, Command: []string{"sh", "-c", "true"},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}},
	}}
	return &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("plain-%d", n)}, Spec: jobset.JobSetSpec{
		Network:                 &jobset.Network{EnableDNSHostnames: &names},
		TTLSecondsAfterFinished: ptr(0),
		ReplicatedJobs: []jobset.ReplicatedJob{{Name: "n0", Replicas: 1, Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
			CompletionMode: &indexed, Completions: ptr(1), Parallelism: ptr(1), BackoffLimit: ptr(0), Template: pod}}}},
	}}
}
