package agent_test

import (
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/step/affinity"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// ownCPUs returns the CPUs on which this process may run.
func ownCPUs(t *testing.T) []int {
	t.Helper()
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Fatal(err)
	}
	var cpus []int
	for i := 0; len(cpus) < own.Count(); i++ {
		if own.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	if len(cpus) < 2 {
		t.Skip("one CPU: tasks cannot be told apart by their CPUs")
	}
	return cpus
}

// bound runs lines in a job with the CPUs of the list and returns the sorted output of
// each. The command "mine" prints the CPUs and memory that the kernel lets it use.
func bound(t *testing.T, cpus string, count int32, lines ...string) []string {
	t.Helper()
	script := "#!/bin/bash\nexec 2>&1\ncat > mine <<'X'\n#!/bin/sh\n" +
		"echo $SLURM_PROCID $(awk '/^Cpus_allowed_list/ {print $2}' /proc/self/status) $(awk 'NR == 1 {print $2}' /proc/self/numa_maps)\nX\nchmod 755 mine\n"
	for _, l := range lines {
		script += "echo '###'\n" + l + "; echo rc=$?\n"
	}
	g := start(
		t,
		shape{
			cpus:   []int32{count},
			script: script,
			job:    func(j *job.Job) { j.Shape.Tasks = count },
			with: func(g *gang) {
				g.image = []string{wire.EnvCPUBind + "="}
				g.base.Hosts[0].CPUIDs = cpus
				g.base.Hosts[0].GRES = []wire.HostGRES{{Name: "gpu", Count: 2, Indexes: "4,6"}}
			},
		},
	)
	r, out := g.finish()
	if r.Kind != wire.ReportEnded {
		t.Fatalf("report %+v", r)
	}
	out = strings.ReplaceAll(pidRE.ReplaceAllString(out, "[PID]"), itoa(g.id), "JOB")
	parts := strings.Split(out, "###\n")[1:]
	if len(parts) != len(lines) {
		t.Fatalf("%d parts of %d:\n%s", len(parts), len(lines), out)
	}
	for i, p := range parts {
		list := strings.Split(strings.TrimSuffix(p, "\n"), "\n")
		sort.Strings(list)
		parts[i] = strings.Join(list, "\n")
	}
	return parts
}

var pidRE = regexp.MustCompile(`\[\d+\]`)

// TestCPUBinding checks the CPUs on which the kernel lets tasks of a job with two CPUs run.
// The lines are those of the real slurmd with task/affinity.
func TestCPUBinding(t *testing.T) {
	t.Parallel()
	cpus := ownCPUs(t)
	a, b := cpus[0], cpus[1]
	one, two, both := affinity.FormatMask([]int{a}), affinity.FormatMask([]int{b}), affinity.FormatMask([]int{a, b})
	list := affinity.FormatCPUList([]int{a, b})
	report := func(kind, mask0, mask1, done string) string {
		return fmt.Sprintf(
			"cpu-bind=%s - n1, task  0  0 [PID]: mask %s%s\ncpu-bind=%s - n1, task  1  1 [PID]: mask %s%s\nrc=0",
			kind,
			mask0,
			done,
			kind,
			mask1,
			done,
		)
	}
	each := fmt.Sprintf("0 %d default\n1 %d default\n", a, b)
	shared := fmt.Sprintf("0 %s default\n1 %s default\n", list, list)
	tests := []struct{ command, want string }{
		{"srun -n2 ./mine", each + "rc=0"},
		{"srun -n2 --cpu-bind=v ./mine", each + report("MASK", one, two, " set")},
		{"srun -n2 --cpu-bind=v,cores ./mine", each + report("MASK", one, two, " set")},
		{"srun -n2 --cpu-bind=v,threads ./mine", each + report("MASK", one, two, " set")},
		{"srun -n2 --cpu-bind=v,rank ./mine", each + report("RANK", one, two, " set")},
		{fmt.Sprintf("srun -n2 --cpu-bind=v,map_cpu:%d,%d ./mine", b, a),
			fmt.Sprintf("0 %d default\n1 %d default\n", b, a) + report("MAP ", two, one, " set")},
		{fmt.Sprintf("srun -n2 --cpu-bind=v,mask_cpu:%s ./mine", both), shared + report("MASK", both, both, " set")},
		{
			"srun -n1 -c2 --cpu-bind=v ./mine",
			fmt.Sprintf("0 %s default\ncpu-bind=MASK - n1, task  0  0 [PID]: mask %s set\nrc=0", list, both),
		},
		{"srun -n1 --exact ./mine", fmt.Sprintf("0 %d default\nrc=0", a)},
		{"srun -n3 -O ./mine", fmt.Sprintf("0 %s default\n1 %s default\n2 %s default\nrc=0", list, list, list)},
		{"srun -n2 --hint=nomultithread ./mine", each + "rc=0"},
		{"srun -n2 --hint=compute_bound ./mine", each + "rc=0"},
		{"srun -n2 --threads-per-core=1 ./mine", each + "rc=0"},
		{
			"srun -n2 --cpu-bind=none sh -c 'grep Cpus_allowed: /proc/self/status; echo $SLURM_CPU_BIND $SLURM_CPU_BIND_TYPE' | sort -u",
			agentsMask(t) + "\nquiet,none none\nrc=0",
		},
		{
			"srun -n2 sh -c 'echo $SLURM_CPU_BIND_TYPE $SLURM_CPU_BIND_LIST $SLURM_CPU_BIND_VERBOSE $SLURM_CPU_BIND' | sort -u",
			fmt.Sprintf("mask_cpu: %s,%s quiet\nrc=0", one, two),
		},
		{
			"srun -n2 --cpu-bind=v,rank sh -c 'echo $SLURM_CPU_BIND_TYPE $SLURM_CPU_BIND_LIST $SLURM_CPU_BIND_VERBOSE $SLURM_CPU_BIND' 2>&1 | grep -v ^cpu | sort -u",
			"rank verbose verbose,rank\nrc=0",
		},
		{"srun -n1 --cpu-bind=map_cpu:4000 ./mine", "rc=192\n" +
			"srun: Job step aborted\nsrun: error: Application launch failed: Unable to satisfy cpu bind request\n" +
			"srun: error: CPU binding outside of job step allocation, allocated CPUs are: " + both + ".\n" +
			"srun: error: Task launch for StepId=JOB.16 failed on node n1: Unable to satisfy cpu bind request"},
	}
	var commands []string
	for _, c := range tests {
		commands = append(commands, c.command)
	}
	for i, got := range bound(t, list, 2, commands...) {
		if got != tests[i].want {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", tests[i].command, got, tests[i].want)
		}
	}
}

// TestBatchScriptIsBound checks that the batch script, like tasks, has the CPUs of the job.
func TestBatchScriptIsBound(t *testing.T) {
	t.Parallel()
	last := fmt.Sprint(ownCPUs(t)[1])
	show := "awk '/^Cpus_allowed_list/ {print $2}' /proc/self/status"
	for i, got := range bound(t, last, 1, show, "srun -n1 "+show) {
		if got != last+"\nrc=0" {
			t.Errorf("%d: %q, want CPU %s", i, got, last)
		}
	}
}

// TestReportedCPUs checks which CPUs an agent reports: its own, but none where the numbers of
// the allocation are not the kernel's. The scheduler would take them for the CPUs of the job.
func TestReportedCPUs(t *testing.T) {
	t.Parallel()
	own := affinity.FormatCPUList(ownCPUs(t))
	for _, c := range []struct{ bind, want string }{{"", own}, {"none", ""}} {
		g := start(t, shape{cpus: []int32{1}, script: "#!/bin/sh\n", with: func(g *gang) {
			g.image = []string{wire.EnvCPUBind + "=" + c.bind}
		}})
		g.finish()
		if got := g.cpus[0]; got != c.want {
			t.Errorf("%s=%s: the agent reported the CPUs %q, want %q", wire.EnvCPUBind, c.bind, got, c.want)
		}
	}
}

// agentsMask returns the line of /proc/self/status of a process that is not bound.
func agentsMask(t *testing.T) string {
	t.Helper()
	return readLine(t, "/proc/self/status", "Cpus_allowed:")
}

// TestMemoryBinding checks the memory policy that tasks have in the kernel.
func TestMemoryBinding(t *testing.T) {
	t.Parallel()
	cpus := ownCPUs(t)
	if err := unix.SetMemPolicy(unix.MPOL_DEFAULT, nil); err != nil {
		t.Skip("this kernel has no memory policies: ", err)
	}
	list := fmt.Sprint(cpus[0])
	tests := []struct{ command, want string }{
		{"srun -n1 ./mine", fmt.Sprintf("0 %s default\nrc=0", list)},
		{
			"srun -n1 --mem-bind=v,map_mem:0 ./mine",
			fmt.Sprintf("0 %s bind:0\nmem-bind=MAP - n1, task  0  0 [PID]: mask 0x1 set\nrc=0", list),
		},
		{
			"srun -n1 --mem-bind=v,mask_mem:1 ./mine",
			fmt.Sprintf("0 %s bind:0\nmem-bind=MASK - n1, task  0  0 [PID]: mask 0x1 set\nrc=0", list),
		},
		{
			"srun -n1 --mem-bind=v,rank ./mine",
			fmt.Sprintf("0 %s bind:0\nmem-bind=RANK - n1, task  0  0 [PID]: mask 0x1 set\nrc=0", list),
		},
		{
			"srun -n1 --mem-bind=verbose,prefer,map_mem:0 ./mine",
			fmt.Sprintf("0 %s prefer:0\nmem-bind PREFER MAP - n1, task  0  0 [PID]: mask 0x1 set\nrc=0", list),
		},
		{"srun -n1 --mem-bind=none,sort ./mine", fmt.Sprintf("0 %s default\nrc=0", list)},
		{
			"srun -n1 --mem-bind=quiet,local sh -c 'env | grep ^SLURM_MEM_BIND'",
			"SLURM_MEM_BIND=quiet,local\nSLURM_MEM_BIND_LIST=\nSLURM_MEM_BIND_TYPE=local\nSLURM_MEM_BIND_VERBOSE=quiet\nrc=0",
		},
		{
			"srun -n1 --mem-bind=map_mem:999 ./mine",
			"rc=1\nslurmstepd: error: Failed to invoke task plugins: task_p_pre_launch error\n" +
				"slurmstepd: error: NUMA node 999 does not exist; cannot bind local task 0 to it (--mem-bind=map_mem)\nsrun: error: n1: task 0: Exited with exit code 1",
		},
		{
			"SLURM_MEM_BIND=prefer,local srun -n1 sh -c \"awk 'NR == 1 {print \\$2}' /proc/self/numa_maps | cut -d: -f1\"",
			"prefer\nrc=0",
		},
		{"./mine", " default\nrc=0"}, // and the agent's own is unchanged
	}
	var commands []string
	for _, c := range tests {
		commands = append(commands, c.command)
	}
	for i, got := range bound(t, list, 1, commands...) {
		if i == len(tests)-1 {
			got = regexp.MustCompile(`^.* default`).ReplaceAllString(got, " default")
		}
		if got != tests[i].want {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", tests[i].command, got, tests[i].want)
		}
	}
}

// TestGPUsOfTasks checks the variables by which tasks find their GPUs, in a job with the
// GPUs 4 and 6 of its node.
func TestGPUsOfTasks(t *testing.T) {
	t.Parallel()
	cpus := ownCPUs(t)
	show := ` sh -c 'echo $SLURM_PROCID "$CUDA_VISIBLE_DEVICES" "$ROCR_VISIBLE_DEVICES" "$SLURM_STEP_GPUS"'`
	tests := []struct{ command, want string }{
		{"srun -n2" + show, "0 4,6 4,6 4,6\n1 4,6 4,6 4,6\nrc=0"},
		{"srun -n2 --gpu-bind=closest" + show, "0 4,6 4,6 4,6\n1 4,6 4,6 4,6\nrc=0"},
		{"srun -n2 --gpus-per-task=1" + show, "0 4 4 4\n1 6 6 6\nrc=0"},
		{"srun -n2 --gpus-per-task=1 --gres-flags=allow-task-sharing" + show, "0 4,6 4,6 4,6\n1 4,6 4,6 4,6\nrc=0"},
		{"srun -n2 --gpu-bind=single:2" + show, "0 4 4 4\n1 4 4 4\nrc=0"},
		{"srun -n2 --gpu-bind=map_gpu:1,0" + show, "0 6 6 6\n1 4 4 4\nrc=0"},
		{"srun -n2 --tres-bind=gres/gpu:map:1,0" + show, "0 6 6 6\n1 4 4 4\nrc=0"},
		{"srun -n2 --tres-bind=gres/gpu:single:2" + show, "0 4 4 4\n1 4 4 4\nrc=0"},
		{"srun -n2 --gpu-bind=mask_gpu:3,0x2" + show, "0 4,6 4,6 4,6\n1 6 6 6\nrc=0"},
		{"srun -n2 --gpu-bind=none" + show, "0   \n1   \nrc=0"},
		{"srun -n1 --gres=none" + show, "0   \nrc=0"},
		{"srun -n1 --gres=gpu:1" + show, "0 4 4 4\nrc=0"},
		{"srun -n1 --gpus=1" + show, "0 4 4 4\nrc=0"},
		{
			"srun -n1 --gpu-bind=verbose,map_gpu:1 true",
			"gpu-bind: usable_gres=0x40; bit_alloc=0x50; local_inx=0; global_list=6; local_list=1\nrc=0",
		},
		{
			"srun -n2 --gpus-per-task=2 true",
			"rc=1\nsrun: error: Unable to create step for job JOB: More processors requested than permitted",
		},
		{
			"srun -n1 --gres=gpu:5 true",
			"rc=1\nsrun: error: Step requested gres_per_node=gpu:5 is more than the job's gres_per_node=gpu:2\n" +
				"srun: error: Unable to create step for job JOB: Invalid generic resource (gres) specification",
		},
		// Parallel steps have their own GPUs, and one waits for them.
		{
			"srun --exact -n1 --gpus=1 sh -c 'echo a $CUDA_VISIBLE_DEVICES; touch a; until [ -e b ]; do sleep 0.05; done' & until [ -e a ]; do sleep 0.05; done;" +
				"srun --exact -n1 --gpus=1 sh -c 'echo b $CUDA_VISIBLE_DEVICES';" +
				"srun --exact -n1 --gpus=2 --immediate=1 true; touch b; wait",
			"a 4\nb 6\nrc=0\nsrun: error: Unable to create step for job JOB: Requested nodes are busy",
		},
	}
	var commands []string
	for _, c := range tests {
		commands = append(commands, c.command)
	}
	for i, got := range bound(t, affinity.FormatCPUList(cpus[:2]), 2, commands...) {
		if got != tests[i].want {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", tests[i].command, got, tests[i].want)
		}
	}
}

func readLine(t *testing.T, path, prefix string) string {
	t.Helper()
	for line := range strings.SplitSeq(fileText(t, path), "\n") {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	t.Fatalf("%s has no %s", path, prefix)
	return ""
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
