package agent_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// TestCPUBinding looks at what the kernel lets the tasks of a job of two CPUs
// run on, with and without --cpu-bind.
func TestCPUBinding(t *testing.T) {
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
	first, second := cpus[0], cpus[1]
	script := `#!/bin/bash
list() { srun -Q -n1 "$@" awk '/^Cpus_allowed_list/ {print $2}' /proc/self/status; }
[ "$(list --cpu-bind=none)" = "$(awk '/^Cpus_allowed_list/ {print $2}' /proc/$PPID/status)" ] && echo unbound
echo "automatic $(list)"
echo "map $(list --cpu-bind=map_cpu:` + fmt.Sprint(second) + `)"
echo "rank $(srun -Q -l -n2 --cpu-bind=rank awk '/^Cpus_allowed_list/ {print $2}' /proc/self/status | sort | tr '\n' ' ')"
`
	g := start(t, shape{cpus: []int32{2}, script: script, job: func(j *job.Job) { j.Shape.Tasks = 2 }, with: func(g *gang) {
		g.image = []string{wire.EnvCPUBind + "="}
		g.base.Hosts[0].CPUIDs = fmt.Sprintf("%d,%d", first, second)
	}})
	r, out := g.finish()
	want := fmt.Sprintf("unbound\nautomatic %d\nmap %d\nrank 0: %d 1: %d \n", first, second, first, second)
	if r.Kind != wire.ReportEnded || out != want {
		t.Errorf("report %+v:\n%s\nwant\n%s", r, out, want)
	}
}
