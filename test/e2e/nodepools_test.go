package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// TestNodePoolsAreObserved: a node that does not come is in the events and in berth doctor,
// as is a node that another autoscaler removes.
func TestNodePoolsAreObserved(t *testing.T) {
	t.Parallel()
	d := &database{start(t, "--slurm-conf", "testdata/pools/slurm.conf"), t, "", ""}
	admin, _ := callerOf(t, filepath.Join(d.state, "kubeconfig"))
	holds := func(what string, is func() bool) {
		t.Helper()
		eventually.Holds(t, what, is)
	}
	// A job keeps the node.
	if code, _, errs := d.run("sbatch", "-w", "cloud1", "-o", "/dev/null", "--wrap", "sleep 1000"); code != 0 {
		t.Fatal(errs)
	}
	holds("the job runs", func() bool {
		_, out, _ := d.run("squeue", "-h", "-o", "%T")
		return out == "RUNNING\n"
	})
	code, text := admin.do(t, http.MethodPatch, "/api/v1/nodes/cloud1", object{"spec": object{"taints": []object{
		{"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"},
	}}}, "Content-Type", "application/merge-patch+json")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	const problem = "cloud1: cluster-autoscaler removes it, too (taint DeletionCandidateOfClusterAutoscaler)"
	holds("berth doctor reports the other autoscaler", func() bool {
		_, out, _ := d.run("berth", "doctor")
		return strings.Contains(out, "node pool cloud: "+problem)
	})

	if err := os.WriteFile(filepath.Join(d.state, "resume-nodes"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := d.run("scontrol", "update", "nodename=cloud2", "state=power_up"); code != 0 {
		t.Fatal(errs)
	}
	holds("berth doctor reports the node", func() bool {
		_, out, _ := d.run("berth", "doctor")
		return strings.Contains(out, "node pool cloud: cloud2: ResumeTimeout reached")
	})
	holds("events about both", func() bool {
		code, text := admin.do(t, http.MethodGet, "/api/v1/events?fieldSelector=involvedObject.kind=NodePool", nil)
		var list struct {
			Items []struct{ Type, Reason, Message string }
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil || code != http.StatusOK {
			t.Fatalf("%v, %d %s", err, code, text)
		}
		found := map[string]bool{}
		for _, e := range list.Items {
			found[e.Type+" "+e.Reason+" "+e.Message] = true
		}
		return found["Warning Problem "+problem] && found["Warning NodeFailed cloud2: ResumeTimeout reached"]
	})
}
