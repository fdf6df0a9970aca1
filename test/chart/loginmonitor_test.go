package chart

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// object has the fields of a rendered object that are tested here.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Spec struct {
		Selector  any
		Ports     []struct{ Name, TargetPort any }
		Endpoints []struct{ Port string }
		Template  struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Containers []struct{ Ports []struct{ Name string } }
			}
		}
	}
}

func (o *object) selects(labels map[string]string) bool {
	all, ok := o.Spec.Selector.(map[string]any)
	if inner, nested := all["matchLabels"].(map[string]any); nested {
		all = inner
	}
	for k, v := range all {
		ok = ok && labels[k] == v
	}
	return ok && len(all) > 0
}

// TestLoginNodeIsMonitored: with Prometheus' operator the monitor selects the Service of the
// metrics, which selects the pods; without it there is no monitor.
func TestLoginNodeIsMonitored(t *testing.T) {
	find := func(args ...string) func(kind, name string) *object {
		out, output, err := template(t, append(append([]string{}, alice...), args...)...)
		if err != nil {
			t.Fatal(err, output)
		}
		return func(kind, name string) *object {
			for _, doc := range strings.Split(out, "\n---\n") {
				var o object
				if yaml.Unmarshal([]byte(doc), &o) == nil && o.Kind == kind && o.Metadata.Name == name {
					return &o
				}
			}
			return nil
		}
	}
	for _, off := range []string{"metrics.serviceMonitor=false", "metrics.serviceMonitor=auto", "metrics.serviceMonitor=true,login.enabled=false"} {
		if find("--set", off)("ServiceMonitor", "berth-login") != nil {
			t.Errorf("%s: there is a ServiceMonitor", off)
		}
	}
	on := find("--set", "metrics.serviceMonitor=true,metrics.labels.release=prometheus")
	monitor, service, pods := on("ServiceMonitor", "berth-login"), on("Service", "berth-login-metrics"), on("StatefulSet", "berth-login")
	if monitor == nil || service == nil || pods == nil {
		t.Fatalf("monitor %v, Service %v, pods %v", monitor, service, pods)
	}
	if monitor.Metadata.Namespace != service.Metadata.Namespace || !monitor.selects(service.Metadata.Labels) || monitor.Metadata.Labels["release"] != "prometheus" {
		t.Errorf("the monitor does not select the Service: %+v, %+v", monitor, service)
	}
	if on("Service", "berth-login") == nil || monitor.selects(on("Service", "berth-login").Metadata.Labels) || on("ServiceMonitor", "berth").selects(service.Metadata.Labels) {
		t.Error("a monitor selects a Service of another")
	}
	if !service.selects(pods.Spec.Template.Metadata.Labels) || monitor.Spec.Endpoints[0].Port != service.Spec.Ports[0].Name {
		t.Errorf("the Service does not select the pods: %+v", service)
	}
	var ports []string
	for _, p := range pods.Spec.Template.Spec.Containers[0].Ports {
		ports = append(ports, p.Name)
	}
	if target, _ := service.Spec.Ports[0].TargetPort.(string); !slices.Contains(ports, target) {
		t.Errorf("port %q of pods with %q", target, ports)
	}
}
