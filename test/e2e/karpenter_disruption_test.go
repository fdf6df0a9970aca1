package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/eventually"
)

// undisturbedPool is a pool whose nodes stay when they are idle, so that only Karpenter would
// remove them.
const undisturbedPool = `
- metadata: {name: fine}
  spec:
    nodes: k[1-3]
    resources: {cpu: "2", memory: 1Gi}
    features: [fine]
    bootTimeSeconds: 5
    resumeTimeoutSeconds: 120
    suspendTimeoutSeconds: 2
    karpenter:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux]}
`

// generalPool is a NodePool of Karpenter that removes empty and underused nodes at once, and to
// whose template the nodes of undisturbedPool do not correspond.
const generalPool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [c-2x-amd64-linux]}
      taints: [{key: general, effect: NoSchedule}]
      expireAfter: Never
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 0s
    budgets: [{nodes: "100%"}]
`

// generalClaim is a NodeClaim with a name and labels, a time after which it expires, and
// annotations.
const generalClaim = `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: %s
  labels: %s
  annotations: {karpenter.sh/do-not-disrupt: %q}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [c-2x-amd64-linux]}
  taints: [{key: general, effect: NoSchedule}]
  expireAfter: %s
`

const (
	claimsPath       = "/apis/karpenter.sh/v1/nodeclaims"
	generalPoolsPath = "/apis/karpenter.sh/v1/nodepools"
	annotationKeep   = "karpenter.sh/do-not-disrupt"
	labelGeneral     = "karpenter.sh/nodepool"
)

// TestKarpenterDisruption gives Karpenter reasons to remove nodes of a pool while a job runs on
// one of them and another one is idle. Each time something else shows that the reason suffices.
func TestKarpenterDisruption(t *testing.T) {
	k := newKarpenterCluster(t)
	k.startProgram(append([]string{"FEATURE_GATES=NodeRepair=true"}, karpenterEnv...))
	k.serveNodes()
	k.createPools(undisturbedPool)
	k.create(generalPoolsPath, []byte(generalPool))
	d := &disruptionTest{cloudCluster: k, proceed: filepath.Join(filepath.Dir(k.state), "proceed")}
	d.occupy(t)
	for _, sub := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"an empty node of another pool goes", d.consolidation},
		{"expiry", d.expiry},
		{"drift and consolidation of the pool's own nodes", d.adopted},
		{"the job ends undisturbed", d.ends},
		{"repair of a node that is not ready", d.repair},
	} {
		if !t.Run(sub.name, sub.run) {
			return // the next ones need the job
		}
	}
}

// disruptionTest has a job on k1, and k2 is idle.
type disruptionTest struct {
	*cloudCluster
	job     string
	proceed string                // the job ends when this file exists
	claims  map[string]*nodeClaim // of k1 and k2 when the job began
}

// nodeClaim has what is needed of a NodeClaim.
type nodeClaim struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		NodeName   string             `json:"nodeName"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// claim returns the NodeClaim of that name, or nil.
func (k *cloudCluster) claim(name string) *nodeClaim {
	var list struct{ Items []nodeClaim }
	k.get(claimsPath, &list)
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i]
		}
	}
	return nil
}

// hasCondition reports whether a condition of the NodeClaim of that name is true.
func (k *cloudCluster) hasCondition(name, kind string) bool {
	c := k.claim(name)
	if c == nil {
		return false
	}
	for _, x := range c.Status.Conditions {
		if x.Type == kind {
			return x.Status == metav1.ConditionTrue
		}
	}
	return false
}

// occupy starts the job, and makes k2 come.
func (d *disruptionTest) occupy(t *testing.T) {
	t.Helper()
	d.job = d.succeed(t, "sbatch", "--parsable", "--requeue", "-C", "fine", "-w", "k1", "-o", "/dev/null",
		"--wrap", "until [ -e "+d.proceed+" ]; do sleep 0.2; done")
	d.succeed(t, "scontrol", "update", "nodename=k2", "state=power_up")
	d.shows(t, "RUNNING", "squeue", "-h", "-j", d.job, "-o", "%T")
	d.shows(t, "k1 mix\nk2 idle\nk3 idle~", "sinfo", "-h", "-N", "-n", "k[1-3]", "-o", "%N %t")
	d.claims = map[string]*nodeClaim{}
	for _, name := range []string{"k1", "k2"} {
		eventually.Holds(t, "Karpenter initializes "+name, func() bool { return d.hasCondition(name, "Initialized") })
		d.claims[name] = d.claim(name)
	}
}

// undisturbed checks that the nodes are the same as when the job began, and that it runs still.
func (d *disruptionTest) undisturbed(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		c := d.claim(name)
		if c == nil || c.UID != d.claims[name].UID || c.DeletionTimestamp != nil {
			t.Errorf("the NodeClaim of %s has changed: %+v", name, c)
		}
	}
	if out := d.succeed(t, "squeue", "-h", "-j", d.job, "-o", "%T %N"); out != "RUNNING k1" {
		t.Errorf("the job is %s", out)
	}
	if out := d.succeed(t, "scontrol", "show", "job", d.job); !strings.Contains(out, "Restarts=0") {
		t.Errorf("the job was restarted:\n%s", out)
	}
}

