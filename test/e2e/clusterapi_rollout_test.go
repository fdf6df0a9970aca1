package e2e

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/eventually"
)

// TestClusterAPIRollout changes the template of a MachineDeployment while scripts run on its
// Machines, so that Cluster API replaces them. It needs the program (make e2e-clusterapi).
func TestClusterAPIRollout(t *testing.T) {
	k := newMachineCluster(t)
	r := &rollout{cloudCluster: k, dir: filepath.Dir(k.state), template: "small"}
	r.kill = k.startClusterAPI()
	k.repeat(k.provideMachines)
	k.serveNodes()
	k.repeat(r.checkNames)
	k.createPools(machinePool)
	for _, sub := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"without a budget", r.withoutBudget},
		{"a job keeps its machine", r.keepsMachine},
		{"two jobs on one machine", r.twoJobs},
		{"no node is free", r.noNodeIsFree},
		{"a machine is deleted while a job runs", r.deletedMachine},
		{"Cluster API is killed", r.killed},
	} {
		t.Run(sub.name, sub.run)
	}
}

// rollout is a cluster whose MachineDeployment is updated.
type rollout struct {
	*cloudCluster
	dir      string // of the files that end jobs
	template string // of new Machines
	kill     func() // kills Cluster API
	reported string // what checkNames has reported last
}

// machine has what is needed of a Machine.
type machine struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		InfrastructureRef struct{ Name string } `json:"infrastructureRef"`
	} `json:"spec"`
}

// stays reports whether the Machine neither goes nor is to go.
func (m *machine) stays() bool {
	return m.DeletionTimestamp == nil && m.Annotations["cluster.x-k8s.io/delete-machine"] == ""
}

func (k *cloudCluster) allMachines() []machine {
	var list struct{ Items []machine }
	k.get(machinesPath, &list)
	return list.Items
}

// machineOf returns the Machine that has the name of a node and is not deleted, or nil.
func (k *cloudCluster) machineOf(node string) *machine {
	for _, m := range k.allMachines() {
		if m.Annotations["berth.hpc/node-name"] == node && m.DeletionTimestamp == nil {
			return &m
		}
	}
	return nil
}

// checkNames checks that no name of a node has two Machines or Node objects that stay.
func (r *rollout) checkNames() {
	seen := map[string]string{}
	check := func(kind, object, name string) {
		if other := seen[kind+name]; name != "" && other != "" && r.reported != object {
			r.reported = object
			r.t.Errorf("%s %s and %s are both node %s", kind, other, object, name)
		}
		seen[kind+name] = object
	}
	for _, m := range r.allMachines() {
		if m.stays() {
			check("Machine", m.Name, m.Annotations["berth.hpc/node-name"])
		}
	}
	for _, n := range r.nodes() {
		check("Node", n.Name, n.Annotations["berth.hpc/node-name"])
	}
}

// replicas returns the replicas of the MachineDeployment.
func (r *rollout) replicas() (n int) {
	var d struct{ Spec struct{ Replicas int } }
	r.get(deploymentsPath+"/md", &d)
	return d.Spec.Replicas
}

// update makes the other template that of the MachineDeployment.
func (r *rollout) update(t *testing.T) {
	t.Helper()
	r.template = map[string]string{"small": "other", "other": "small"}[r.template]
	r.request(t, http.MethodPatch, deploymentsPath+"/md", object{"spec": object{"template": object{"spec": object{
		"infrastructureRef": object{"name": r.template},
	}}}}, nil)
}

// isNew reports whether the Machine of a node has the template that new Machines get.
func (r *rollout) isNew(node string) bool {
	m := r.machineOf(node)
	if m == nil {
		return false
	}
	var infra metav1.PartialObjectMetadata
	r.get(testMachinesPath+"/"+m.Spec.InfrastructureRef.Name, &infra)
	return infra.Annotations["cluster.x-k8s.io/cloned-from-name"] == r.template
}

