package e2e

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/wire"
)

// TestJobEvents: kubectl describe shows why a job was requeued and how it ended; an ordinary
// job leaves no events unless the Cluster's jobEvents is All.
func TestJobEvents(t *testing.T) {
	t.Parallel()
	d := &database{start(t, "--nodes", "2", "--cpus", "1"), t, "", ""}
	admin, _ := callerOf(t, filepath.Join(d.state, "kubeconfig"))
	events := func(id string) string {
		t.Helper()
		code, text := admin.do(t, http.MethodGet, "/apis/berth.hpc/v1alpha1/batchjobs?labelSelector="+wire.LabelJobID+"="+id, nil)
		var list struct {
			Items []struct{ Metadata struct{ UID string } }
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil || code != http.StatusOK || len(list.Items) != 1 {
			t.Fatalf("%v, %d %s", err, code, text)
		}
		code, text = admin.do(t, http.MethodGet, "/api/v1/events?fieldSelector=involvedObject.uid="+list.Items[0].Metadata.UID, nil)
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
		return text
	}
	hasEvent := func(id, message string) {
		t.Helper()
		eventually.Holds(t, "an event about job "+id+": "+message, func() bool {
			return strings.Contains(events(id), `"message":"`+message+`"`)
		})
	}
	ordinary := d.submit()
	d.awaitEnd(ordinary)
	_, out, _ := d.run("sbatch", "--parsable", "-w", "n2", "-o", "/dev/null", "--wrap", "sleep 600")
	lost := strings.TrimSpace(out)
	eventually.Holds(t, "the job runs", func() bool {
		_, out, _ := d.run("squeue", "-h", "-j", lost, "-o", "%T")
		return strings.TrimSpace(out) == "RUNNING"
	})
	d.run("scontrol", "update", "nodename=n2", "state=down", "reason=test")
	hasEvent(lost, "attempt 1 ended as NODE_FAIL, on n2: node n2 was set down")
	if strings.Contains(events(ordinary), `"reason"`) {
		t.Errorf("an ordinary job has the events %s", events(ordinary))
	}
	cluster := object{"apiVersion": "berth.hpc/v1alpha1", "kind": "Cluster", "metadata": object{"name": "berth"}, "spec": object{"jobEvents": "All"}}
	code, text := admin.do(t, http.MethodPost, "/apis/berth.hpc/v1alpha1/clusters", cluster)
	if code != http.StatusCreated {
		t.Fatalf("%d %s", code, text)
	}
	eventually.Holds(t, "an event about a job that completes", func() bool {
		id := d.submit()
		d.awaitEnd(id)
		return strings.Contains(events(id), `"message":"ended as COMPLETED, exit code 0:0, on n1"`)
	})
}