// add creates a NodeClaim that is not Berth's, and waits until its node has come.
func (d *disruptionTest) add(t *testing.T, name, labels, keep, expireAfter string) {
	t.Helper()
	d.create(claimsPath, fmt.Appendf(nil, generalClaim, name, labels, keep, expireAfter))
	eventually.Holds(t, "a node comes for "+name, func() bool {
		c := d.claim(name)
		return c == nil || c.Status.NodeName != ""
	})
}

func (d *disruptionTest) goes(t *testing.T, name string) {
	t.Helper()
	eventually.Holds(t, "the NodeClaim "+name+" goes", func() bool { return d.claim(name) == nil })
}

// consolidation: Karpenter removes an empty node of its own NodePool, but not that of the pool,
// which is idle, too.
func (d *disruptionTest) consolidation(t *testing.T) {
	d.add(t, "general-1", "{"+labelGeneral+": general}", "false", "Never")
	d.goes(t, "general-1")
	d.undisturbed(t, "k1", "k2")
}

// expiry: Karpenter removes a NodeClaim that expires, although it must not be disrupted. Those of
// a pool never expire.
func (d *disruptionTest) expiry(t *testing.T) {
	d.add(t, "general-2", "{}", "true", "10s")
	d.goes(t, "general-2")
	d.undisturbed(t, "k1", "k2")
}

// adopted: somebody labels the nodes as those of a NodePool of Karpenter. They have drifted from its
// template, and one of them is empty, but stay. Without the annotation the empty one goes.
func (d *disruptionTest) adopted(t *testing.T) {
	for _, name := range []string{"k1", "k2"} {
		d.mark(t, name, object{"labels": object{labelGeneral: "general"}})
	}
	for _, name := range []string{"k1", "k2"} {
		eventually.Holds(t, name+" has drifted", func() bool { return d.hasCondition(name, "Drifted") })
	}
	eventually.Holds(t, "Karpenter could consolidate k2", func() bool { return d.hasCondition("k2", "Consolidatable") })
	eventually.Holds(t, "Karpenter says what keeps it from that", func() bool {
		return d.isBlocked(t, "k1") && d.isBlocked(t, "k2")
	})
	// Karpenter looks for nodes to remove every ten seconds: it removes this one, and would have
	// removed the others before.
	d.add(t, "general-3", "{"+labelGeneral+": general}", "false", "Never")
	d.goes(t, "general-3")
	d.undisturbed(t, "k1", "k2")

	d.mark(t, "k2", object{"annotations": object{annotationKeep: nil}})
	d.goes(t, "k2")
	d.undisturbed(t, "k1")
	d.mark(t, "k1", object{"labels": object{labelGeneral: nil}})
}

// mark changes the metadata of a NodeClaim and of its node.
func (d *disruptionTest) mark(t *testing.T, name string, metadata object) {
	t.Helper()
	for _, path := range []string{claimsPath + "/" + name, "/api/v1/nodes/" + d.claims[name].Status.NodeName} {
		d.request(t, http.MethodPatch, path, object{"metadata": metadata}, nil)
	}
}

// isBlocked reports whether an event says that the annotation keeps Karpenter from disrupting a
// node.
func (d *disruptionTest) isBlocked(t *testing.T, name string) bool {
	t.Helper()
	var list struct{ Items []struct{ Message string } }
	d.request(t, http.MethodGet,
		"/api/v1/events?fieldSelector=involvedObject.kind=NodeClaim,reason=DisruptionBlocked,involvedObject.name="+name, nil, &list)
	for _, e := range list.Items {
		if strings.Contains(e.Message, annotationKeep) {
			return true
		}
	}
	return false
}

func (d *disruptionTest) ends(t *testing.T) {
	d.undisturbed(t, "k1")
	if err := os.WriteFile(d.proceed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.shows(t, "COMPLETED|0:0|k1", "sacct", "-n", "-X", "-P", "-j", d.job, "-o", "State,ExitCode,NodeList")
	if out := d.succeed(t, "scontrol", "show", "job", d.job); !strings.Contains(out, "Restarts=0") {
		t.Errorf("the job was restarted:\n%s", out)
	}
}

// repair: Karpenter removes a node that has not been ready for ten minutes, whatever its
// annotations say. Its job, if it may be requeued, runs on another node.
func (d *disruptionTest) repair(t *testing.T) {
	id := d.succeed(t, "sbatch", "--parsable", "--requeue", "-C", "fine", "-w", "k1", "-o", "/dev/null", "--wrap", "sleep 1000")
	defer d.succeed(t, "scancel", id)
	d.shows(t, "RUNNING k1", "squeue", "-h", "-j", id, "-o", "%T %N")
	first := d.claim("k1")
	since := metav1.NewTime(time.Now().Add(-20 * time.Minute))
	d.request(t, http.MethodPatch, "/api/v1/nodes/"+first.Status.NodeName+"/status", object{"status": object{"conditions": []object{{
		"type": "Ready", "status": "False", "reason": "Broken", "lastTransitionTime": since, "lastHeartbeatTime": metav1.Now(),
	}}}}, nil)
	eventually.Holds(t, "Karpenter removes the node", func() bool {
		c := d.claim("k1")
		return c == nil || c.UID != first.UID || c.DeletionTimestamp != nil
	})
	d.shows(t, "Restarts=1", "scontrol", "show", "job", id)
	eventually.Holds(t, "the job runs on another node", func() bool {
		on := d.bound(id)
		return len(on) == 1 && on[0] != first.Status.NodeName
	})
}
