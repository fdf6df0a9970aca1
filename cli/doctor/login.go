package doctor

import (
	"context"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/internal/kube"
)

// loginNamespace is the API path of the namespace of the chart's login node.
const loginNamespace = "/api/v1/namespaces/berth-login/"

// login reports whether the login node sees the addresses of its clients, on which
// penalties, from= of keys and the audit log depend. It reports nothing to callers who
// may not read its Service, and in a cluster without one.
func (d *doctor) login(ctx context.Context) {
	var service struct {
		Spec struct{ Type, ExternalTrafficPolicy string }
	}
	if err := d.client.Get(ctx, loginNamespace+"services/berth-login", nil, &service); err != nil {
		if k := kube.KindOf(err); k != kube.NotFound && k != kube.Forbidden {
			d.warn("", "cannot read the Service of the login node: %v", err)
		}
		return
	}
	proxies, err := d.proxies(ctx)
	switch {
	case err != nil:
		d.warn("", "cannot read the configuration of the login node: %v", err)
	case len(proxies) > 0:
		d.ok("the login node gets its clients' addresses by the PROXY protocol from %s", strings.Join(proxies, ", "))
	case service.Spec.Type == "ClusterIP":
		d.ok("the login node sees its clients' addresses: its Service is for clients inside the cluster")
	case service.Spec.ExternalTrafficPolicy == "Local":
		d.ok("the login node sees its clients' addresses: externalTrafficPolicy is Local")
	default:
		d.warn(
			"upgrade Berth's Helm release with login.service.externalTrafficPolicy=Local, or set login.config.proxyProtocolFrom to a load balancer that sends the PROXY protocol",
			"the login node sees the addresses of nodes instead of its clients' (externalTrafficPolicy is Cluster, no PROXY protocol): no address is penalized, and from= of keys does not work",
		)
	}
}

// proxies returns the load balancers that must use the PROXY protocol.
func (d *doctor) proxies(ctx context.Context) ([]string, error) {
	var text struct{ Data map[string]string }
	if err := d.client.Get(ctx, loginNamespace+"configmaps/berth-login", nil, &text); err != nil {
		if kube.KindOf(err) == kube.NotFound {
			err = nil
		}
		return nil, err
	}
	var config struct {
		ProxyFrom []string `json:"proxyProtocolFrom"`
	}
	err := yaml.Unmarshal([]byte(text.Data["loginnode.yaml"]), &config)
	return config.ProxyFrom, err
}
