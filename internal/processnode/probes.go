package processnode

import (
	"context"
	"fmt"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/processnode/probe"
	"github.com/berth-hpc/berth/internal/processnode/task"
)

// runProbes starts the container's probes. The returned function stops them and waits for
// their end.
func (c *container) runProbes(r *running) (end func()) {
	ctx, cancel := context.WithCancel(c.p.ctx)
	var probes sync.WaitGroup
	if c.spec.StartupProbe != nil || c.spec.ReadinessProbe != nil || c.spec.LivenessProbe != nil {
		probes.Go(func() {
			if !c.startup(ctx, r) {
				return
			}
			probes.Go(func() { c.readiness(ctx, r) })
			probes.Go(func() { c.liveness(ctx, r) })
		})
	}
	return func() { cancel(); probes.Wait() }
}

// startup runs the startup probe, and reports whether it succeeded.
func (c *container) startup(ctx context.Context, r *running) bool {
	pr := c.spec.StartupProbe
	if pr == nil {
		return true
	}
	ok := false
	probe.Repeat(ctx, pr, c.check(r, pr), func(healthy bool, why error) bool {
		if ok = healthy; !healthy {
			c.killFor(r, "startup", why)
		}
		return false
	})
	if ok {
		c.p.mu.Lock()
		c.started = true
		c.ready = c.spec.ReadinessProbe == nil
		c.p.mu.Unlock()
		c.p.post()
	}
	return ok
}

func (c *container) readiness(ctx context.Context, r *running) {
	if c.spec.ReadinessProbe == nil {
		return
	}
	probe.Repeat(ctx, c.spec.ReadinessProbe, c.check(r, c.spec.ReadinessProbe), func(healthy bool, why error) bool {
		if !healthy {
			c.p.event(corev1.EventTypeWarning, "Unhealthy", fmt.Sprintf("Readiness probe failed: %v", why))
		}
		c.p.mu.Lock()
		changed := c.ready != healthy
		c.ready = healthy
		c.p.mu.Unlock()
		if changed {
			c.p.post()
		}
		return true
	})
}

func (c *container) liveness(ctx context.Context, r *running) {
	if c.spec.LivenessProbe == nil {
		return
	}
	probe.Repeat(ctx, c.spec.LivenessProbe, c.check(r, c.spec.LivenessProbe), func(healthy bool, why error) bool {
		if !healthy {
			c.killFor(r, "liveness", why)
		}
		return healthy
	})
}

func (c *container) killFor(r *running, kind string, why error) {
	c.p.event(corev1.EventTypeWarning, "Unhealthy", fmt.Sprintf("%s probe failed: %v", kind, why))
	select {
	case r.stop <- fmt.Sprintf("Container %s failed %s probe, will be restarted", c.spec.Name, kind):
	default:
	}
}

// check returns a function that runs the probe once.
func (c *container) check(r *running, pr *corev1.Probe) func(context.Context) error {
	a := probe.Action{Exec: pr.Exec, HTTP: pr.HTTPGet, TCP: pr.TCPSocket}
	return func(ctx context.Context) error { return c.target(r).Do(ctx, a) }
}

// target returns the container as the target of probes and hooks.
func (c *container) target(r *running) *probe.Target {
	return &probe.Target{
		Host: c.p.net.Address.String(), Ports: c.spec.Ports,
		Exec: func(ctx context.Context, command []string) error { return c.execProbe(ctx, r, command) },
	}
}

// execProbe runs a command of a probe or hook in the container.
func (c *container) execProbe(ctx context.Context, r *running, command []string) error {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	spec := c.shimSpec(r.id, r.env, nil)
	spec.Argv = command
	t, err := r.task.Exec(task.Options{Spec: spec, Stdout: null, Stderr: null})
	if err != nil {
		return err
	}
	select {
	case <-t.Done():
	case <-ctx.Done():
		t.KillTree()
		<-t.Done()
		return ctx.Err()
	}
	if code := t.Result().Code; code != 0 {
		return fmt.Errorf("command exited with %d", code)
	}
	return nil
}

func (c *container) runHook(ctx context.Context, r *running, h *corev1.LifecycleHandler) error {
	a := probe.Action{Exec: h.Exec, HTTP: h.HTTPGet, TCP: h.TCPSocket, Sleep: h.Sleep}
	return c.target(r).Do(ctx, a)
}

// preStop runs the container's preStop hook, within the pod's grace period.
func (c *container) preStop(r *running) {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PreStop == nil {
		return
	}
	h := c.spec.Lifecycle.PreStop
	ctx, cancel := context.WithCancel(c.p.ctx)
	defer cancel()
	go func() {
		select {
		case <-c.p.killed:
			cancel()
		case <-r.task.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := c.runHook(ctx, r, h); err != nil {
		c.p.event(corev1.EventTypeWarning, "FailedPreStopHook", err.Error())
	}
}

// postStart runs the container's postStart hook. If that fails, the container is killed.
func (c *container) postStart(r *running) {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PostStart == nil {
		return
	}
	h := c.spec.Lifecycle.PostStart
	if err := c.runHook(c.p.ctx, r, h); err != nil {
		c.p.event(corev1.EventTypeWarning, "FailedPostStartHook", err.Error())
		select {
		case r.stop <- "FailedPostStartHook":
		default:
		}
	}
}
