package realnode

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// kubeProxyConfig makes Services work in one network namespace, by nftables,
// and leaves the machine's settings alone.
func kubeProxyConfig(kubeconfig, name string) object {
	return object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode":               "nftables",
		"clientConnection":   object{"kubeconfig": kubeconfig},
		"hostnameOverride":   name,
		"healthzBindAddress": "127.0.0.1:10256",
		"metricsBindAddress": "127.0.0.1:10249",
		"conntrack": object{
			"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
		},
		"nftables": object{"minSyncPeriod": "100ms"},
	}
}

// startProxy makes Services work for the control plane, whose API server calls webhooks
// and aggregated APIs through them. It uses the name of a node, because kube-proxy
// waits for its node to exist.
func (s *Site) startProxy() error {
	config := filepath.Join(s.Dir, "kube-proxy.json")
	if err := writeJSON(config, kubeProxyConfig(s.Kubeconfig, nodeNames[0])); err != nil {
		return err
	}
	_, err := start(exec.Command(s.tools.KubeProxy, "--config="+config), s.log("kube-proxy"))
	return err
}

// makeKubeProxy builds kube-proxy of the module's Kubernetes release.
func makeKubeProxy(ctx context.Context, root string) (string, error) {
	return makeKubernetes(ctx, root, "kube-proxy")
}

// makeKubernetes builds a command of the module's Kubernetes release.
func makeKubernetes(ctx context.Context, root, command string) (string, error) {
	version, err := moduleVersion(ctx, root, "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	return cached(ctx, command, keyOf(version), func(ctx context.Context, path string) error {
		parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
		const pkg = "k8s.io/component-base/version."
		flags := fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s", pkg, version, pkg, parts[0],
			pkg, parts[1])
		return run(ctx, root, nil, "go", "build", "-ldflags", flags, "-o", path, "k8s.io/kubernetes/cmd/"+command)
	})
}