// protect creates the budget by which evictions wait for the jobs of the user of j, as the scheduler
// does with the chart's default.
func (r *rollout) protect(t *testing.T, j waitingJob) {
	t.Helper()
	var pods corev1.PodList
	r.get("/api/v1/pods?labelSelector=berth.hpc/job-id="+j.id, &pods)
	if len(pods.Items) == 0 {
		t.Fatal("the job has no pods")
	}
	namespace := pods.Items[0].Namespace
	r.request(t, http.MethodPost, "/apis/policy/v1/namespaces/"+namespace+"/poddisruptionbudgets", object{
		"metadata": object{"name": "berth-jobs"},
		"spec": object{"minAvailable": math.MaxInt32, "selector": object{"matchExpressions": []object{
			{"key": "berth.hpc/job-id", "operator": "Exists"},
		}}},
	}, nil)
}

// waitingJob is a job that ends when its file exists.
type waitingJob struct{ id, file string }

// start submits a job, and waits until it runs.
func (r *rollout) start(t *testing.T, args ...string) waitingJob {
	t.Helper()
	j := r.submit(t, args...)
	r.shows(t, "RUNNING", "squeue", "-h", "-j", j.id, "-o", "%T")
	return j
}

func (r *rollout) submit(t *testing.T, args ...string) waitingJob {
	t.Helper()
	f, err := os.CreateTemp(r.dir, "ends-")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	args = append([]string{"--parsable", "--requeue", "-C", "machines", "-o", "/dev/null"}, args...)
	return waitingJob{r.succeed(t, "sbatch", append(args, "--wrap", "while [ -e "+f.Name()+" ]; do sleep 0.2; done")...), f.Name()}
}

// end lets the jobs end, each of which must not have been restarted more often than that.
func (r *rollout) end(t *testing.T, restarts int, all ...waitingJob) {
	t.Helper()
	for _, j := range all {
		if err := os.Remove(j.file); err != nil {
			t.Fatal(err)
		}
		r.shows(t, "COMPLETED|0:0", "sacct", "-n", "-X", "-P", "-j", j.id, "-o", "State,ExitCode")
		want := fmt.Sprintf("Restarts=%d ", restarts)
		if out := r.succeed(t, "scontrol", "show", "job", j.id); !strings.Contains(out, want) {
			t.Errorf("not %s:\n%s", want, out)
		}
	}
}

// nothingIsLeft waits until there are no Machines, and checks that none is requested.
func (r *rollout) nothingIsLeft(t *testing.T) {
	t.Helper()
	r.noMachinesAreLeft(t)
	if n := r.replicas(); n != 0 {
		t.Errorf("there are %d replicas", n)
	}
}

// drains waits until Cluster API drains the node.
func (r *rollout) drains(t *testing.T, node string) {
	t.Helper()
	eventually.Holds(t, "Cluster API drains "+node, func() bool {
		return r.machineOf(node) == nil && r.hasNode(func(n *corev1.Node) bool {
			return n.Annotations["berth.hpc/node-name"] == node && n.Spec.Unschedulable
		})
	})
}

func (r *rollout) hasNode(is func(*corev1.Node) bool) bool {
	for _, n := range r.nodes() {
		if is(&n) {
			return true
		}
	}
	return false
}

// runsOn checks the node of a job, and that users see no other names than those of the pool.
func (r *rollout) runsOn(t *testing.T, j waitingJob, node string) {
	t.Helper()
	if out := r.succeed(t, "squeue", "-h", "-j", j.id, "-o", "%T %N"); out != "RUNNING "+node {
		t.Errorf("job %s is %q", j.id, out)
	}
	if out := r.succeed(t, "sinfo", "-h", "-N", "-o", "%N"); strings.Contains(out, "capi-") {
		t.Errorf("sinfo shows\n%s", out)
	}
}

// withoutBudget: evictions of jobs are permitted, and Cluster API evicts the job. It runs again on
// the new Machine.
func (r *rollout) withoutBudget(t *testing.T) {
	j := r.start(t)
	r.update(t)
	r.shows(t, "Restarts=1 ", "scontrol", "show", "job", j.id)
	r.shows(t, "RUNNING", "squeue", "-h", "-j", j.id, "-o", "%T")
	node := r.succeed(t, "squeue", "-h", "-j", j.id, "-o", "%N")
	if !r.isNew(node) {
		t.Errorf("the job is on %s again", node)
	}
	r.protect(t, j)
	r.end(t, 1, j)
	r.nothingIsLeft(t)
}

