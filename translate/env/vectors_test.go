package env

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
)

// recorded is a job that ran under Slurm 22.05.8 (testdata/record).
type recorded struct {
	Args, StepArgs, Nodes, Batch []string
	Tasks                        [][]string
}

// different are variables with intentionally different values, and the reason.
var different = map[string]string{
	"SLURM_SUBMIT_DIR":         "part of the submission environment",
	"SLURM_PRIO_PROCESS":       "part of the submission environment",
	"HOSTNAME":                 "in Slurm that of the batch host everywhere; not compared in tasks",
	"ENVIRONMENT":              "tasks inherit it",
	"TMPDIR":                   "tasks inherit it",
	"SLURM_LAUNCH_NODE_IPADDR": "address of srun",
	"SLURM_SRUN_COMM_HOST":     "address of srun",
	"SLURM_UMASK":              "of srun",
	"SLURM_NODE_ALIASES":       "constant",
	"SLURM_STEP_GPUS":          "GPUs are not bound to tasks",
	"SLURM_LABELIO":            "of srun; a step in a step does not inherit it",
	"SLURMD_TRES_BIND":         "GPUs are not bound to tasks",
}

var detail = regexp.MustCompile(`Nodes=(\S+) CPU_IDs=(\S+) Mem=(\d+) GRES=(\S*)`)
var device = regexp.MustCompile(`gpu:(\w+):(\d+)\(IDX:([^)]*)\)`)

// hosts returns the hosts in the output of scontrol show job -d.
func hosts(t *testing.T, lines []string) []wire.Host {
	t.Helper()
	var out []wire.Host
	for _, l := range lines {
		m := detail.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("%q", l)
		}
		names, err := hostlist.Expand(m[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			h := wire.Host{Name: n, CPUs: int32(len(indexes(m[2])))}
			if g := device.FindStringSubmatch(m[4]); g != nil {
				count, _ := strconv.ParseInt(g[2], 10, 64)
				h.GRES = []wire.HostGRES{{Name: "gpu", Type: g[1], Count: count, Indexes: g[3]}}
			}
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b wire.Host) int { return hostlist.Compare(a.Name, b.Name) })
	return out
}

// unfold returns the numbers in 2(x3),1.
func unfold(s string) (out []int32) {
	for part := range strings.SplitSeq(s, ",") {
		n, times, _ := strings.Cut(strings.TrimSuffix(part, ")"), "(x")
		k := 1
		if times != "" {
			k, _ = strconv.Atoi(times)
		}
		v, _ := strconv.Atoi(n)
		out = append(out, slices.Repeat([]int32{int32(v)}, k)...)
	}
	return out
}

func toMap(list []string) map[string]string {
	m := map[string]string{}
	for _, e := range list {
		name, v, _ := strings.Cut(e, "=")
		m[name] = v
	}
	return m
}

func compare(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	names := slices.Sorted(maps.Keys(want))
	for name := range got {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		g, inGot := got[name]
		w, inWant := want[name]
		if different[name] != "" || g == w && inGot == inWant {
			continue
		}
		t.Errorf("%s: %s=%q (set: %v), Slurm has %q (set: %v)", what, name, g, inGot, w, inWant)
	}
}

func input(t *testing.T, r recorded) Input {
	t.Helper()
	p, err := option.Parse(option.Sbatch, r.Args, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Verify(); err != nil {
		t.Fatal(err)
	}
	j := &p.Job
	want := toMap(r.Batch)
	if j.Name == "" {
		j.Name = "probe.sh"
	}
	if j.Shape.MemPerNode == nil && j.Shape.MemPerCPU == nil && j.Shape.MemPerGPU == nil {
		j.Shape.MemPerCPU = new(int64(100)) // DefMemPerCPU of the recorded cluster
	}
	id, _ := strconv.ParseInt(want["SLURM_JOB_ID"], 10, 64)
	w := &wire.Welcome{
		JobID: id, Hosts: hosts(t, r.Nodes), Partition: want["SLURM_JOB_PARTITION"], Account: "root", QOS: "normal",
		ClusterName: "ref",
	}
	for i, n := range unfold(want["SLURM_TASKS_PER_NODE"]) {
		w.Hosts[i].Tasks = n
	}
	return Input{Welcome: w, Job: j}
}

// dropMachineVariables removes variables that depend on the machine.
func dropMachineVariables(m map[string]string) map[string]string {
	for _, n := range []string{"SLURM_CLUSTER_NAME", "SLURM_JOB_UID", "SLURM_JOB_GID", "SLURM_JOB_USER"} {
		delete(m, n)
	}
	return m
}

// dropAgentVariables removes variables of tasks that the agent sets, as they depend
// on the resources of the step. The agent's tests check them.
func dropAgentVariables(got, want map[string]string) map[string]string {
	for _, n := range []string{
		"SLURM_CPUS_ON_NODE", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
		"SLURM_JOB_NAME",
	} {
		delete(got, n)
		delete(want, n)
	}
	return got
}

func TestEnvironments(t *testing.T) {
	f, err := os.Open("../testdata/env.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		t.Run(strings.Join(append(r.Args, r.StepArgs...), " "), func(t *testing.T) {
			in := input(t, r)
			compare(t, "batch", dropMachineVariables(toMap(Batch(in))), toMap(r.Batch))
			if len(r.Tasks) > 0 {
				compareTasks(t, in, r)
			}
		})
	}
	if n < 30 {
		t.Errorf("only %d recordings", n)
	}
}

// compareTasks compares the variables of tasks, with the recorded layout.
func compareTasks(t *testing.T, in Input, r recorded) {
	p, err := option.Parse(option.Srun, r.StepArgs, r.Batch)
	if err != nil {
		t.Fatal(err)
	}
	s := StepShape{
		CPUsPerTask: p.Job.Shape.CPUsPerTask, TasksPerNode: p.Job.Shape.TasksPerNode,
		Distribution: p.Job.Placement.Distribution,
	}
	if s.CPUsPerTask == 0 {
		s.CPUsPerTask = in.Job.Shape.CPUsPerTask
	}
	names, err := hostlist.Expand(toMap(r.Tasks[0])["SLURM_STEP_NODELIST"])
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		s.Nodes = append(s.Nodes, StepNode{Name: n})
	}
	for i, task := range r.Tasks {
		node, _ := strconv.Atoi(toMap(task)["SLURM_NODEID"])
		s.Nodes[node].Tasks = append(s.Nodes[node].Tasks, int32(i))
	}
	for i, task := range r.Tasks {
		want := toMap(task)
		node, _ := strconv.Atoi(want["SLURM_NODEID"])
		local, _ := strconv.Atoi(want["SLURM_LOCALID"])
		in.Welcome.Index = int32(slices.IndexFunc(in.Welcome.Hosts, func(h wire.Host) bool {
			return h.Name == s.Nodes[node].Name
		}))
		got := Merge(r.Batch, append(Step(in, s), Task(s, node, local)...)...)
		compare(t, "task "+strconv.Itoa(i), dropMachineVariables(dropAgentVariables(toMap(got), want)), want)
	}
}
