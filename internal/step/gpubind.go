package step

import (
	"fmt"
	"strconv"
	"strings"
)

// GPUBind is --gpu-bind, read.
type GPUBind struct {
	Given   string
	Verbose bool
	Kind    string // "": every task sees all GPUs of the step
	List    []string
	N       int // of single and per_task
	Bad     bool
}

// Kinds of GPUBind beside BindNone.
const (
	gpuMap     = "map_gpu"
	gpuMask    = "mask_gpu"
	gpuSingle  = "single"   // N tasks share one
	gpuPerTask = "per_task" // N for each task
)

// ParseGPUBind reads --gpu-bind and --gpus-per-task, which have been checked;
// either may be empty.
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
		b.N = max(n, 1)
		b.Bad = err != nil || n < 1
	}
	return b
}

// Places are the GPUs of local task number local, as places among the count
// that the step has on its node, ascending, and what is to be said about that.
func (b *GPUBind) Places(local, count int) (places []int, complaints []string) {
	all := make([]int, count)
	for i := range all {
		all[i] = i
	}
	if b.Bad {
		complaints = append(complaints, fmt.Sprintf("_parse_tres_bind: %s:0 does not specify a valid number. Defaulting to 1.", b.Kind))
	}
	switch b.Kind {
	case gpuSingle:
		return []int{local / b.N % count}, complaints
	case gpuPerTask:
		for i := local * b.N; i < min((local+1)*b.N, count); i++ {
			places = append(places, i)
		}
		if len(places) < b.N {
			complaints = append(complaints, "Not enough gpus to bind for gpus per task")
		}
	case gpuMap:
		if n, err := strconv.Atoi(b.List[local%len(b.List)]); err == nil && n >= 0 && n < count {
			places = []int{n}
		}
	case gpuMask:
		bits, _ := MaskCPUs(b.List[local%len(b.List)]) // a bad one names none
		for _, n := range bits {
			if n < count {
				places = append(places, n)
			}
		}
	default: // closest: on what machine they are near to which CPUs, no plugin says
		return all, complaints
	}
	if len(places) > 0 {
		return places, complaints
	}
	if b.Kind != gpuPerTask {
		complaints = append(complaints, "Invalid --gpu-bind= value specified.")
	}
	return []int{0}, append(complaints, fmt.Sprintf("Bind request gpu:%s does not specify any devices within the allocation for task %d. "+
		"Binding to the first device in the allocation instead.", b.Given, local))
}

// Commas writes numbers as "0,1,3".
func Commas(ids []int) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(id)
	}
	return strings.Join(words, ",")
}
