package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// parse sets a component's options from flags, as its own command would.
func parse(component string, sets cliflag.NamedFlagSets, args []string) error {
	fs := pflag.NewFlagSet(component, pflag.ContinueOnError)
	for _, f := range sets.FlagSets {
		fs.AddFlagSet(f)
	}
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("%s: %w", component, err)
	}
	return nil
}

func (c Config) apiServerFlags(etcdURL string) []string {
	p := c.PKI.Path
	disabled := "DefaultStorageClass,StorageObjectInUseProtection,PersistentVolumeClaimResize,ClusterTrustBundleAttest,DefaultIngressClass"
	if c.Plain {
		disabled = "ClusterTrustBundleAttest"
	}
	enabled := ""
	if c.Gate != nil {
		enabled = gateName
	}
	flags := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + p("apiserver.crt"),
		"--tls-private-key-file=" + p("apiserver.key"),
		"--client-ca-file=" + p("ca.crt"),
		"--authorization-mode=RBAC",
		"--anonymous-auth=false",
		"--token-auth-file=" + c.TokenFile,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + p("sa.pub"),
		"--service-account-signing-key-file=" + p("sa.key"),
		"--service-cluster-ip-range=10.255.0.0/16",
		"--kubelet-client-certificate=" + p("kubelet-client.crt"),
		"--kubelet-client-key=" + p("kubelet-client.key"),
		"--kubelet-certificate-authority=" + p("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + p("front-proxy-ca.crt"),
		"--requestheader-allowed-names=" + FrontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p("front-proxy.crt"),
		"--proxy-client-key-file=" + p("front-proxy.key"),
		"--enable-aggregator-routing=false",
		"--admission-control-config-file=" + c.admissionFile(),
		"--disable-admission-plugins=" + disabled,
		"--enable-admission-plugins=" + enabled,
		// On one machine, queues of the server's own would only add delay. fairness.go
		// limits users.
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=4000",
		"--max-mutating-requests-inflight=2000",
		"--profiling=true", // for administrators alone, as every path of /debug
		"--etcd-count-metric-poll-period=0",
		"--shutdown-delay-duration=0",
		// With the first feature the server keeps, for each event that it remembers, the path
		// in a tree by which it would serve further pages of a list from memory: 1.3 kB for
		// each submission. They come from etcd instead. The second one only guards the first.
		"--feature-gates=ListFromCacheSnapshot=false,DetectCacheInconsistency=false",
	}
	if c.AuthenticationConfig != "" {
		flags = append(flags, "--authentication-config="+c.AuthenticationConfig)
	}
	return flags
}

// controllerNames are the controllers of kube-controller-manager that Berth depends on.
var controllerNames = []string{
	"namespace-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"garbage-collector-controller",
	"job-controller",
	"replicaset-controller",
	"deployment-controller",
	"ttl-after-finished-controller",
	"endpointslice-controller",
	"pod-garbage-collector-controller",
	"node-lifecycle-controller",
	"taint-eviction-controller",
	"root-ca-certificate-publisher-controller",
	"resourcequota-controller",
	"resourceclaim-controller",
}

// plainControllers are additional ones for programs that are installed by a chart.
var plainControllers = []string{
	"deployment-controller", "replicaset-controller", "statefulset-controller", "daemonset-controller",
	"disruption-controller", "persistentvolume-binder-controller", "persistentvolumeclaim-protection-controller",
}

func (c Config) controllerManagerFlags() []string {
	p := c.PKI.Path
	controllerNames := controllerNames
	if c.Plain {
		controllerNames = append(slices.Clone(controllerNames), plainControllers...)
	}
	return []string{
		"--kubeconfig=" + c.Kubeconfig,
		"--controllers=" + strings.Join(controllerNames, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--authentication-skip-lookup=true",
		"--profiling=false",
		"--kube-api-qps=5000",
		"--kube-api-burst=10000",
		"--concurrent-job-syncs=20",
		"--concurrent-gc-syncs=20",
		"--concurrent-namespace-syncs=10",
		"--service-account-private-key-file=" + p("sa.key"),
		"--root-ca-file=" + p("ca.crt"),
		"--allocate-node-cidrs=false",
	}
}

// FrontProxyName is the API server's name for aggregated APIs and webhooks; the
// certificate is signed by the front proxy's CA.
const FrontProxyName = "front-proxy-client"

func (c Config) admissionFile() string { return filepath.Join(c.Dir, "admission.yaml") }

// writeAdmission makes the API server present its front-proxy certificate to webhooks,
// so that Berth's can refuse all other clients.
func (c Config) writeAdmission() error {
	kubeconfig := filepath.Join(c.Dir, "webhook-client.kubeconfig")
	client := fmt.Sprintf(
		"apiVersion: v1\nkind: Config\nusers:\n- name: '*'\n  user:\n    client-certificate: %s\n    client-key: %s\n",
		c.PKI.Path("front-proxy.crt"), c.PKI.Path("front-proxy.key"))
	if err := os.WriteFile(kubeconfig, []byte(client), 0o600); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n")
	for _, plugin := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
		fmt.Fprintf(&b, "- name: %s\n  configuration:\n    apiVersion: apiserver.config.k8s.io/v1\n    kind: WebhookAdmissionConfiguration\n    kubeConfigFile: %s\n", plugin, kubeconfig)
	}
	return os.WriteFile(c.admissionFile(), []byte(b.String()), 0o600)
}
