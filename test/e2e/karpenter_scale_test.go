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
// when these have ended, though Karpenter is killed twice. The jobs are pods, because no agent
// runs on nodes that do not exist.
func TestKarpenterManyNodes(t *testing.T) {
	if os.Getenv("BERTH_TEST_FULL") == "" {
		t.Skip("without BERTH_TEST_FULL=1")
	}
	count, err := strconv.Atoi(cmp.Or(os.Getenv("BERTH_KARPENTER_NODES"), "1000"))
	if err != nil {
		t.Fatal(err)
	}
	k := newKarpenterCluster(t)
	kill := k.startKarpenter()
	var finish atomic.Bool
	k.follow(func(pods []corev1.Pod) {
		k.endPods(pods)
		for i := range pods {
			if finish.Load() {
				k.setPhase(&pods[i], corev1.PodSucceeded)
			} else {
				k.setPhase(&pods[i], corev1.PodRunning)
			}
		}
	})
	k.request(t, http.MethodPatch, "/apis/berth.hpc/v1alpha1/clusters/berth",
		object{"spec": object{"workloadNamespaces": []string{"ml"}}}, nil)
	k.request(t, http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": "ml"}}, nil)
	k.createPools(fmt.Sprintf(manyNodes, count))

	begin := time.Now()
	for i := range count {
		k.request(t, http.MethodPost, "/api/v1/namespaces/ml/pods", scalePod(i), nil)
	}
	k.await(t, "half of the nodes to come", func() bool { return len(k.nodes()) >= count/2 })
	kill()
	kill = k.startKarpenter()
	k.await(t, "every job to run", func() bool {
		return strings.Count(k.succeed(t, "squeue", "-h", "-t", "R", "-o", "%i"), "\n")+1 == count
	})
	nodes := map[string]bool{}
	for _, line := range strings.Fields(k.succeed(t, "squeue", "-h", "-t", "R", "-o", "%N")) {
		nodes[line] = true
	}
	if len(nodes) != count {
		t.Errorf("%d jobs run on %d nodes", count, len(nodes))
	}
	// Karpenter launches nodes again that it had not recorded when it was killed.
	k.await(t, "nodes that were launched twice to go", func() bool { return len(k.nodes()) == count })
	t.Logf("%d nodes came for %d jobs in %v", len(nodes), count, time.Since(begin).Round(time.Second))

	begin = time.Now()
	finish.Store(true)
	k.await(t, "half of the nodes to go", func() bool { return len(k.nodes()) <= count/2 })
	kill()
	k.startKarpenter()
	k.await(t, "no node to be left", func() bool { return k.claims() == "" && len(k.nodes()) == 0 })
	t.Logf("they went in %v", time.Since(begin).Round(time.Second))
	if out := k.succeed(t, "squeue", "-h"); out != "" {
		t.Errorf("jobs are left:\n%s", out)
	}
	ended := k.succeed(t, "sacct", "-a", "-n", "-X", "-P", "-o", "State")
	if n := strings.Count(ended, "COMPLETED"); n != count {
		t.Errorf("%d of %d jobs completed", n, count)
	}
	k.shows(t, fmt.Sprintf("%d idle~", count), "sinfo", "-h", "-n", fmt.Sprintf("many-[0001-%04d]", count), "-o", "%D %t")
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
		"metadata": object{"name": fmt.Sprintf("p%d", i)},
		"spec": object{
			"schedulerName": "berth-scheduler", "restartPolicy": "Never", "nodeSelector": object{"pool": "many"},
			"containers": []object{{
				"name": "main", "image": "none", "resources": object{"requests": object{"cpu": "3"}},
			}},
		},
	}
}
