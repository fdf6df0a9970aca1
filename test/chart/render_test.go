package chart

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/test/realnode"
)

var update = flag.Bool("update", false, "write the golden files")

// chartDir is the chart in the tree.
const chartDir = "../../deploy/chart"

// helm runs Helm and returns its output of each stream. kubeconfig may be empty for
// commands without a cluster.
func helm(t *testing.T, kubeconfig string, args ...string) (out, output string, err error) {
	t.Helper()
	program, err := realnode.HelmProgram(t.Context()) // the first call compiles it, which may take long
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

const kubeVersion = "1.36.3"

func template(t *testing.T, args ...string) (out, output string, err error) {
	t.Helper()
	return helm(t, "", append([]string{"template", "berth", chartDir, "--namespace=berth-system", "--kube-version=" + kubeVersion}, args...)...)
}

var alice = []string{"--set", "users[0].name=alice,users[0].uid=1000"}

// TestGolden renders the chart for typical values. CRDs and roles are left out:
// their files are the tree's own.
func TestGolden(t *testing.T) {
	for name, args := range map[string][]string{
		"default": append([]string{"--set", "login.hostKeysSecret=mine"}, alice...), // generated keys would differ each time
		"two-replicas": append([]string{"--set", "scheduler.replicas=2,api.replicas=2,accounting.storage=postgresql,accounting.postgresql.existingSecret=pg",
			"--set", "networkPolicy.enabled=true,networkPolicy.apiServerCIDRs={10.0.0.1/32},networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=watchers", "--set", "home.nfs.server=nfs,home.nfs.path=/home",
			"--set", "login.enabled=false,metrics.serviceMonitor=true,metrics.prometheusRule=true,jobset.embedded=false",
			"--api-versions", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"}, alice...),
	} {
		t.Run(name, func(t *testing.T) {
			out, output, err := template(t, args...)
			if err != nil {
				t.Fatal(err, output)
			}
			got := withoutCRDs(t, out)
			file := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("differs from %s (go test ./test/chart -run Golden -update writes it):\n%s", file, got)
			}
		})
	}
}

// withoutCRDs removes CRDs and roles, and sorts the other documents.
func withoutCRDs(t *testing.T, out string) string {
	t.Helper()
	var docs []string
	crds := 0
	for _, doc := range strings.Split(out, "\n---\n") {
		var o struct{ Kind string }
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		switch o.Kind {
		case "CustomResourceDefinition":
			crds++
		case "", "ClusterRole", "Role":
		default:
			docs = append(docs, strings.Trim(strings.TrimPrefix(doc, "---\n"), "\n")+"\n")
		}
	}
	if crds < 8 {
		t.Errorf("%d CRDs", crds)
	}
	slices.Sort(docs)
	return strings.Join(docs, "---\n")
}

// TestPartitionsOfAnyName: the chart gives the objects of partitions the names that
// scontrol create partition gives them.
func TestPartitionsOfAnyName(t *testing.T) {
	names := []string{"debug", "gpu_short", "GPU_Short", "QA", "Gpu.x", "a+b", "_", strings.Repeat("Long_", 20)}
	partitions := map[string]any{}
	for _, name := range names {
		partitions[name] = map[string]any{"nodes": "n1"}
	}
	values, err := yaml.Marshal(map[string]any{"partitions": partitions})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, values, 0o600); err != nil {
		t.Fatal(err)
	}
	out, output, err := template(t, append([]string{"--values", file}, alice...)...)
	if err != nil {
		t.Fatal(err, output)
	}
	have := map[string]string{}
	for _, doc := range strings.Split(out, "\n    ---\n") { // of a ConfigMap
		var p v1alpha1.Partition
		doc, _, _ = strings.Cut(strings.ReplaceAll(doc, "\n    ", "\n"), "\n---\n")
		if err := yaml.Unmarshal([]byte(strings.TrimPrefix(doc, "    ")), &p); err == nil && p.Kind == "Partition" {
			have[v1alpha1.PartitionName(p.Name, p.Annotations)] = p.Name
		}
	}
	for _, name := range names {
		if want := v1alpha1.PartitionObject(name); have[name] != want {
			t.Errorf("the object of %s is %q, want %s", name, have[name], want)
		}
	}
}

// TestRightsOfNodePools: the scheduler has those that the way needs by which nodes come, and no
// others.
func TestRightsOfNodePools(t *testing.T) {
	roles := []string{"karpenter", "provisioningRequest", "clusterAPI"}
	for _, provider := range append([]string{"program"}, roles...) {
		out, output, err := template(t, append([]string{"--set", "nodePools.provider=" + provider}, alice...)...)
		if err != nil {
			t.Fatal(err, output)
		}
		for _, role := range roles {
			name, want := "  name: berth-"+strings.ToLower(role)+"\n", 0
			if role == provider {
				want = 3 // the role, the binding, and what it refers to
			}
			if got := strings.Count(out, name); got != want {
				t.Errorf("%s: %q occurs %d times, want %d", provider, name, got, want)
			}
			bound := strings.Contains(out, name+"subjects:\n- kind: ServiceAccount\n  name: berth-scheduler\n")
			if bound != (want > 0) {
				t.Errorf("%s: %q bound to the scheduler: %v", provider, name, bound)
			}
		}
	}
}

func TestLint(t *testing.T) {
	out, output, err := helm(t, "", append([]string{"lint", chartDir, "--strict", "--namespace=berth-system", "--kube-version=" + kubeVersion}, alice...)...)
	if err != nil {
		t.Fatal(out, output)
	}
}

// TestRefused renders values that must not be installed.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"another namespace":           {[]string{"--namespace=default"}, "--namespace berth-system"},
		"an old Kubernetes":           {[]string{"--kube-version=1.34.4"}, "requires kubeVersion: >=1.35.0-0"},
		"two replicas with SQLite":    {[]string{"--set", "scheduler.replicas=2"}, "'/accounting/storage': value must be 'postgresql'"},
		"PostgreSQL without a URL":    {[]string{"--set", "accounting.storage=postgresql"}, "set accounting.postgresql.url or accounting.postgresql.existingSecret"},
		"another database":            {[]string{"--set", "accounting.storage=mysql"}, "/accounting/storage"},
		"a misspelt value":            {[]string{"--set", "schedular.replicas=1"}, "additional properties 'schedular' not allowed"},
		"another provider of nodes":   {[]string{"--set", "nodePools.provider=magic"}, "/nodePools/provider"},
		"readers without number":      {[]string{"--set", "api.replicas=many"}, "/api/replicas"},
		"no replica":                  {[]string{"--set", "scheduler.replicas=0"}, "/scheduler/replicas"},
		"a user without a uid":        {[]string{"--set", "users[0].name=bob"}, "missing property 'uid'"},
		"root as a user":              {[]string{"--set", "users[0].name=root,users[0].uid=0"}, "/users/0/uid"},
		"a user's bad name":           {[]string{"--set", "users[0].name=Bob,users[0].uid=7"}, "/users/0/name"},
		"a user name twice":           {append([]string{"--set", "users[1].name=alice,users[1].uid=1001"}, alice...), "alice is there twice"},
		"a uid twice":                 {append([]string{"--set", "users[1].name=bob,users[1].uid=1000"}, alice...), "bob and alice have the same uid"},
		"an invalid key":              {append([]string{"--set", "users[0].keys[0]=PRIVATE"}, alice...), "/users/0/keys/0"},
		"a directory without sources": {[]string{"--set", "directory.enabled=true"}, "names no source of users"},
		"no homes":                    {[]string{"--set", "home.hostPath=null"}, "none of hostPath, nfs and volume is set"},
		"an invalid size":             {[]string{"--set", "accounting.sqlite.size=big"}, "/accounting/sqlite/size"},
		"an invalid CIDR":             {[]string{"--set", "networkPolicy.apiServerCIDRs={here}"}, "/networkPolicy/apiServerCIDRs/0"},
		"an invalid collector":        {[]string{"--set", "tracing.endpoint=collector:4318"}, "/tracing/endpoint"},
		"an invalid peer for metrics": {[]string{"--set", "networkPolicy.metricsFrom[0].name=prometheus"}, "/networkPolicy/metricsFrom/0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, output, err := template(t, c.args...)
			if err == nil || !strings.Contains(output, c.want) {
				t.Errorf("error %v, output:\n%s\nwant %q", err, output, c.want)
			}
		})
	}
}
