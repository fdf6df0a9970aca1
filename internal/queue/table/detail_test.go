package table_test

import (
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// detailed returns the row of a job with these options.
func detailed(t *testing.T, change func(*job.Job)) status.Job {
	t.Helper()
	c, tab := newTable(nil)
	fake.Feed(c, batchJob(1, "anna", func(b *v1alpha1.BatchJob) {
		b.Spec.Job.Options = map[string]string{}
		change(&b.Spec.Job)
	}))
	return tab.Get(1).Job
}

// TestCPUFrequencies: --cpu-freq as scontrol show job of 22.05.8 shows it.
func TestCPUFrequencies(t *testing.T) {
	for given, want := range map[string]string{
		"":                     "",
		"high":                 "CPU_max_freq=High ",
		"2400000":              "CPU_max_freq=2400000 ",
		"low-highm1":           "CPU_min_freq=Low CPU_max_freq=Highm1 ",
		"1000-2000:OnDemand":   "CPU_min_freq=1000 CPU_max_freq=2000 Governor=OnDemand",
		"MEDIUM:performance":   "CPU_max_freq=Medium Governor=Performance",
		"performance":          "Governor=Performance",
		"UserSpace":            "Governor=UserSpace",
		"low:unknown-governor": "CPU_max_freq=Low ",
		"hignowh":              "CPU_max_freq=High ",
		"5-highm12":            "CPU_min_freq=5 CPU_max_freq=Highm1 ",
		"perfx":                "Governor=Performance",
		"1000x":                "CPU_max_freq=1000 ",
		"-":                    "CPU_min_freq= CPU_max_freq= ",
	} {
		if got := detailed(t, func(j *job.Job) { j.Options["cpu-freq"] = given }).CPUFreq; got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

// TestRecordedOptions: options that are shown as they were given.
func TestRecordedOptions(t *testing.T) {
	no := false
	j := detailed(t, func(j *job.Job) {
		for name, value := range map[string]string{
			"gpu-bind": "single:2", "gpu-freq": "low", "mcs-label": "red", "power": "LEVEL",
			"gres-flags": "x,Disable-Binding", "delay-boot": "5", "network": "ib", "gpus": "a100:4,v100:1",
			"gres": "gres:shard:2,gres/disk:1", "gpus-per-node": "2", "gpus-per-socket": "1",
		} {
			j.Options[name] = value
		}
		j.Batch.KillOnInvalidDep = &no
		j.Placement.Hint = "nomultithread,memory_bound"
		j.Shape.CPUsPerGPU = 3
		j.Licenses = []job.License{{Name: "matlab", Count: 2}, {Name: "ansys", Count: 1}}
	})
	for name, x := range map[string][2]string{
		"TresBind": {j.TRESBind, "gpu:single:2"}, "TresFreq": {j.TRESFreq, "gpu:low"}, "MCS": {j.MCSLabel, "red"},
		"Power": {j.Power, "LEVEL"}, "binding": {j.EnforceBind, "No"}, "kill": {j.KillInvalid, "No"},
		"network": {j.Network, "ib"}, "per job": {j.TRESPerJob, "gres:gpu:a100:4,gres:gpu:v100:1"},
		"per node": {j.GRES, "gpu:2,shard:2,disk:1"}, "per socket": {j.TRESPerSocket, "gres:gpu:1"},
		"CPUs per GPU": {j.CPUsPerTRES, "gres:gpu:3"}, "licenses": {j.Licenses, "matlab:2,ansys:1"},
	} {
		if x[0] != x[1] {
			t.Errorf("%s: %q, want %q", name, x[0], x[1])
		}
	}
	if j.DelayBoot != 300 || j.ThreadsPerCore != 1 || j.CoresPerSocket != 1 {
		t.Errorf("delay %d s, %d threads, %d cores", j.DelayBoot, j.ThreadsPerCore, j.CoresPerSocket)
	}
	if j := detailed(t, func(j *job.Job) { j.Options["power"] = "x"; j.Options["gres-flags"] = "enforce-binding" }); j.Power != "" ||
		j.EnforceBind != "Yes" || j.KillInvalid != "" || j.DelayBoot != 0 {
		t.Errorf("%+v", j)
	}
}

// TestDefaultMemory: a job without --mem has the partition's default, or else the
// cluster's; a default for each CPU precedes one for each node.
func TestDefaultMemory(t *testing.T) {
	mib := func(n int64) *int64 { return &n }
	for name, tt := range map[string]struct {
		shape              job.Shape
		partition, cluster v1alpha1.MemoryLimits
		memory             int64
		perCPU             bool
	}{
		"none":              {},
		"--mem":             {shape: job.Shape{MemPerNode: mib(100)}, cluster: v1alpha1.MemoryLimits{DefMemPerCPU: mib(7)}, memory: 100},
		"--mem=0":           {shape: job.Shape{MemPerNode: mib(0)}, cluster: v1alpha1.MemoryLimits{DefMemPerCPU: mib(7)}},
		"--mem-per-cpu":     {shape: job.Shape{MemPerCPU: mib(50)}, cluster: v1alpha1.MemoryLimits{DefMemPerNode: mib(7)}, memory: 50, perCPU: true},
		"of the cluster":    {cluster: v1alpha1.MemoryLimits{DefMemPerNode: mib(7)}, memory: 7},
		"of both":           {cluster: v1alpha1.MemoryLimits{DefMemPerNode: mib(7), DefMemPerCPU: mib(8)}, memory: 8, perCPU: true},
		"of the partition":  {partition: v1alpha1.MemoryLimits{DefMemPerNode: mib(9)}, cluster: v1alpha1.MemoryLimits{DefMemPerCPU: mib(7)}, memory: 9},
		"of an unset field": {partition: v1alpha1.MemoryLimits{MaxMemPerNode: mib(9)}, cluster: v1alpha1.MemoryLimits{DefMemPerCPU: mib(7)}, memory: 7, perCPU: true},
	} {
		c, tab := newTable(nil)
		fake.Feed(c, fake.Settings(v1alpha1.ClusterSpec{MemoryLimits: tt.cluster}),
			fake.Partition("main", func(s *v1alpha1.PartitionSpec) { s.MemoryLimits = tt.partition }),
			batchJob(1, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Shape = tt.shape }))
		if j := tab.Get(1); j.MinMemory != tt.memory || j.MemoryPerCPU != tt.perCPU {
			t.Errorf("%s: %d MiB, per CPU %v", name, j.MinMemory, j.MemoryPerCPU)
		}
	}
}

// TestAllocationOnEachNode: the layout of scontrol show job -d, with the GPUs by index.
func TestAllocationOnEachNode(t *testing.T) {
	c, tab := newTable(nil)
	fake.Feed(c, batchJob(1, "anna", func(b *v1alpha1.BatchJob) {
		onNodes(b)
		nodes := b.Status.Allocation.Nodes
		nodes[0].CPUIDs, nodes[0].Memory = "0-1", 512
		nodes[0].GRES = []v1alpha1.GRESAllocation{
			{Name: "gpu", Type: "a100", Count: 2, Indexes: "0,3"}, {Name: "shard", Count: 4},
		}
		nodes[1].GRES = []v1alpha1.GRESAllocation{{Name: "gpu", Count: 1}}
	}))
	if got, want := tab.Get(1).Layout, "n1 0-1 512 gpu:a100:2(IDX:0,3),shard:4;n2  0 gpu:1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFlagsAndListsOfASlurm: features with commas, lists of nodes and the wait for a boot as
// scontrol show job of 22.05.8 shows them.
func TestFlagsAndListsOfASlurm(t *testing.T) {
	j := detailed(t, func(j *job.Job) {
		j.Placement.Constraint, j.Placement.Prefer = "[fast|slow],red", "fast,red"
		j.Placement.NodeList, j.Placement.Exclude = []string{"n3", "n1"}, []string{"n4", "n2"}
		j.Options["delay-boot"], j.Options["kill-on-invalid-dep"] = "-1", "yes,no"
	})
	if j.Features != "[fast|slow]&red" || j.Prefer != "fast&red" || j.ReqNodes != "n[1,3]" || j.ExcNodes != "n[2,4]" ||
		j.DelayBoot != -1 || j.KillInvalid != "YesKillOInInvalidDependent=No" {
		t.Errorf("%+v", j)
	}
	// scontrol update keeps the lists as they were written.
	j = detailed(t, func(j *job.Job) {
		j.Placement.NodeList, j.Placement.Exclude = []string{"n3", "n1"}, []string{"n4", "n2"}
		j.Options["nodelist"], j.Options["exclude"] = "n3,n1", "n4,n2"
		j.Options["cluster-constraint"] = "fast"
	})
	if j.ReqNodes != "n3,n1" || j.ExcNodes != "n4,n2" || j.ClusterFeature != "fast" {
		t.Errorf("%s, %s, %s", j.ReqNodes, j.ExcNodes, j.ClusterFeature)
	}
}

// MinCPUsNode of scontrol show job of Slurm 22.05.8.
func TestLeastCPUsOfANode(t *testing.T) {
	for _, tt := range []struct {
		shape job.Shape
		want  int32
	}{
		{job.Shape{}, 1},
		{job.Shape{TasksPerNode: 2, CPUsPerTask: 2}, 4},
		{job.Shape{TasksPerNode: 2, Overcommit: true}, 1},
		{job.Shape{TasksPerNode: 2, Tasks: 1}, 1},
		{job.Shape{TasksPerNode: 4, Tasks: 2}, 4},
		{job.Shape{TasksPerNode: 2, CPUsPerTask: 2, Overcommit: true}, 2},
		{job.Shape{TasksPerNode: 4, MinCPUs: 2, Overcommit: true}, 2},
		{job.Shape{MinCPUs: 3, Overcommit: true}, 3},
	} {
		if got := detailed(t, func(j *job.Job) { j.Shape = tt.shape }).MinCPUs; got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.shape, got, tt.want)
		}
	}
}
