package realnode

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// Where a node's own files lie; its /run is empty at first.
const (
	containerdSocket = "/run/containerd/containerd.sock"
	containerdFile   = "/run/config/containerd.toml"
	kubeletFile      = "/run/config/kubelet.json"
	proxyFile        = "/run/config/kube-proxy.json"
	cniDir           = "/run/config/cni"
)

// containerdConfig is for containerd 2. The score restriction is needed where
// root lacks CAP_SYS_RESOURCE.
const containerdConfig = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = [
  "io.containerd.nri.v1.nri",
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
  address = "/run/containerd/containerd.sock"

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "PAUSE"

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "/run/config/cni"
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        SystemdCgroup = false
`

// writeConfig writes the files that the node's daemons read.
func (s nodeSpec) writeConfig() error {
	if err := os.MkdirAll(cniDir, 0o755); err != nil {
		return err
	}
	config := strings.Replace(containerdConfig, "PAUSE", PauseImage, 1)
	if err := os.WriteFile(containerdFile, []byte(config), 0o644); err != nil {
		return err
	}
	if err := writeJSON(kubeletFile, s.kubeletConfig()); err != nil {
		return err
	}
	if err := writeJSON(proxyFile, kubeProxyConfig(s.Kubeconfig, s.Name)); err != nil {
		return err
	}
	return writeJSON(filepath.Join(cniDir, "10-site.conflist"), s.cniConfig())
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

type object = map[string]any

// cniConfig is a bridge for the node's pods; the site routes between nodes.
func (s nodeSpec) cniConfig() object {
	bridge := object{
		"type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "ipMasq": false,
		"ipam": object{"type": "host-local", "ranges": []any{[]any{object{"subnet": s.podSubnet()}}}},
	}
	return object{"cniVersion": "1.0.0", "name": "site", "plugins": []any{bridge}}
}

// kubeletConfig is a KubeletConfiguration that leaves the machine's settings
// alone and never evicts: nodes share one machine's disk and memory.
func (s nodeSpec) kubeletConfig() object {
	c := object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address":                  s.address(),
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"failCgroupV1":             false,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               "/" + s.Cgroup,
		"failSwapOn":               false,
		"makeIPTablesUtilChains":   false,
		"resolvConf":               "",
		"clusterDNS":               []string{dnsAddress},
		"clusterDomain":            "cluster.local",
		"tlsCertFile":              s.Cert,
		"tlsPrivateKeyFile":        s.Key,
		"authentication": object{
			"anonymous": object{"enabled": true}, "webhook": object{"enabled": false},
		},
		"authorization": object{"mode": "AlwaysAllow"},
		"evictionHard": object{
			"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%",
			"nodefs.inodesFree": "0%", "imagefs.inodesFree": "0%",
		},
		"imageGCHighThresholdPercent":   100,
		"imageGCLowThresholdPercent":    99,
		"serializeImagePulls":           false,
		"shutdownGracePeriod":           "0s",
		"kubeAPIQPS":                    200,
		"kubeAPIBurst":                  400,
		"nodeStatusUpdateFrequency":     "10s",
		"syncFrequency":                 "10s",
		"localStorageCapacityIsolation": false,
	}
	maps.Copy(c, s.Hardware.Kubelet)
	return c
}

func (s nodeSpec) kubeletFlags() []string {
	return []string{
		"--config=" + kubeletFile,
		"--kubeconfig=" + s.Kubeconfig,
		"--hostname-override=" + s.Name,
		"--node-ip=" + s.address(),
		"--v=1",
	}
}
