// Package probe performs the probes and lifecycle hooks of containers as a kubelet does.
package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Action is what a probe or a lifecycle hook does; one field is set.
type Action struct {
	Exec  *corev1.ExecAction
	HTTP  *corev1.HTTPGetAction
	TCP   *corev1.TCPSocketAction
	Sleep *corev1.SleepAction
}

// Target is the container of an action.
type Target struct {
	Host  string // the address of its pod
	Ports []corev1.ContainerPort
	// Exec runs a command in the container; the error says that it failed.
	Exec func(ctx context.Context, command []string) error
}

// Do performs an action on the container.
func (t *Target) Do(ctx context.Context, a Action) error {
	switch {
	case a.Exec != nil:
		return t.Exec(ctx, a.Exec.Command)
	case a.HTTP != nil:
		return t.get(ctx, a.HTTP)
	case a.TCP != nil:
		addr, err := t.address(a.TCP.Host, a.TCP.Port)
		if err != nil {
			return err
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	case a.Sleep != nil:
		Sleep(ctx, time.Duration(a.Sleep.Seconds)*time.Second)
		return nil
	}
	return errors.New("process nodes do not support this kind of probe")
}

// client is the HTTP client of probes: it uses no proxies, does not verify certificates
// (as in a kubelet), and closes connections after each request.
var client = &http.Client{
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as in a kubelet
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (t *Target) get(ctx context.Context, h *corev1.HTTPGetAction) error {
	addr, err := t.address(h.Host, h.Port)
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
	res, err := client.Do(req)
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
func (t *Target) address(host string, port intstr.IntOrString) (string, error) {
	if host == "" {
		host = t.Host
	}
	n := int(port.IntVal)
	if port.Type == intstr.String {
		var err error
		if n, err = strconv.Atoi(port.StrVal); err != nil {
			n = 0
		}
		for _, p := range t.Ports {
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

// Repeat runs check as the probe specifies. It calls report whenever the number of consecutive equal
// results has reached the threshold, until report returns false or ctx ends.
func Repeat(
	ctx context.Context, pr *corev1.Probe, check func(context.Context) error, report func(healthy bool, why error) bool,
) {
	if !Sleep(ctx, time.Duration(pr.InitialDelaySeconds)*time.Second) {
		return
	}
	successes, failures := int32(0), int32(0)
	for {
		timeout := time.Duration(max(1, pr.TimeoutSeconds)) * time.Second
		one, cancel := context.WithTimeout(ctx, timeout)
		err := check(one)
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
		if !Sleep(ctx, time.Duration(max(1, pr.PeriodSeconds))*time.Second) {
			return
		}
	}
}

// Sleep waits for d and reports whether ctx is still active.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
