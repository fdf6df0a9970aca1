package affinity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// GPUBind is the parsed value of --gpu-bind.
type GPUBind struct {
	Given   string // the option's value, or what --gpus-per-task implies; "": neither was given
	Verbose bool
	Kind    string   // "": every task sees all GPUs of the step
	List    []string // of map_gpu and mask_gpu: the entries, for the local tasks in turn
	N       int      // of single and per_task; at least 1
	Invalid bool     // the value given is no number above 0, and N is 1
}

// Kinds of GPUBind beside None.
const (
	gpuMap     = "map_gpu"
	gpuMask    = "mask_gpu"
	gpuSingle  = "single"   // N tasks share one
	gpuPerTask = "per_task" // N for each task
)

// GPUClosest is the Kind that binds each task to the GPUs near its CPUs.
const GPUClosest = "closest"

// Overlapping returns the positions of the lists in which one of the ids is, or nil if a list is
// empty: it is not known then which ids belong to it.
func Overlapping(lists [][]int, ids []int) []int {
	out := []int{}
	for i, list := range lists {
		if len(list) == 0 {
			return nil
		}
		if slices.ContainsFunc(ids, func(id int) bool { return slices.Contains(list, id) }) {
			out = append(out, i)
		}
	}
	return out
}

// maxGPUs is more GPUs than a node has. Larger numbers mean the same.
const maxGPUs = 1 << 16

// ParseGPUBind parses --gpu-bind and --gpus-per-task, which have been checked
// before; either may be empty.
func ParseGPUBind(text, perTask string) GPUBind {
	b := GPUBind{Given: text}
	text, b.Verbose = strings.CutPrefix(text, "verbose,")
	if !b.Verbose {
		text, b.Verbose = strings.CutPrefix(text, "v,")
	}
	kind, arg, _ := strings.Cut(text, ":")
	if text == "" && perTask != "" {
		if i := strings.LastIndexByte(perTask, ':'); i >= 0 {
			perTask = perTask[i+1:]
		}
		kind, arg = gpuPerTask, perTask
		b.Given = kind + ":" + arg
	}
	b.Kind = kind
	switch kind {
	case gpuMap, gpuMask:
		b.List = strings.Split(arg, ",")
	case gpuSingle, gpuPerTask:
		n, err := strconv.Atoi(arg)
		if b.Invalid = err != nil || n < 1; b.Invalid {
			n = 1
		}
		b.N = min(n, maxGPUs)
	}
	return b
}

// Select returns the GPUs of a local task (counted from 0 on its node), as ascending
// positions among the count GPUs that the step has on the node, and warnings for the
// user. count must be at least 1. near are the positions of the GPUs that are near the task's
// CPUs; nil: it is not known which are.
func (b *GPUBind) Select(local, count int, near []int) (positions []int, warnings []string) {
	all := make([]int, count)
	for i := range all {
		all[i] = i
	}
	if b.Invalid {
		warnings = append(warnings,
			fmt.Sprintf("_parse_tres_bind: %s:0 does not specify a valid number. Defaulting to 1.", b.Kind))
	}
	switch b.Kind {
	case gpuSingle:
		return []int{local / b.N % count}, warnings
	case gpuPerTask:
		for i := local * b.N; i < min((local+1)*b.N, count); i++ {
			positions = append(positions, i)
		}
		if len(positions) < b.N {
			warnings = append(warnings, "Not enough gpus to bind for gpus per task")
		}
	case gpuMap:
		if n, err := strconv.Atoi(b.List[local%len(b.List)]); err == nil && n >= 0 && n < count {
			positions = []int{n}
		}
	case gpuMask:
		bits, _ := ParseMask(b.List[local%len(b.List)]) // an invalid mask selects none
		for _, n := range bits {
			if n < count {
				positions = append(positions, n)
			}
		}
	case GPUClosest:
		if positions = near; near == nil {
			return all, warnings
		}
	default:
		return all, warnings
	}
	if len(positions) > 0 {
		return positions, warnings
	}
	if b.Kind != gpuPerTask {
		warnings = append(warnings, "Invalid --gpu-bind= value specified.")
	}
	return []int{0}, append(warnings, fmt.Sprintf(
		"Bind request gpu:%s does not specify any devices within the allocation for task %d. "+
			"Binding to the first device in the allocation instead.", b.Given, local))
}
