package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
)

// crashSize returns how many jobs run and how often the scheduler is killed. With
// BERTH_TEST_FULL it is killed often enough to hit rare moments.
func crashSize() (jobs, kills int) {
	if os.Getenv("BERTH_TEST_FULL") != "" {
		return 60, 12
	}
	return 24, 5
}

// killRepeatedly kills the scheduler that many times and starts it again.
func (v *victim) killRepeatedly(kills int) {
	for range kills {
		// The test is what happens at a random moment.
		time.Sleep(time.Duration(300+rand.IntN(2500)) * time.Millisecond)
		v.stop()
		v.start()
	}
}

// crashJob returns a job of the first user that runs the script in the directory.
func crashJob(ctx context.Context, c client.Client, name, dir, script string) (*v1alpha1.BatchJob, error) {
	users := &v1alpha1.UserList{}
	if err := c.List(ctx, users); err != nil || len(users.Items) == 0 {
		return nil, fmt.Errorf("no users: %w", err)
	}
	pack, err := zstd.NewWriter(nil)
	if err != nil {
		return nil, err
	}
	return &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: users.Items[0].Spec.Namespace, Name: name},
		Spec: v1alpha1.BatchJobSpec{
			Job: job.Job{
				Name: "crash", Time: job.Time{Limit: 5}, Batch: job.Batch{WorkDir: dir, Output: "/dev/null"},
			},
			Script:      pack.EncodeAll([]byte(script), nil),
			Environment: pack.EncodeAll([]byte("PATH=/usr/bin:/bin\x00"), nil),
		},
	}, nil
}

// createOnce creates an object. It retries while the scheduler, and with it the webhook,
// is down; an earlier try may have created the object.
func createOnce(ctx context.Context, c client.Client, o client.Object) error {
	for {
		err := c.Create(ctx, o.DeepCopyObject().(client.Object))
		if err = client.IgnoreAlreadyExists(err); err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}
