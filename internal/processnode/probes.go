package processnode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berth-hpc/berth/internal/processnode/task"
)

// probe starts the container's probes. The returned function stops them and waits for their
// end.
func (c *container) probe(r *running) (end func()) {
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
	c.repeat(ctx, r, pr, func(healthy bool, why error) bool {
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
	c.repeat(ctx, r, c.spec.ReadinessProbe, func(healthy bool, why error) bool {
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
	c.repeat(ctx, r, c.spec.LivenessProbe, func(healthy bool, why error) bool {
		if !healthy {
			c.killFor(r, "liveness", why)
		}
		return healthy
	})
}

func (c *container) killFor(r *running, probe string, why error) {
	c.p.event(corev1.EventTypeWarning, "Unhealthy", fmt.Sprintf("%s probe failed: %v", probe, why))
	select {
	case r.stop <- fmt.Sprintf("Container %s failed %s probe, will be restarted", c.spec.Name, probe):
	default:
	}
}

// repeat runs a probe periodically. It calls report whenever the number of consecutive equal
// results has reached the threshold, until report returns false or ctx ends.
func (c *container) repeat(
	ctx context.Context, r *running, pr *corev1.Probe, report func(healthy bool, why error) bool,
) {
	if !sleep(ctx, time.Duration(pr.InitialDelaySeconds)*time.Second) {
		return
	}
	successes, failures := int32(0), int32(0)
	for {
		timeout := time.Duration(max(1, pr.TimeoutSeconds)) * time.Second
		one, cancel := context.WithTimeout(ctx, timeout)
		err := c.handle(one, r, handler{pr.Exec, pr.HTTPGet, pr.TCPSocket, nil})
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			successes, failures = successes+1, 0
		} else {
			successes, failures = 0, failures+1
		}
		if successes >= max(1, pr.SuccessThreshold) && !report(true, nil) {
			return
		}
		if failures >= max(1, pr.FailureThreshold) && !report(false, err) {
			return
		}
		if !sleep(ctx, time.Duration(max(1, pr.PeriodSeconds))*time.Second) {
			return
		}
	}
}

// handler is an action on a container: of a probe or a lifecycle hook.
type handler struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	sleep *corev1.SleepAction
}

func (c *container) handle(ctx context.Context, r *running, h handler) error {
	switch {
	case h.exec != nil:
		return c.handleExec(ctx, r, h.exec.Command)
	case h.http != nil:
		return c.handleHTTP(ctx, h.http)
	case h.tcp != nil:
		addr, err := c.address(h.tcp.Host, h.tcp.Port)
		if err != nil {
			return err
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	case h.sleep != nil:
		sleep(ctx, time.Duration(h.sleep.Seconds)*time.Second)
		return nil
	}
	return errors.New("process nodes do not support this kind of probe")
}

func (c *container) handleExec(ctx context.Context, r *running, command []string) error {
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

// probeClient is the HTTP client of probes: it uses no proxies, does not verify certificates
// (as in a kubelet), and closes connections after each request.
var probeClient = &http.Client{
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as in a kubelet
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (c *container) handleHTTP(ctx context.Context, h *corev1.HTTPGetAction) error {
	addr, err := c.address(h.Host, h.Port)
	if err != nil {
		return err
	}
	scheme := "http"
	if h.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	path := h.Path
	if path == "" || path[0] != '/' {
		path = "/" + path
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+addr+path, nil)
	if err != nil {
		return err
	}
	for _, header := range h.HTTPHeaders {
		req.Header.Add(header.Name, header.Value)
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			req.Host = header.Value
		}
	}
	res, err := probeClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 10<<10)
	if res.StatusCode < 200 || res.StatusCode >= 400 {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", res.StatusCode)
	}
	return nil
}

// address returns the address of a port, which is a number or the name of a port of the
// container.
func (c *container) address(host string, port intstr.IntOrString) (string, error) {
	if host == "" {
		host = c.p.net.Address.String()
	}
	n := int(port.IntVal)
	if port.Type == intstr.String {
		var err error
		if n, err = strconv.Atoi(port.StrVal); err != nil {
			n = 0
		}
		for _, p := range c.spec.Ports {
			if p.Name == port.StrVal {
				n = int(p.ContainerPort)
			}
		}
	}
	if n < 1 || n > 65535 {
		return "", fmt.Errorf("no port %s", port.String())
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), nil
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
	if err := c.handle(ctx, r, handler{h.Exec, h.HTTPGet, h.TCPSocket, h.Sleep}); err != nil {
		c.p.event(corev1.EventTypeWarning, "FailedPreStopHook", err.Error())
	}
}

// postStart runs the container's postStart hook. If that fails, the container is killed.
func (c *container) postStart(r *running) {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PostStart == nil {
		return
	}
	h := c.spec.Lifecycle.PostStart
	if err := c.handle(c.p.ctx, r, handler{h.Exec, h.HTTPGet, h.TCPSocket, h.Sleep}); err != nil {
		c.p.event(corev1.EventTypeWarning, "FailedPostStartHook", err.Error())
		select {
		case r.stop <- "FailedPostStartHook":
		default:
		}
	}
}
