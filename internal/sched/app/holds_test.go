package app

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/berth-hpc/berth/internal/wire"
)

// A leader that cannot renew its lease holds it for nine tenths of its duration only, even
// though its elector has noticed nothing.
func TestLeaseThatIsNotRenewedIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var stuck atomic.Bool
		kube := fake.NewClientset()
		kube.PrependReactor("update", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
			if stuck.Load() {
				<-ctx.Done()
			}
			return false, nil, nil
		})
		e := &election{lease: 10 * time.Second}
		var err error
		e.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: wire.SystemNamespace, Name: leaseName},
				Client:     kube.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
			},
			LeaseDuration: e.lease, RenewDeadline: 7 * time.Second, RetryPeriod: time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if e.holds() {
			t.Error("it holds the lease before it leads")
		}
		go e.elector.Run(ctx)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !e.holds() {
			t.Fatal("it does not hold the lease that it renews")
		}
		stuck.Store(true)
		time.Sleep(7 * time.Second)
		if !e.holds() {
			t.Error("it does not hold a lease that it renewed seven seconds ago")
		}
		time.Sleep(3 * time.Second)
		if e.holds() || !e.elector.IsLeader() {
			t.Errorf("after ten seconds it holds the lease: %v; its elector reports that it leads: %v", e.holds(),
				e.elector.IsLeader())
		}
		stop()
		synctest.Wait()
	})
}
