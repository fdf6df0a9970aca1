package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/wire"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fakeCluster is a fake of the cluster: responses by path. Other paths are not found.
type fakeCluster map[string]any

func (p fakeCluster) Config() *kube.Config {
	return &kube.Config{Server: "https://k", Namespace: "user-a", Source: "test"}
}

func (p fakeCluster) respond(path string, out any) error {
	switch a := p[path].(type) {
	case nil:
		return &kube.Error{Kind: kube.NotFound, Code: 404, Message: "not found"}
	case error:
		return a
	case string:
		return json.Unmarshal([]byte(a), out)
	}
	return nil
}

func (p fakeCluster) Get(_ context.Context, path string, _ url.Values, out any) error {
	return p.respond(path, out)
}

func (p fakeCluster) Post(_ context.Context, path string, _ url.Values, _, out any) error {
	return p.respond(path, out)
}

const submit = "/apis/berth.hpc/v1alpha1/namespaces/user-a/batchjobs"

func healthy() fakeCluster {
	return fakeCluster{
		"/version":                                               `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`,
		"/apis/berth.hpc/v1alpha1":                               `{"resources":[{"name":"batchjobs"}]}`,
		"/apis/jobset.x-k8s.io/v1alpha2":                         `{"resources":[{"name":"jobsets"}]}`,
		"/apis/scheduling.x-k8s.io/v1alpha1":                     `{"resources":[{"name":"podgroups"}]}`,
		"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": `{"status":{"allowed":true}}`,
		wire.QueueRoot + "/clusterinfo":                          `{}`,
		wire.QueueRoot + "/nodes":                                `{"items":[{"name":"n1","state":"IDLE"}]}`,
		submit:                                                   `{"spec":{"jobID":7,"submitTime":"2026-01-02T03:04:05.000000Z"}}`,
	}
}

// report adds the scheduler's report about sources of users.
func report(p fakeCluster, text string) {
	data, _ := json.Marshal(map[string]any{"data": map[string]string{wire.DirectoryReport: text}})
	p["/api/v1/namespaces/"+wire.SystemNamespace+"/configmaps/"+wire.DirectoryConfigMap] = string(data)
}

// login adds a login node to a cluster.
func login(p fakeCluster, kind, policy, config string) {
	service, _ := json.Marshal(map[string]any{"spec": map[string]any{"type": kind, "externalTrafficPolicy": policy}})
	data, _ := json.Marshal(map[string]any{"data": map[string]string{"loginnode.yaml": config}})
	p[loginNamespace+"services/berth-login"], p[loginNamespace+"configmaps/berth-login"] = string(service), string(data)
}

