package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/env"
)

// gpuVariables say which GPUs a process uses, to the libraries of their makers
// and to scripts.
var gpuVariables = []string{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK", "SLURM_STEP_GPUS"}

// gpuEnv tells a task which of the step's GPUs are its own, by --gpu-bind or
// --gpus-per-task.
func (t *tasks) gpuEnv(k *task, local int, environ []string) []string {
	ids := t.node.GPUs
	if t.part.GPUs != nil {
		ids = t.part.GPUs
	}
	b := step.ParseGPUBind(t.launch.Command.GPUBind, t.launch.Step.GPUsPerTask)
	if len(t.node.GPUs) == 0 {
		return environ
	}
	if b.Kind == step.BindNone || t.part.NoGPUs || len(ids) == 0 {
		return env.Without(environ, func(name string) bool { return slices.Contains(gpuVariables, name) })
	}
	places, complaints := b.Places(local, len(ids))
	for _, c := range complaints {
		t.errorLine(k, "slurmstepd: error: "+c)
	}
	mine := make([]string, len(places))
	for i, p := range places {
		mine[i] = strconv.Itoa(ids[p])
	}
	if b.Verbose {
		t.errorLine(k, fmt.Sprintf("gpu-bind: usable_gres=%s; bit_alloc=%s; local_inx=0; global_list=%s; local_list=%s",
			strings.ToLower(step.Mask(pick(ids, places))), strings.ToLower(step.Mask(ids)), strings.Join(mine, ","), step.Commas(places)))
	}
	list := strings.Join(mine, ",")
	set := make([]string, len(gpuVariables), len(gpuVariables)+1)
	for i, name := range gpuVariables {
		set[i] = name + "=" + list
	}
	return env.Merge(environ, append(set, "SLURM_GPUS_ON_NODE="+strconv.Itoa(len(ids)))...)
}

func pick(ids, places []int) []int {
	out := make([]int, len(places))
	for i, p := range places {
		out[i] = ids[p]
	}
	return out
}

// errorLine writes a line as if the task had, to its standard error.
func (t *tasks) errorLine(k *task, line string) {
	t.up.Send(&step.Frame{Type: step.FrameStderr, Task: k.id, Data: []byte(line + "\n")}) //nolint:errcheck // as in send
}
