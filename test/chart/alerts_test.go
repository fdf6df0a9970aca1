package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/internal/acct/accttest"
	"github.com/berth-hpc/berth/internal/eventually"
)

// outages is a cluster in which a test causes what the alerts are about.
type outages struct {
	*plain
	s     *scheduler
	rules string
	alice *kubernetes.Clientset
	made  int
}

var alertName = regexp.MustCompile(`- alert: (\w+)`)

// TestAlertsFire causes the condition of each alert and evaluates the chart's rules with
// Prometheus' own engine on what the scheduler serves then. How long an alert waits before
// it fires is not tested. The two about slowness get a real scrape with a larger number.
func TestAlertsFire(t *testing.T) {
	rules, err := filepath.Abs(filepath.Join(chartDir, "files/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	o := &outages{plain: startPlain(t), rules: rules}
	if output, err := o.install("install", ephemeral...); err != nil {
		t.Fatal(err, output)
	}
	runbook, err := os.ReadFile("../../docs/admin/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range alertName.FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(string(runbook), "\n## "+m[1]+"\n") {
			t.Errorf("the runbook does not say what to do about %s", m[1])
		}
	}
	database := accttest.Start(t)
	o.s = o.start("berth-scheduler", database.Address, withDirectory(t))
	eventually.Holds(t, "the scheduler leads", func() bool { return o.s.get("/readyz") == "leading" })
	o.user("alice", "Administrator")
	as := rest.CopyConfig(o.rest)
	as.Impersonate = rest.ImpersonationConfig{UserName: "alice"}
	as.QPS, as.Burst = 1000, 1000
	if o.alice, err = kubernetes.NewForConfig(as); err != nil {
		t.Fatal(err)
	}
	o.node("n1")
	o.submit("alice")
	o.job("")
	o.until("no alert, while a job has CPUs", `berth_cpus{use="allocated"} 1`)

	eventually.Holds(t, "the directory has been read", func() bool {
		return strings.Contains(o.scrape(), "\nberth_directory_last_success_timestamp_seconds{")
	})
	healthy := o.scrape()
	o.expect(nil, healthy)
	o.expect([]string{"BerthPlanSlow"}, replaceSample(t, healthy, "berth_plan_seconds", "berth_plan_seconds 6.5"))
	o.expect([]string{"BerthDirectoryAway"}, replaceSample(t, healthy, "berth_directory_last_success_timestamp_seconds",
		`berth_directory_last_success_timestamp_seconds{source="staff"} 1000`))
	slow := `berth_request_seconds_total{request="GET_JOBS"} 1`
	o.expect([]string{"BerthQueueAPISlow"},
		replaceSample(t, healthy, "# HELP berth_requests_total", slow+`0
berth_requests_total{request="GET_JOBS"} 10`),
		replaceSample(t, healthy, "# HELP berth_requests_total", slow+`20
berth_requests_total{request="GET_JOBS"} 20`))

	o.patch("/api/v1/nodes/n1", `{"metadata":{"annotations":{"berth.hpc/state":"down"}},"spec":{"unschedulable":true}}`)
	o.until("the node is down", `berth_nodes{state="DOWN"} 1`)
	o.until("the job has left the node", `berth_cpus{use="allocated"} 0`)
	o.job("") // the first one stays in COMPLETING, because no kubelet ends its pods
	eventually.Holds(t, "the alerts about a node that is down and a job that needs it", func() bool {
		return slices.Equal(o.firing(o.scrape()), []string{"BerthNodesDown", "BerthNothingStarts"})
	})

	o.patch("/api/v1/nodes/n1", `{"metadata":{"annotations":{"berth.hpc/state":null}},"spec":{"unschedulable":null}}`)
	// Both jobs have it if the first one has left COMPLETING meanwhile.
	eventually.Holds(t, "a job has the node", func() bool {
		text := o.scrape()
		return strings.Contains(text, "\nberth_cpus") && !strings.Contains(text, `berth_cpus{use="allocated"} 0`)
	})
	database.Stop()
	for range 1001 {
		o.job(`,"hold":"user"`)
	}
	o.until("accounting is away", `berth_accounting_away 1`)
	eventually.Holds(t, "1,001 records wait", func() bool {
		return slices.Equal(o.firing(o.scrape()), []string{"BerthAccountingAway", "BerthAccountingBacklog"})
	})

	o.s.stop()
	o.expect([]string{"BerthNobodyLeads"}, "")
}

// job submits a job of alice's; more are members of its description.
func (o *outages) job(more string) {
	o.t.Helper()
	o.made++
	body := fmt.Sprintf(`{"apiVersion":"berth.hpc/v1alpha1","kind":"BatchJob","metadata":{"name":"j-%d"},
		"spec":{"job":{"name":"x"%s,"requeue":true,"batch":{"workDir":"/home/alice"}}}}`, o.made, more)
	path := "/apis/berth.hpc/v1alpha1/namespaces/user-alice/batchjobs"
	if b, err := o.alice.CoreV1().RESTClient().Post().AbsPath(path).Body([]byte(body)).DoRaw(o.t.Context()); err != nil {
		o.t.Fatalf("%v %s", err, b)
	}
}

// patch changes an object as an administrator.
func (o *outages) patch(path, body string) {
	o.t.Helper()
	_, err := o.client.CoreV1().RESTClient().Patch("application/merge-patch+json").AbsPath(path).Body([]byte(body)).
		DoRaw(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *outages) scrape() string { return o.s.get("/metrics") }

// until waits until a scrape has the line.
func (o *outages) until(what, line string) {
	o.t.Helper()
	eventually.Holds(o.t, what, func() bool { return strings.Contains(o.scrape(), "\n"+line+"\n") })
}

// replaceSample replaces the line of a scrape that begins with the name.
func replaceSample(t *testing.T, scrape, name, line string) string {
	t.Helper()
	lines := strings.Split(scrape, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, name) })
	if at < 0 {
		t.Fatalf("no %s in:\n%s", name, scrape)
	}
	lines[at] = line
	// The type of a metric must not stand after its first sample.
	lines = slices.DeleteFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "# TYPE "+strings.TrimPrefix(name, "# HELP "))
	})
	return strings.Join(lines, "\n")
}

// firing returns the alerts that are true after scrapes that are a minute apart.
func (o *outages) firing(scrapes ...string) []string {
	o.t.Helper()
	args := []string{"run", ".", "firing", o.rules}
	for i, text := range scrapes {
		file := filepath.Join(o.t.TempDir(), fmt.Sprintf("scrape-%d", i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			o.t.Fatal(err)
		}
		args = append(args, file)
	}
	return strings.Fields(inMonitoring(o.t, args...))
}

// expect checks which alerts are true.
func (o *outages) expect(want []string, scrapes ...string) {
	o.t.Helper()
	if got := o.firing(scrapes...); !slices.Equal(got, want) {
		o.t.Errorf("alerts %v, want %v", got, want)
	}
}