func TestDoctor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(fakeCluster)
		want   string // in the output
		fails  bool
	}{
		"healthy": {func(fakeCluster) {}, "ok       the clocks agree", false},
		"no response": {func(p fakeCluster) {
			p["/version"] = &kube.Error{Kind: kube.Unreachable, Message: "connection refused"}
		}, "wrong    the API server at https://k does not respond: connection refused", true},
		"invalid credential": {func(p fakeCluster) { p["/version"] = &kube.Error{Kind: kube.Expired, Message: "Unauthorized"} }, "rejected your credentials: Unauthorized", true},
		"no APIService":      {func(p fakeCluster) { delete(p, wire.QueueRoot+"/clusterinfo") }, "the cluster has no APIService", true},
		"an old Kubernetes":  {func(p fakeCluster) { p["/version"] = `{"major":"1","minor":"34+","gitVersion":"v1.34.1"}` }, "Berth needs 1.35", true},
		"no Berth":           {func(p fakeCluster) { delete(p, "/apis/berth.hpc/v1alpha1") }, "-> install Berth", true},
		"no JobSet":          {func(p fakeCluster) { p["/apis/jobset.x-k8s.io/v1alpha2"] = `{"resources":[]}` }, "the cluster has no jobsets", true},
		"no rights":          {func(p fakeCluster) { p["/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"] = `{"status":{}}` }, "you may not create batchjobs, delete batchjobs, list jobs, create operations", true},
		"no queue": {func(p fakeCluster) {
			p[wire.QueueRoot+"/clusterinfo"] = &kube.Error{Kind: kube.Unavailable, Message: "no endpoints"}
		}, "the queue does not respond: no endpoints", true},
		"no node": {func(p fakeCluster) {
			p[wire.QueueRoot+"/nodes"] = `{"items":[{"name":"n1","state":"DOWN","reason":"gone"}]}`
		}, "none of 1 nodes can run jobs", true},
		"a node is drained": {func(p fakeCluster) {
			p[wire.QueueRoot+"/nodes"] = `{"items":[{"name":"n1","state":"IDLE"},{"name":"n2","state":"IDLE","flags":["DRAIN"],"reason":"disk"}]}`
		}, "warning  1 of 2 nodes are down or drained: n2 disk", false},
		"a device in trouble": {func(p fakeCluster) {
			p[wire.QueueRoot+"/nodes"] = `{"items":[{"name":"n1","state":"IDLE","gres":"gpu:a100:1","deviceTrouble":"gres/gpu:a100 count reported lower than configured (1 < 2)"}]}`
		}, "warning  devices of 1 nodes cannot be used: n1: gres/gpu:a100 count reported lower than configured (1 < 2)", false},
		"a driver that publishes nothing": {func(p fakeCluster) {
			p[wire.QueueRoot+"/nodes"] = `{"items":[{"name":"n1","state":"IDLE","gres":"gpu:a100:1"}]}`
			p["/apis/berth.hpc/v1alpha1/clusters/berth"] = `{"spec":{"devices":[{"name":"gpu","type":"a100","resource":"nvidia.com/gpu"},` +
				`{"name":"gpu","type":"sim","resource":"deviceclass.resource.kubernetes.io/sim"}]}}`
		}, "warning  no node offers gpu:sim (deviceclass.resource.kubernetes.io/sim)", false},
		"devices": {func(p fakeCluster) {
			p[wire.QueueRoot+"/nodes"] = `{"items":[{"name":"n1","state":"IDLE","gres":"gpu:a100:1,shard:4"}]}`
		}, "ok       the nodes offer 2 kinds of generic resources", false},
		"a network that is no tree": {func(p fakeCluster) {
			p[wire.QueueRoot+"/topology"] = `{"items":[{"name":"s0"}],"problems":["node n2 is below the switches s0 and s1; only the first counts"]}`
		}, "warning  the network: node n2 is below the switches s0 and s1", false},
		"a network": {func(p fakeCluster) { p[wire.QueueRoot+"/topology"] = `{"items":[{"name":"s0"},{"name":"s1"}]}` },
			"ok       the network has 2 switches", false},
		"a node pool that shares nodes": {func(p fakeCluster) {
			p["/apis/berth.hpc/v1alpha1/nodepools"] = `{"items":[{"metadata":{"name":"b"},"status":{"problem":"c1 belongs to another pool too, which is used"}}]}`
		}, "warning  node pool b: c1 belongs to another pool too", false},
		"nodes of a pool that do not come": {func(p fakeCluster) {
			p["/apis/berth.hpc/v1alpha1/nodepools"] = `{"items":[{"metadata":{"name":"b"},"status":{"nodes":[` +
				`{"name":"c1","state":"Failed","failures":3,"reason":"ResumeTimeout reached"},` +
				`{"name":"c2","state":"PoweringDown","reason":"ResumeTimeout reached"},{"name":"c3","state":"Running"}]}}]}`
		}, "warning  node pool b: c[1-2]: ResumeTimeout reached", false},
		"refused": {func(p fakeCluster) { p[submit] = &kube.Error{Kind: kube.Denied, Message: "not shared"} }, "a job in /work is rejected: not shared", true},
		"no user": {func(p fakeCluster) {
			p[submit] = &kube.Error{Kind: kube.NotFound, Message: `namespaces "user-x" not found`}
		}, "you are not a user of this cluster", true},
		"no webhook": {func(p fakeCluster) {
			p[submit] = &kube.Error{Kind: kube.Unavailable, Message: "failed calling webhook"}
		}, "admission of jobs fails: failed calling webhook", true},
		"users that share a uid": {func(p fakeCluster) {
			p["/apis/berth.hpc/v1alpha1/users"] = `{"items":[{"metadata":{"name":"b"},"spec":{"uid":7,"namespace":"x"}},{"metadata":{"name":"a"},"spec":{"uid":7,"namespace":"y"}}]}`
		}, "wrong    the users a, b have the same uid 7", true},
		"users": {func(p fakeCluster) {
			p["/apis/berth.hpc/v1alpha1/users"] = `{"items":[{"metadata":{"name":"b"},"spec":{"uid":7,"namespace":"x"}}]}`
		}, "ok       no two of 1 users share a uid", false},
		"users that cannot be listed": {func(p fakeCluster) {
			p["/apis/berth.hpc/v1alpha1/users"] = &kube.Error{Kind: kube.Forbidden, Message: "no"}
		}, "ok       the clocks agree", false},
		"a directory that is away": {func(p fakeCluster) {
			report(p, `{"sources":[{"name":"ldap","users":5,"error":"connection refused","lastSuccess":"2026-01-02T03:00:00Z"}]}`)
		}, "the source ldap of users could not be read, last successfully: 2026-01-02 03:00:00: connection refused", true},
		"a directory with a clash": {func(p fakeCluster) {
			report(p, `{"sources":[{"name":"ldap","users":5}],"problems":["user \"\u001b[2J\" is refused"]}`)
		}, `warning  users: user "\x1b[2J" is refused`, false},
		"the login node sees addresses": {func(p fakeCluster) { login(p, "LoadBalancer", "Local", "{}") }, "ok       the login node sees its clients' addresses", false},
		"the login node sees nodes": {func(p fakeCluster) { login(p, "NodePort", "Cluster", "proxyProtocolFrom: []") },
			"warning  the login node sees the addresses of nodes", false},
		"the login node has a proxy": {func(p fakeCluster) { login(p, "LoadBalancer", "Cluster", "proxyProtocolFrom: [10.0.0.0/8]") }, "by the PROXY protocol from 10.0.0.0/8", false},
		"the login node inside":      {func(p fakeCluster) { login(p, "ClusterIP", "", "{}") }, "for clients inside the cluster", false},
		"the login node is unknown":  {func(p fakeCluster) { login(p, "NodePort", "Cluster", "[") }, "warning  cannot read the configuration of the login node", false},
		"clocks that differ":         {func(p fakeCluster) { p[submit] = `{"spec":{"submitTime":"2026-01-02T03:05:05.000000Z"}}` }, "the scheduler's clock is at 2026-01-02 03:05:05", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := healthy()
			c.change(p)
			var out bytes.Buffer
			process := &stdio.Process{
				Streams: stdio.Streams{Out: &out, Err: &out},
				Now:     func() time.Time { return now },
				Dir:     func() (string, error) { return "/work", nil },
			}
			cmd := New(process, func() (Client, error) { return p, nil })
			cmd.SetArgs(nil)
			cmd.SilenceUsage, cmd.SilenceErrors = true, true
			err := cmd.ExecuteContext(t.Context())
			if !strings.Contains(out.String(), c.want) || (err != nil) != c.fails {
				t.Errorf("%v:\n%swant %q", err, &out, c.want)
			}
		})
	}
}
