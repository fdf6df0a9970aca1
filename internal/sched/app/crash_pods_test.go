package app_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// TestNoPodIsLostWhenTheSchedulerIsKilled runs single pods that were not submitted as jobs while
// the scheduler process is repeatedly killed with SIGKILL. A pod is bound to its node before the
// status of its job is written.
func TestNoPodIsLostWhenTheSchedulerIsKilled(t *testing.T) {
	ctx, x := startExternal(t)
	s, c := x.scheduler("scheduler"), x.client
	allowPods(ctx, t, c)
	pods, kills := crashSize()
	pods *= 2
	created := make(chan error, 1)
	go func() { created <- createPods(ctx, c, pods) }()
	s.killRepeatedly(kills)
	if err := <-created; err != nil {
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
	if err := client.IgnoreAlreadyExists(c.Create(ctx, o)); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"workloadNamespaces":["default"]}}`))
	if err := c.Patch(ctx, o, patch); err != nil {
		t.Fatal(err)
	}
}

// createPods creates pods that run for up to a second each.
func createPods(ctx context.Context, c client.Client, pods int) error {
	for i := range pods {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("crash-%d", i)}, Spec: corev1.PodSpec{
			SchedulerName: wire.SchedulerName, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "berth.hpc/host", Command: []string{"sleep", fmt.Sprintf("0.%d", i%10)},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}}}}}
		if err := createOnce(ctx, c, p); err != nil {
			return err
		}
	}
	return nil
}
