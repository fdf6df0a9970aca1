package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/berth-hpc/berth/internal/wire"
)

// ErrLeaseLost reports that another process leads now, or that the API server could not
// be reached for so long that another one may lead.
var ErrLeaseLost = errors.New("the scheduler's lease was lost")

// leaseName is the Lease in the system namespace.
const leaseName = "berth-scheduler"

// Run waits to become the leader, then serves until ctx ends (nil), the lease is lost
// (ErrLeaseLost) or a part fails. The API role alone needs no lease: it serves at once,
// and any number of processes may have it. The lease is released when everything has
// stopped.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	if cfg.self, err = whoAmI(ctx, cfg.Kube); err != nil {
		return err
	}
	h := &health{}
	if !cfg.NoScheduler {
		if h.election, err = newElection(cfg); err != nil {
			return err
		}
	}
	stop, err := h.serve(ctx, cfg)
	if err != nil {
		return err
	}
	defer stop()
	if cfg.NoScheduler {
		return read(ctx, cfg, h)
	}
	e := h.election
	e.start(ctx)
	defer e.stop()
	select {
	case <-ctx.Done():
		return nil
	case <-e.over:
		return ErrLeaseLost
	case <-e.leading:
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-e.over:
			cancel()
		case <-work.Done():
		}
	}()
	cfg.Kube, cfg.leads = e.fenced(cfg.Kube), e.holds
	err = lead(work, cfg, h)
	select {
	case <-e.over:
		return ErrLeaseLost
	default:
	}
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// election takes part in the election of the leader.
type election struct {
	elector   *leaderelection.LeaderElector
	term      *term
	successor *successor
	lease     time.Duration
	cancel    context.CancelFunc
	leading   chan struct{} // closed when this process leads
	over      chan struct{} // closed when it does not lead any more
}

func newElection(cfg Config) (*election, error) {
	kube := rest.CopyConfig(cfg.Kube)
	kube.QPS, kube.Burst = -1, 0
	kube.Timeout = cfg.Election.Renew / 2
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return nil, fmt.Errorf("client for the lease: %w", err)
	}
	e := &election{
		lease: cfg.Election.Lease, leading: make(chan struct{}), over: make(chan struct{}), cancel: func() {},
	}
	e.term = newTerm(&resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: wire.SystemNamespace, Name: leaseName},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: cfg.Identity},
	})
	e.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            e.term,
		LeaseDuration:   cfg.Election.Lease,
		RenewDeadline:   cfg.Election.Renew,
		RetryPeriod:     cfg.Election.Retry,
		ReleaseOnCancel: true,
		Name:            leaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(e.leading) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	e.successor = &successor{
		leases: client.CoordinationV1().Leases(wire.SystemNamespace), retry: cfg.Election.Retry,
		identity: cfg.Identity, log: cfg.Log, isOwn: isOwnAddress,
	}
	return e, nil
}

// start takes part until stop. It does not end with ctx: the lease is kept until the
// work that it protects has stopped.
func (e *election) start(ctx context.Context) {
	ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(e.over)
		for e.campaign(ctx) {
			continue
		}
	}()
}

// campaign waits for the lease and keeps it until ctx ends or it is lost. It returns true
// if the lease of a dead leader was released meanwhile: trying again at once is sooner
// than the elector's next attempt.
func (e *election) campaign(ctx context.Context) (again bool) {
	attempt, cancel := context.WithCancel(ctx)
	defer cancel()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-e.leading:
			stop()
		case <-waiting.Done():
		}
	}()
	go func() {
		select {
		case <-e.term.over:
			cancel()
		case <-attempt.Done():
		}
	}()
	released := make(chan struct{})
	s := *e.successor
	s.released = func() {
		close(released)
		stop()
		cancel()
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.run(waiting) })
	e.elector.Run(attempt)
	stop()
	wg.Wait()
	select {
	case <-e.leading:
		return false
	case <-released:
		return ctx.Err() == nil
	default:
		return false
	}
}

// stop releases the lease.
func (e *election) stop() {
	e.cancel()
	<-e.over
}
