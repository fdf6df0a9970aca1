package queue_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// live is a control plane of its own with the scheduler as a process beside.
type live struct {
	bin, dir string
	config   *rest.Config
	admin    client.Client

	mu        sync.Mutex
	scheduler *exec.Cmd
}

// newLive starts bin/berth-local and bin/scheduler, which make build leaves.
func newLive(t *testing.T) *live {
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		t.Skip("starts a control plane: not with -short")
	}
	for _, name := range []string{"berth-local", "scheduler"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("bin/%s is missing in CI", name)
			}
			t.Skipf("bin/%s is missing: make build makes it", name)
		}
	}
	l := &live{bin: bin, dir: t.TempDir()}
	l.run(t, "berth-local", "run", "--scheduler=external", "--nodes=0", "--state-dir", l.dir)
	t.Cleanup(func() { l.run(t, "berth-local", "down", "--state-dir", l.dir) })
	if l.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(l.dir, "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	l.config.QPS = -1
	l.admin = l.as(t, "")
	l.start(t)
	t.Cleanup(l.kill)
	l.addUser(t, "anna", 20001)
	l.addUser(t, "ben", 20002)
	return l
}

func (l *live) run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(l.bin, name), args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func (l *live) start(t *testing.T) {
	t.Helper()
	args, err := os.ReadFile(filepath.Join(l.dir, "scheduler.args"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(l.dir, "scheduler.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(l.bin, "scheduler"), strings.Fields(string(args))...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scheduler = cmd
}

// kill ends the scheduler as a power cut would.
func (l *live) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.scheduler.Process.Signal(syscall.SIGKILL)
	_ = l.scheduler.Wait()
}

// as is a client with the identity of that user; "" is the administrator's.
func (l *live) as(t *testing.T, name string, groups ...string) client.Client {
	t.Helper()
	cfg := rest.CopyConfig(l.config)
	if name != "" {
		cfg.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: append(groups, "berth:users", "system:authenticated")}
	}
	c, err := client.New(cfg, client.Options{Scheme: control.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (l *live) addUser(t *testing.T, name string, uid int64) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "user-" + name, Labels: map[string]string{wire.LabelNamespace: name}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "berth-user"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "berth-user"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}
	for _, o := range []client.Object{fake.User(name, uid), ns, binding} {
		if err := l.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	// Both the scheduler's and the API server's watches have to see them.
	eventually.Succeeds(t, "submission as "+name, func() error {
		return l.as(t, name).Create(t.Context(), batchJob(name, "ready"), client.DryRunAll)
	})
}

func batchJob(user, name string) *v1alpha1.BatchJob {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: "user-" + user, Name: "j-" + name}}
	b.Spec.Job = job.Job{Name: name, Batch: job.Batch{WorkDir: "/tmp"}}
	b.Spec.Script = w.EncodeAll([]byte("#!/bin/sh\ntrue\n"), nil)
	return b
}

// submit is what a client does: create under a name of its own, again after a
// lost answer, and take what is there.
func submit(ctx context.Context, c client.Client, user, name string) (int64, error) {
	var err error
	for range 600 {
		b := batchJob(user, name)
		if err = c.Create(ctx, b); err == nil {
			return b.Spec.JobID, nil
		}
		if apierrors.IsAlreadyExists(err) {
			err = c.Get(ctx, client.ObjectKeyFromObject(b), b)
			return b.Spec.JobID, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return 0, err
}

// TestLive is one control plane for all that needs a real one.
func TestLive(t *testing.T) {
	l := newLive(t)
	t.Run("Attackers", func(t *testing.T) { attackers(t, l) })
	t.Run("Submission", func(t *testing.T) { submission(t, l) })
}

// full asks for every job that the test is about, not only for some.
var full = os.Getenv("BERTH_TEST_FULL") != ""

// submission: eight submitters of 500 jobs each, fewer if not in full; the
// scheduler is killed and started in between; every third answer is thought
// lost and the submission repeated.
func submission(t *testing.T, l *live) {
	const submitters = 8
	jobs := 60
	if full {
		jobs = 500
	}
	there := l.count(t)
	lists := make([][]int64, submitters)
	var wg sync.WaitGroup
	started := time.Now()
	for s := range submitters {
		c := l.as(t, "anna")
		wg.Go(func() {
			for i := range jobs {
				name := fmt.Sprintf("%d-%d", s, i)
				id, err := submit(t.Context(), c, "anna", name)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				if i%3 == 0 {
					if again, err := submit(t.Context(), c, "anna", name); err != nil || again != id {
						t.Errorf("%s again: %d, %v; was %d", name, again, err, id)
					}
				}
				lists[s] = append(lists[s], id)
			}
		})
	}
	for range 2 {
		before := l.count(t)
		eventually.Succeeds(t, "more jobs", func() error {
			if n := l.count(t); n < before+jobs && n < there+submitters*jobs {
				return fmt.Errorf("%d jobs", n)
			}
			return nil
		})
		l.kill()
		l.start(t)
	}
	wg.Wait()
	t.Logf("%d submissions in %v, two kills included", submitters*jobs*4/3, time.Since(started))
	var all []int64
	for s, ids := range lists {
		if !slices.IsSorted(ids) || len(ids) != jobs || ids[0] < 1 {
			t.Errorf("submitter %d: %d ids, growing: %v", s, len(ids), slices.IsSorted(ids))
		}
		all = append(all, ids...)
	}
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != submitters*jobs {
		t.Errorf("%d different ids of %d", n, submitters*jobs)
	}
	if n := l.count(t) - there; n != submitters*jobs {
		t.Errorf("%d jobs are there", n)
	}
}

func (l *live) count(t *testing.T) int {
	t.Helper()
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("BatchJobList"))
	if err := l.admin.List(t.Context(), &list, client.InNamespace("user-anna")); err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// attackers: what a user tries against the queue, through the real API server.
func attackers(t *testing.T, l *live) {
	ctx, anna, ben := t.Context(), l.as(t, "anna"), l.as(t, "ben")
	forged := batchJob("anna", "forged")
	forged.Spec.JobID, forged.Spec.User, forged.Status.State = 1<<30, "ben", v1alpha1.StateRunning
	forged.Finalizers, forged.Labels = []string{"mine/x"}, map[string]string{wire.LabelUser: "ben"}
	if err := anna.Create(ctx, forged); err != nil {
		t.Fatal(err)
	}
	if forged.Spec.JobID >= 1<<30 || forged.Spec.User != "anna" || forged.Status.State != "" || len(forged.Finalizers) != 1 || forged.Labels[wire.LabelUser] != "anna" {
		t.Errorf("forged: %+v", forged)
	}
	key := client.ObjectKeyFromObject(forged)
	change := func(c client.Client, f func(*v1alpha1.BatchJob)) error {
		b := &v1alpha1.BatchJob{}
		if err := l.admin.Get(ctx, key, b); err != nil {
			return err
		}
		f(b)
		return c.Update(ctx, b)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "user-anna", Name: "x", Labels: map[string]string{wire.LabelJobID: "1"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "job", Image: "x"}}}}
	unlabelled := pod.DeepCopy()
	unlabelled.Labels = nil
	dropFinalizer := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	writeStatus := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"state":"COMPLETED"}}`))
	makers := l.as(t, "maker", "system:masters") // may make pods, and yet no job's
	for name, err := range map[string]error{
		"a pod":                       anna.Create(ctx, unlabelled.DeepCopy()),
		"a pod with our label":        makers.Create(ctx, pod.DeepCopy()),
		"another's namespace":         ben.Create(ctx, batchJob("anna", "ben")),
		"another id":                  change(anna, func(b *v1alpha1.BatchJob) { b.Spec.JobID++ }),
		"another user":                change(anna, func(b *v1alpha1.BatchJob) { b.Spec.User = "ben" }),
		"another script":              change(anna, func(b *v1alpha1.BatchJob) { b.Spec.Script = nil }),
		"a label":                     change(anna, func(b *v1alpha1.BatchJob) { b.Labels["x"] = "y" }),
		"another's job":               change(ben, func(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{} }),
		"no finalizer":                anna.Patch(ctx, forged.DeepCopy(), dropFinalizer),
		"a status":                    anna.Status().Patch(ctx, forged.DeepCopy(), writeStatus),
		"delete, leaving pods behind": anna.Delete(ctx, forged.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationOrphan)),
		"delete another's":            ben.Delete(ctx, forged.DeepCopy()),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_ = anna.Patch(ctx, forged.DeepCopy(), writeStatus) // through the main resource it has no effect
	b := &v1alpha1.BatchJob{}
	if err := anna.Get(ctx, key, b); err != nil || b.Status.State != "" || b.Spec.User != "anna" {
		t.Errorf("%v: %+v", err, b.Status)
	}
	if err := change(anna, func(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{By: "root"} }); err != nil {
		t.Errorf("cancelling: %v", err)
	}
}
