package chart

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/internal/eventually"
)

// monitoring is the directory of the module that has Prometheus' parser.
const monitoring = "../monitoring"

// inMonitoring runs go in that module.
func inMonitoring(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = monitoring
	var output bytes.Buffer
	cmd.Stderr = &output
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, &output)
	}
	return string(out)
}

// operatorCRDs adds the CRDs of Prometheus' operator to the cluster, as in its release.
func (p *plain) operatorCRDs() {
	p.t.Helper()
	const operator = "github.com/prometheus-operator/prometheus-operator"
	inMonitoring(p.t, "mod", "download", operator)
	dir := strings.TrimSpace(inMonitoring(p.t, "list", "-m", "-f", "{{.Dir}}", operator))
	for _, kind := range []string{"servicemonitors", "prometheusrules"} {
		name := kind + ".monitoring.coreos.com"
		data, err := os.ReadFile(filepath.Join(dir, "example/prometheus-operator-crd", "monitoring.coreos.com_"+kind+".yaml"))
		if err != nil {
			p.t.Fatal(err)
		}
		body, err := yaml.ToJSON(data)
		if err != nil {
			p.t.Fatal(err)
		}
		p.must(http.MethodPost, crds, string(body))
		eventually.Holds(p.t, name, func() bool {
			_, err := p.raw(http.MethodGet, "/apis/monitoring.coreos.com/v1/"+kind, "")
			return err == nil
		})
	}
}

// strict makes the API server validate every object of the chart like an applied one,
// and refuse unknown fields.
func (p *plain) strict(args ...string) (kinds map[string]int) {
	p.t.Helper()
	out, output, err := template(p.t, append([]string{"--api-versions=monitoring.coreos.com/v1/ServiceMonitor,monitoring.coreos.com/v1/PrometheusRule"}, args...)...)
	if err != nil {
		p.t.Fatal(err, output)
	}
	api, err := client.New(p.rest, client.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	kinds = map[string]int{}
	docs := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(out)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return kinds
		}
		o := &unstructured.Unstructured{}
		if err != nil || yaml.Unmarshal(doc, o) != nil {
			p.t.Fatalf("%v in:\n%s", err, doc)
		}
		if o.GetKind() == "" {
			continue
		}
		err = api.Patch(p.t.Context(), o, client.Apply, client.DryRunAll, client.ForceOwnership, client.FieldOwner("test"), client.FieldValidation("Strict")) //nolint:staticcheck // of objects without types
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsConflict(err) {
			p.t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
			continue
		}
		kinds[o.GetKind()]++
	}
}

// metricLine is the beginning of a sample.
var metricLine = regexp.MustCompile(`(?m)^([a-zA-Z_:][a-zA-Z0-9_:]*)[ {]`)

// TestMonitoring checks the chart's objects for Prometheus and Grafana with the
// programs that read them: Prometheus' own parser, the API server with the CRDs of
// Prometheus' operator, and a scheduler that has every metric in rules and dashboard.
func TestMonitoring(t *testing.T) {
	files, err := filepath.Abs(filepath.Join(chartDir, "files"))
	if err != nil {
		t.Fatal(err)
	}
	used := strings.Fields(inMonitoring(t, "run", ".", filepath.Join(files, "alerts.yaml"), filepath.Join(files, "dashboard.json")))
	if len(used) < 5 {
		t.Fatalf("the rules and the dashboard use %v", used)
	}

	p := startPlain(t)
	p.operatorCRDs()
	all := append([]string{"--set=metrics.serviceMonitor=true,metrics.prometheusRule=true,metrics.dashboard=true",
		"--set=networkPolicy.enabled=true,networkPolicy.apiServerCIDRs={10.0.0.1/32},api.replicas=2"}, ephemeral...)
	if output, err := p.install("install", ephemeral...); err != nil {
		t.Fatal(err, output)
	}
	kinds := p.strict(all...)
	for _, k := range []string{"ServiceMonitor", "PrometheusRule", "NetworkPolicy", "ConfigMap", "Deployment"} {
		if kinds[k] == 0 {
			t.Errorf("no %s was validated: %v", k, kinds)
		}
	}

	s := p.startScheduler(withDirectory(t))
	p.user("alice", "Administrator")
	p.node("n1")
	p.submit("alice")
	p.must(http.MethodPost, "/apis/berth.hpc/v1alpha1/namespaces/user-alice/batchjobs",
		`{"apiVersion":"berth.hpc/v1alpha1","kind":"BatchJob","metadata":{"name":"j-runs"},"spec":{"job":{"name":"x","batch":{"workDir":"/home/alice"}}}}`)
	eventually.Holds(t, "every metric of rules and dashboard", func() bool {
		known := map[string]bool{}
		for _, m := range metricLine.FindAllStringSubmatch(s.get("/metrics"), -1) {
			known[m[1]] = true
		}
		for _, name := range used {
			if !known[name] {
				return false
			}
		}
		return true
	})
	if text := s.openMetrics(); !exemplar.MatchString(text) || !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("no exemplar of the job that was admitted:\n%s", text)
	}
}

// exemplar matches a sample with the job that it stands for.
var exemplar = regexp.MustCompile(`(?m)^berth_admission_seconds_bucket\{le="[^"]+"\} \d+ # \{job_id="\d+"\} `)

// openMetrics returns the metrics in the format that has exemplars.
func (s *scheduler) openMetrics() string {
	r, err := http.NewRequest(http.MethodGet, "http://"+s.health+"/metrics", nil) //nolint:noctx // on loopback
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
