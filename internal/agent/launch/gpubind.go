package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/affinity"
	"github.com/berth-hpc/berth/translate/env"
)

// gpuVariables are the variables that tell GPU libraries and scripts which GPUs to use.
var gpuVariables = []string{
	"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK", "SLURM_STEP_GPUS",
}

// gpuEnv sets the variables that name the task's own GPUs among those of the
// step, by --gpu-bind or --gpus-per-task.
func (t *tasks) gpuEnv(k *task, local int, environ []string) []string {
	ids := t.node.GPUs
	if t.part.GPUs != nil {
		ids = t.part.GPUs
	}
	b := affinity.ParseGPUBind(t.launch.Command.GPUBind, t.launch.Step.GPUsPerTask)
	if len(t.node.GPUs) == 0 {
		return environ
	}
	if b.Kind == affinity.None || t.part.NoGPUs || len(ids) == 0 {
		return env.Without(environ, func(name string) bool { return slices.Contains(gpuVariables, name) })
	}
	var near []int
	if b.Kind == affinity.GPUClosest && t.node.NearGPUs != nil {
		near = affinity.Overlapping(t.node.NearGPUs(ids), t.cpusOf(local))
	}
	positions, warnings := b.Select(local, len(ids), near)
	for _, w := range warnings {
		t.errorLine(k, "slurmstepd: error: "+w)
	}
	own := make([]int, len(positions))
	for i, p := range positions {
		own[i] = ids[p]
	}
	list := joinInts(own)
	if b.Verbose {
		t.errorLine(k, fmt.Sprintf(
			"gpu-bind: usable_gres=%s; bit_alloc=%s; local_inx=0; global_list=%s; local_list=%s",
			strings.ToLower(
				affinity.FormatMask(own),
			),
			strings.ToLower(affinity.FormatMask(ids)),
			list,
			joinInts(positions),
		))
	}
	set := make([]string, len(gpuVariables), len(gpuVariables)+1)
	for i, name := range gpuVariables {
		set[i] = name + "=" + list
	}
	return env.Merge(environ, append(set, "SLURM_GPUS_ON_NODE="+strconv.Itoa(len(ids)))...)
}

// joinInts returns numbers as "0,1,3".
func joinInts(ids []int) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(id)
	}
	return strings.Join(words, ",")
}

// errorLine writes a line to the task's standard error.
func (t *tasks) errorLine(k *task, line string) {
	_ = t.up.Send(
		&step.Frame{Type: step.FrameStderr, Task: k.id, Data: []byte(line + "\n")},
	) //nolint:errcheck // as in send
}
