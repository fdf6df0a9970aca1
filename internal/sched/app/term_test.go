package app

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/berth-hpc/berth/internal/wire"
)

// TestLeaderEndsAfterAnotherOne: a leader behind which another process has held the lease
// ends, also if the lease is free by now, and does not touch the lease again.
func TestLeaderEndsAfterAnotherOne(t *testing.T) {
	for name, holder := range map[string]string{"it still leads": "other", "it has released the lease": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kube := fake.NewClientset()
				var stale atomic.Bool // as with a real API server, an update of an old version fails
				kube.PrependReactor("update", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
					if stale.CompareAndSwap(true, false) {
						return true, nil, apierrors.NewConflict(coordinationv1.Resource("leases"), leaseName, nil)
					}
					return false, nil, nil
				})
				lock := newTerm(&resourcelock.LeaseLock{
					LeaseMeta:  metav1.ObjectMeta{Namespace: wire.SystemNamespace, Name: leaseName},
					Client:     kube.CoordinationV1(),
					LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
				})
				e := &election{lease: 10 * time.Second, term: lock, leading: make(chan struct{}), over: make(chan struct{}),
					successor: &successor{leases: kube.CoordinationV1().Leases(wire.SystemNamespace), retry: time.Second, identity: "me"}}
				var err error
				e.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
					Lock: lock, LeaseDuration: e.lease, RenewDeadline: 7 * time.Second, RetryPeriod: time.Second,
					ReleaseOnCancel: true,
					Callbacks: leaderelection.LeaderCallbacks{
						OnStartedLeading: func(context.Context) { close(e.leading) }, OnStoppedLeading: func() {},
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				e.start(t.Context())
				time.Sleep(time.Minute)
				synctest.Wait()
				if !e.holds() {
					t.Fatal("it does not lead")
				}
				leases := kube.CoordinationV1().Leases(wire.SystemNamespace)
				l, err := leases.Get(t.Context(), leaseName, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				l.Spec.HolderIdentity = &holder
				if _, err := leases.Update(t.Context(), l, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				stale.Store(true)
				time.Sleep(3 * time.Second)
				synctest.Wait()
				select {
				case <-e.over:
				default:
					t.Error("it leads on")
					e.stop()
				}
				if l, err = leases.Get(t.Context(), leaseName, metav1.GetOptions{}); err != nil || *l.Spec.HolderIdentity != holder {
					t.Errorf("%v: the lease belongs to %q, not to %q", err, *l.Spec.HolderIdentity, holder)
				}
			})
		})
	}
}
