package usersync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/usersource"
)

// fieldManager owns the fields of Users that sources decide.
const fieldManager = "berth-directory"

const (
	// watchInterval is how often it is checked whether a file has changed.
	watchInterval = 2 * time.Second
	// listTimeout bounds a listing of one source.
	listTimeout = 5 * time.Minute
	// writers is how many objects are written at a time.
	writers = 8
)

// namedSource is a source with its name.
type namedSource struct {
	name   string
	source usersource.Source
}

// version returns what changes when the source does, if that is cheap to know; else "".
func (s namedSource) version() string {
	if v, ok := s.source.(usersource.Versioned); ok {
		return v.Version()
	}
	return ""
}

// Controller keeps Users in step with sources.
type Controller struct {
	cfg     *Config
	sources []namedSource
	cluster *control.Cluster
	now     func() time.Time
	log     *slog.Logger

	logged   map[string]bool // the problems of the last pass
	versions map[string]string

	mu     sync.Mutex
	report Report
}

// New returns a Controller for a configuration.
func New(c *control.Cluster, cfg *Config, now func() time.Time, log *slog.Logger) (*Controller, error) {
	sources, err := cfg.open(c, now)
	if err != nil {
		return nil, err
	}
	x := &Controller{
		cfg: cfg, sources: sources, cluster: c, now: now, log: log,
		logged: map[string]bool{}, versions: map[string]string{},
	}
	for _, s := range sources {
		x.report.Sources = append(x.report.Sources, SourceReport{Name: s.name})
	}
	return x, nil
}

// Run lists the sources and writes what has changed, at once, at each interval, and when a
// file changes, until ctx ends.
func (x *Controller) Run(ctx context.Context) {
	x.restore(ctx)
	tick := time.NewTicker(min(watchInterval, x.cfg.Interval.Duration))
	defer tick.Stop()
	for {
		began := x.now()
		x.pass(ctx)
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if x.filesHaveChanged() || x.now().Sub(began) >= x.cfg.Interval.Duration {
				break
			}
		}
	}
}

// filesHaveChanged reports whether a source that can tell has changed since it was listed.
func (x *Controller) filesHaveChanged() bool {
	for _, s := range x.sources {
		if s.version() != x.versions[s.name] {
			return true
		}
	}
	return false
}

// pass lists all sources, and makes and applies one plan.
func (x *Controller) pass(ctx context.Context) {
	listings := x.list(ctx)
	if ctx.Err() != nil {
		return
	}
	p := makePlan(input{
		policy: &x.cfg.Policy, listings: listings, users: x.cluster.Users.List(), accounts: x.cluster.Accounts.List(),
	})
	err := errors.Join(x.writeUsers(ctx, p), x.writeCoordinators(ctx, p))
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		p.problems = append(p.problems, fmt.Sprintf("not everything was written, the next attempt is in %v: %v",
			x.cfg.Interval.Duration, err))
	}
	p.problems = append(p.problems, x.makeHomes(ctx)...)
	if ctx.Err() != nil {
		return
	}
	x.logProblems(p.problems)
	x.publish(ctx, p, listings)
}

// list lists the sources, one beside the other.
func (x *Controller) list(ctx context.Context) []listing {
	out := make([]listing, len(x.sources))
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var all sync.WaitGroup
	for i, s := range x.sources {
		x.versions[s.name] = s.version() // before it is read
		all.Go(func() {
			out[i].source = s.name
			l, err := s.source.List(ctx)
			if out[i].err = err; err == nil {
				out[i].Listing = *l
			}
		})
	}
	all.Wait()
	return out
}

// writeUsers applies the Users of a plan. A failure does not keep the others from being
// written.
func (x *Controller) writeUsers(ctx context.Context, p *plan) error {
	var all errgroup.Group
	all.SetLimit(writers)
	for _, u := range p.apply {
		all.Go(func() error {
			if err := x.writeUser(ctx, u); err != nil {
				return fmt.Errorf("user %s: %w", u.Name, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// writeUser applies one User. Fields that are empty in it are removed only if a source had set
// them.
func (x *Controller) writeUser(ctx context.Context, u *v1alpha1.User) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(u)
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	o := &unstructured.Unstructured{Object: object}
	if err := x.cluster.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.ForceOwnership,
		client.FieldOwner(fieldManager)); err != nil {
		return err
	}
	written := &v1alpha1.User{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, written); err != nil {
		return err
	}
	x.cluster.Users.Apply(written)
	text := "user written"
	if u.Spec.Disabled {
		text = "user written and disabled"
	}
	x.log.Info(text, "user", u.Name, "uid", u.Spec.UID, "source", u.Labels[v1alpha1.LabelSource],
		"reason", u.Annotations[AnnotationDisabled])
	return nil
}

// writeCoordinators writes the new coordinators of accounts.
func (x *Controller) writeCoordinators(ctx context.Context, p *plan) error {
	var errs []error
	for name, coordinators := range p.coordinators {
		a, ok := x.cluster.Accounts.Get(name)
		if !ok {
			continue
		}
		before := control.Stored(a).(*v1alpha1.Account)
		after := before.DeepCopy()
		after.Spec.Coordinators = coordinators
		// A change that came meanwhile is not lost: the next pass decides again.
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := x.cluster.Client.Patch(ctx, after, patch); err != nil {
			errs = append(errs, fmt.Errorf("account %s: %w", name, err))
			continue
		}
		x.log.Info("coordinators written", "account", name, "coordinators", coordinators)
	}
	return errors.Join(errs...)
}

// logProblems logs the problems that the pass before did not have.
func (x *Controller) logProblems(problems []string) {
	now := map[string]bool{}
	for _, text := range problems {
		if now[text] = true; !x.logged[text] {
			x.log.Warn("directory: " + text)
		}
	}
	x.logged = now
}
