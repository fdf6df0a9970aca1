package agent

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
)

// deviceVariables say which GPUs a process uses, to the libraries of their
// makers.
var deviceVariables = []string{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"}

// gpusOfTask are the variables of a task that gets some of its node's GPUs, by
// --gpus-per-task or --gpu-bind; nil: it sees all.
func gpusOfTask(gres []wire.HostGRES, l *step.Launch, local int) []string {
	var ids []int
	for _, g := range gres {
		if g.Name == "gpu" {
			list, err := step.ParseCPUs(g.Indexes)
			if err != nil {
				return nil
			}
			ids = append(ids, list...)
		}
	}
	mine := chooseGPUs(ids, l, local)
	if mine == nil {
		return nil
	}
	var words []string
	for _, id := range mine {
		words = append(words, strconv.Itoa(id))
	}
	list := strings.Join(words, ",")
	out := []string{"SLURM_STEP_GPUS=" + list}
	for _, name := range deviceVariables {
		out = append(out, name+"="+list)
	}
	return out
}

// chooseGPUs are the task's of the node's GPUs; nil: all.
func chooseGPUs(ids []int, l *step.Launch, local int) []int {
	kind, arg, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(l.Command.GPUBind, "verbose,"), "v,"), ":")
	if len(ids) == 0 || kind == "none" {
		return nil
	}
	switch kind {
	case "map_gpu":
		items := strings.Split(arg, ",")
		if n, err := strconv.Atoi(items[local%len(items)]); err == nil && n >= 0 {
			return []int{ids[n%len(ids)]}
		}
		return nil
	case "mask_gpu":
		items := strings.Split(arg, ",")
		places, err := step.MaskCPUs(items[local%len(items)])
		if err != nil {
			return nil
		}
		var mine []int
		for _, p := range places {
			if p < len(ids) {
				mine = append(mine, ids[p])
			}
		}
		return mine
	case "single": // N tasks share one
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 {
			return nil
		}
		return []int{ids[local/n%len(ids)]}
	case "per_task":
	default:
		arg = l.Step.GPUsPerTask
	}
	if i := strings.LastIndexByte(arg, ':'); i >= 0 {
		arg = arg[i+1:]
	}
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 {
		return nil
	}
	var mine []int
	for i := range n {
		mine = append(mine, ids[(local*n+i)%len(ids)])
	}
	return mine
}
