package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// manyNodes is a pool of as many nodes as its first argument says; four digits number them.
const manyNodes = `
- metadata: {name: many}
  spec:
    nodes: many-[0001-%04d]
    resources: {cpu: "3", memory: 1Gi}
    labels: {pool: many}
    bootTimeSeconds: 10
    resumeTimeoutSeconds: 1800
    suspendTimeoutSeconds: 5
    suspendTimeSeconds: 5
    karpenter:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux]}
`

// TestKarpenterManyNodes: a thousand nodes (BERTH_KARPENTER_NODES) come for as many jobs and go
// when these have ended, though Karpenter is killed twice.
func TestKarpenterManyNodes(t *testing.T) {
	many := manyNodesOf(t)
	k := newKarpenterCluster(t)
	kill := k.startKarpenter()
	many.prepare(t, k)
	many.submit(t)
	many.awaitHalfCome(t)
	kill()
	kill = k.startKarpenter()
	many.awaitCome(t)
	many.finish.Store(true)
	many.awaitHalfGone(t)
	kill()
	k.startKarpenter()
	many.awaitGone(t)
}

// manyNodesTest has as many nodes come and go as jobs need. The jobs are pods, because no agent
// runs on nodes that do not exist.
type manyNodesTest struct {
	*cloudCluster
	count  int
	finish atomic.Bool // the pods end
	began  time.Time
}

// manyNodesOf returns a test with as many nodes as the environment says. Without
// BERTH_TEST_FULL=1 the test is skipped, because it takes minutes.
func manyNodesOf(t *testing.T) *manyNodesTest {
	t.Helper()
	if os.Getenv("BERTH_TEST_FULL") == "" {
		t.Skip("without BERTH_TEST_FULL=1")
	}
	count, err := strconv.Atoi(cmp.Or(os.Getenv("BERTH_KARPENTER_NODES"), "1000"))
	if err != nil {
		t.Fatal(err)
	}
	return &manyNodesTest{count: count}
}

// prepare creates the pool on the cluster, and follows what happens on its nodes.
func (k *manyNodesTest) prepare(t *testing.T, c *cloudCluster) {
	t.Helper()
	k.cloudCluster = c
	k.follow(func(pods []corev1.Pod) {
		k.endPods(pods)
		phase := corev1.PodRunning
		if k.finish.Load() {
			phase = corev1.PodSucceeded
		}
		atOnce(len(pods), func(i int) { k.setPhase(&pods[i], phase) })
	})
	k.request(t, http.MethodPatch, "/apis/berth.hpc/v1alpha1/clusters/berth",
		object{"spec": object{"workloadNamespaces": []string{"ml"}}}, nil)
	k.request(t, http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": "ml"}}, nil)
	k.createPools(fmt.Sprintf(manyNodes, k.count))
}

// submit creates the pods.
func (k *manyNodesTest) submit(t *testing.T) {
	t.Helper()
	k.began = time.Now()
	for i := range k.count {
		k.await(t, "a pod to be created", func() bool {
			code, _ := k.try(http.MethodPost, "/api/v1/namespaces/ml/pods", scalePod(i), "application/json")
			return code == http.StatusCreated || code == http.StatusConflict
		})
	}
}

func (k *manyNodesTest) awaitHalfCome(t *testing.T) {
	t.Helper()
	k.await(t, "half of the nodes to come", func() bool { return len(k.nodes()) >= k.count/2 })
}

// awaitCome waits until every job runs on a node of its own.
func (k *manyNodesTest) awaitCome(t *testing.T) {
	t.Helper()
	hosts := map[string]bool{}
	k.await(t, "every job to run", func() bool {
		code, out, _ := k.run("squeue", "-h", "-t", "R", "-o", "%N")
		clear(hosts)
		lines := strings.Fields(out)
		for _, line := range lines {
			hosts[line] = true
		}
		return code == 0 && len(lines) == k.count
	})
	if len(hosts) != k.count {
		t.Errorf("%d jobs run on %d nodes", k.count, len(hosts))
	}
	// Karpenter launches nodes again that it had not recorded when it was killed.
	k.await(t, "nodes that were launched twice to go", func() bool { return len(k.nodes()) == k.count })
	t.Logf("%d nodes came for %d jobs in %v", len(hosts), k.count, time.Since(k.began).Round(time.Second))
	k.began = time.Now()
}

func (k *manyNodesTest) awaitHalfGone(t *testing.T) {
	t.Helper()
	k.await(t, "half of the nodes to go", func() bool { return len(k.nodes()) <= k.count/2 })
}

// awaitGone waits until no node is left, and checks that every job has completed.
func (k *manyNodesTest) awaitGone(t *testing.T) {
	t.Helper()
	k.await(t, "no node to be left", func() bool { return k.claims() == "" && len(k.nodes()) == 0 })
	t.Logf("they went in %v", time.Since(k.began).Round(time.Second))
	if out := k.succeed(t, "squeue", "-h"); out != "" {
		t.Errorf("jobs are left:\n%s", out)
	}
	ended := map[string]int{}
	for _, state := range strings.Fields(k.succeed(t, "sacct", "-a", "-n", "-X", "-P", "-o", "State")) {
		ended[state]++
	}
	if ended["COMPLETED"] != k.count || len(ended) != 1 {
		t.Errorf("of %d jobs so many ended in each state: %v", k.count, ended)
	}
	k.shows(t, fmt.Sprintf("%d idle~", k.count), "sinfo", "-h", "-n", fmt.Sprintf("many-[0001-%04d]", k.count), "-o", "%D %t")
}

// await waits for a condition that takes as long as the nodes are many.
func (k *cloudCluster) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Minute); !holds(); time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s; %d NodeClaims, %d nodes", what, len(strings.Fields(k.claims())), len(k.nodes()))
		}
	}
}

// setPhase reports the phase of a pod as its kubelet does.
func (k *cloudCluster) setPhase(p *corev1.Pod, phase corev1.PodPhase) {
	if p.Status.Phase == phase || p.DeletionTimestamp != nil {
		return
	}
	k.try(http.MethodPatch, podPath(p)+"/status", object{"status": object{"phase": phase}}, "application/merge-patch+json")
}

// scalePod is a pod that needs a node of its own.
func scalePod(i int) object {
	return object{
		"metadata": object{
			"name": fmt.Sprintf("p%d", i), "annotations": object{"berth.hpc/time-limit": "1:00:00"},
		},
		"spec": object{
			"schedulerName": "berth-scheduler", "restartPolicy": "Never", "nodeSelector": object{"pool": "many"},
			"containers": []object{{
				"name": "main", "image": "none", "resources": object{"requests": object{"cpu": "3"}},
			}},
		},
	}
}