// keepsMachine: Cluster API waits for the job. Meanwhile nothing is kept for it but its own
// Machine, and another job gets a new one.
func (r *rollout) keepsMachine(t *testing.T) {
	first := r.start(t)
	r.update(t)
	r.drains(t, "m1")
	eventually.Holds(t, "the Machine that nobody uses goes", func() bool { return r.replicas() == 0 && r.machines() == "" })
	r.runsOn(t, first, "m1")
	second := r.start(t)
	r.runsOn(t, second, "m2")
	if !r.isNew("m2") {
		t.Error("m2 has the old template")
	}
	r.end(t, 0, second)
	eventually.Holds(t, "m2 goes", func() bool { return r.replicas() == 0 && len(r.nodes()) == 1 })
	r.runsOn(t, first, "m1")
	r.end(t, 0, first)
	r.nothingIsLeft(t)
}

// twoJobs: the Machine goes when the last job on it has ended.
func (r *rollout) twoJobs(t *testing.T) {
	first, second := r.start(t, "-w", "m1", "-n1"), r.start(t, "-w", "m1", "-n1")
	r.update(t)
	r.drains(t, "m1")
	r.end(t, 0, first)
	r.runsOn(t, second, "m1")
	third := r.start(t)
	if out := r.succeed(t, "squeue", "-h", "-j", third.id, "-o", "%N"); out == "m1" {
		t.Error("a job began on a node that goes")
	}
	r.end(t, 0, second, third)
	r.nothingIsLeft(t)
}

// noNodeIsFree: all nodes of the pool run jobs, so there is no name for the Machine that Cluster
// API adds. It becomes the first node whose Machine has gone.
func (r *rollout) noNodeIsFree(t *testing.T) {
	var running []waitingJob
	for range 3 {
		running = append(running, r.start(t, "--exclusive"))
	}
	waiting := r.submit(t, "--exclusive")
	r.update(t)
	gone := ""
	eventually.Holds(t, "Cluster API drains a node", func() bool {
		for _, name := range []string{"m1", "m2", "m3"} {
			if r.machineOf(name) == nil {
				gone = name
			}
		}
		return gone != ""
	})
	r.drains(t, gone)
	eventually.Holds(t, "a node without a name has come", func() bool {
		return r.hasNode(func(n *corev1.Node) bool { return n.Annotations["berth.hpc/node-name"] == "" })
	})
	for i, j := range running {
		r.runsOn(t, j, fmt.Sprintf("m%d", i+1))
	}
	if out := r.succeed(t, "squeue", "-h", "-j", waiting.id, "-o", "%T"); out != "PENDING" {
		t.Errorf("the job that waits is %s", out)
	}
	i := int(gone[1] - '1')
	r.end(t, 0, running[i])
	r.shows(t, "RUNNING "+gone, "squeue", "-h", "-j", waiting.id, "-o", "%T %N")
	if !r.isNew(gone) {
		t.Errorf("%s has the old template", gone)
	}
	r.end(t, 0, append(slices.Delete(running, i, i+1), waiting)...)
	r.nothingIsLeft(t)
}

// deletedMachine: somebody deletes the Machine of a job. Cluster API counts it as a replica until it
// has gone, and yet another job gets a Machine.
func (r *rollout) deletedMachine(t *testing.T) {
	first := r.start(t)
	r.request(t, http.MethodDelete, machinesPath+"/"+r.machineOf("m1").Name, nil, nil)
	r.drains(t, "m1")
	second := r.start(t)
	r.runsOn(t, first, "m1")
	r.runsOn(t, second, "m2")
	r.end(t, 0, first, second)
	r.nothingIsLeft(t)
}

// killed: Cluster API is killed while it replaces a Machine. Meanwhile a node becomes idle, and a job
// requests another one.
func (r *rollout) killed(t *testing.T) {
	first, second := r.start(t, "-w", "m1"), r.start(t, "-w", "m2")
	r.update(t)
	eventually.Holds(t, "Cluster API begins", func() bool { return len(r.allMachines()) > 2 })
	r.kill()
	r.end(t, 0, second)
	r.shows(t, "m2 idle%", "sinfo", "-h", "-N", "-n", "m2", "-o", "%N %t")
	third := r.submit(t, "-w", "m3")
	r.kill = r.startClusterAPI()
	r.shows(t, "RUNNING m3", "squeue", "-h", "-j", third.id, "-o", "%T %N")
	r.drains(t, "m1")
	r.runsOn(t, first, "m1")
	r.end(t, 0, first, third)
	r.nothingIsLeft(t)
}
