package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// TestNoPodIsLostWhenTheSchedulerIsKilled runs single pods that were not submitted as jobs while
// the scheduler process is repeatedly killed with SIGKILL: a pod is placed and bound
// before its job's object has that status.
func TestNoPodIsLostWhenTheSchedulerIsKilled(t *testing.T) {
	ctx, x := startExternal(t)
	s, c := x.scheduler("scheduler"), x.client
	allowPods(ctx, t, c)
	pods, kills := crashSize()
	pods *= 2
	made := make(chan error, 1)
	go func() { made <- makePods(ctx, c, pods) }()
	for range kills {
		time.Sleep(time.Duration(300+rand.IntN(2500)) * time.Millisecond) // at a random moment: that is the test
		s.stop()
		s.start()
	}
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	awaitEnd(ctx, t, c, s, pods)
	checkRecords(ctx, t, storageOf(t, x.flags), pods)
	log, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d pods had been bound by a process that died", strings.Count(string(log), "adopted a running job"), pods)
}

// allowPods allows pods of the namespace default in the queue.
func allowPods(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()
	o := &v1alpha1.Cluster{}
	o.Name = v1alpha1.ClusterName
	if err := c.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"workloadNamespaces":["default"]}}`))
	if err := c.Patch(ctx, o, patch); err != nil {
		t.Fatal(err)
	}
}

// makePods creates pods that run for up to a second each. It retries while no webhook
// answers.
func makePods(ctx context.Context, c client.Client, pods int) error {
	for i := range pods {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("crash-%d", i)}, Spec: corev1.PodSpec{
			SchedulerName: wire.SchedulerName, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "berth.hpc/host", Command: []string{"sleep", fmt.Sprintf("0.%d", i%10)},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}}}}}
		for {
			err := c.Create(ctx, p.DeepCopy())
			if err == nil || apierrors.IsAlreadyExists(err) {
				break
			}
			if ctx.Err() != nil {
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}
