package probe

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestHTTPProbesFindPortsByName(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ready" || r.Host != "web" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	address := netip.MustParseAddrPort(server.Listener.Addr().String())
	target := &Target{
		Host: address.Addr().String(), Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: int32(address.Port())}},
	}
	get := func(path, port string) error {
		return target.Do(t.Context(), Action{HTTP: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromString(port), HTTPHeaders: []corev1.HTTPHeader{{Name: "host", Value: "web"}},
		}})
	}
	if err := get("ready", "http"); err != nil {
		t.Error(err)
	}
	if get("/other", "http") == nil || get("/ready", "nosuch") == nil {
		t.Error("a probe succeeds for an error response or an unknown port")
	}
	if err := target.Do(t.Context(), Action{TCP: &corev1.TCPSocketAction{Port: intstr.FromString("http")}}); err != nil {
		t.Error(err)
	}
}

// A result is reported after as many consecutive checks as its threshold.
func TestRepeatCountsConsecutiveResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results := []bool{true, false, true, true, false, false, false}
		pr := &corev1.Probe{InitialDelaySeconds: 5, PeriodSeconds: 10, SuccessThreshold: 2, FailureThreshold: 3}
		start, next := time.Now(), 0
		var reports []bool
		var at []time.Duration
		Repeat(t.Context(), pr, func(context.Context) error {
			next++
			if results[next-1] {
				return nil
			}
			return errors.New("it is not healthy")
		}, func(healthy bool, _ error) bool {
			reports, at = append(reports, healthy), append(at, time.Since(start))
			return healthy
		})
		if !slices.Equal(reports, []bool{true, false}) ||
			!slices.Equal(at, []time.Duration{35 * time.Second, 65 * time.Second}) {
			t.Errorf("%v at %v", reports, at)
		}
	})
}
