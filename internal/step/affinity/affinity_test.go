package affinity

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseBind(t *testing.T) {
	for text, want := range map[string]CPUBind{
		"":                    {},
		"verbose,cores":       {Verbose: true, Kind: Cores},
		"cores,v":             {Verbose: true, Kind: Cores},
		"quiet":               {},
		"v,ldoms":             {Verbose: true, Kind: Domains},
		"None":                {Kind: None},
		"rank_ldom":           {Kind: RankDomain},
		"one_thread,threads":  {Kind: Threads, OneThread: true},
		"map_cpu:7,4":         {Kind: MapCPU, List: []string{"7", "4"}},
		"map_cpu:7,4,verbose": {Kind: MapCPU, List: []string{"7", "4"}, Verbose: true},
		"v,mask_cpu:0xF0,30":  {Verbose: true, Kind: MaskCPU, List: []string{"F0", "30"}},
		"mask_cpu:0x10*2":     {Kind: MaskCPU, List: []string{"10", "10"}},
		"map_ldom:1":          {Kind: MapDomain, List: []string{"1"}},
	} {
		if b, err := ParseCPUBind(text); err != nil || !reflect.DeepEqual(b, want) {
			t.Errorf("%q: %+v, %v; want %+v", text, b, err, want)
		}
	}
	for _, bad := range []string{
		"nonsense", "map_cpu", "map_cpu:x", "mask_cpu:0", "mask_cpu:g", "map_cpu:1*0", "map_cpu:-1", "cores:1",
	} {
		if _, err := ParseCPUBind(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if got := FormatMask([]int{0, 1, 8}); got != "0x103" {
		t.Error(got)
	}
}

func TestParseMemBind(t *testing.T) {
	for text, want := range map[string]MemBind{
		"verbose,prefer,sort,map_mem:0,1": {
			Verbose: true, Prefer: true, Sort: true, Kind: MapMem, List: []string{"0", "1"},
		},
		"local":        {Kind: Local},
		"mask_mem:3*2": {Kind: MaskMem, List: []string{"3", "3"}},
		"unset":        {},
	} {
		want.Given = text
		if b, err := ParseMemBind(text); err != nil || !reflect.DeepEqual(b, want) {
			t.Errorf("%q: %+v, %v; want %+v", text, b, err, want)
		}
	}
}

// TestGPUBindAsRecorded compares which of two GPUs tasks see with what the real
// srun and gres/gpu do (22.05.8, two devices on one node).
func TestGPUBindAsRecorded(t *testing.T) {
	const first = "Binding to the first device in the allocation instead."
	for _, c := range []struct {
		bind, perTask string
		want          [2][]int
		warning       [2]string // end of the last warning
	}{
		{"", "", [2][]int{{0, 1}, {0, 1}}, [2]string{}},
		{"closest", "", [2][]int{{0, 1}, {0, 1}}, [2]string{}},
		{"single:1", "", [2][]int{{0}, {1}}, [2]string{}},
		{"single:2", "", [2][]int{{0}, {0}}, [2]string{}},
		{"map_gpu:1,0", "", [2][]int{{1}, {0}}, [2]string{}},
		{"map_gpu:1", "", [2][]int{{1}, {1}}, [2]string{}},
		{"mask_gpu:3,1", "", [2][]int{{0, 1}, {0}}, [2]string{}},
		{"mask_gpu:0x2,0x1", "", [2][]int{{1}, {0}}, [2]string{}},
		{"per_task:1", "", [2][]int{{0}, {1}}, [2]string{}},
		{"per_task:2", "", [2][]int{{0, 1}, {0}}, [2]string{"", "gpu:per_task:2 does not specify any devices within the allocation for task 1. " + first}},
		{"per_task:3", "", [2][]int{{0, 1}, {0}}, [2]string{"Not enough gpus to bind for gpus per task", first}},
		{"map_gpu:4", "", [2][]int{{0}, {0}}, [2]string{first, first}},
		{"mask_gpu:0x10", "", [2][]int{{0}, {0}}, [2]string{first, first}},
		{"single:0", "", [2][]int{{0}, {1}}, [2]string{"single:0 does not specify a valid number. Defaulting to 1.", "Defaulting to 1."}},
		{"", "1", [2][]int{{0}, {1}}, [2]string{}},
		{"", "tesla:1", [2][]int{{0}, {1}}, [2]string{}},
		{"verbose,single:2", "1", [2][]int{{0}, {0}}, [2]string{}},
	} {
		b := ParseGPUBind(c.bind, c.perTask)
		for local, want := range c.want {
			positions, warnings := b.Select(local, 2, nil)
			last := ""
			if len(warnings) > 0 {
				last = warnings[len(warnings)-1]
			}
			wrong := !reflect.DeepEqual(positions, want) || (c.warning[local] == "") != (last == "")
			if wrong || !strings.HasSuffix(last, c.warning[local]) {
				t.Errorf(
					"%q, %q: task %d: %v, %q; want %v, %q",
					c.bind,
					c.perTask,
					local,
					positions,
					warnings,
					want,
					c.warning[local],
				)
			}
		}
	}
}

// TestGPUsPerTaskBeyondInt checks that a number of GPUs per task that no node has, such
// as the largest int, selects no positions that do not exist.
func TestGPUsPerTaskBeyondInt(t *testing.T) {
	for n, want := range map[string][][]int{
		"9223372036854775807":  {{0, 1}, {0}, {0}, {0}},
		"4611686018427387904":  {{0, 1}, {0}, {0}, {0}},
		"99999999999999999999": {{0}, {1}, {0}, {0}}, // not a number: 1
	} {
		b := ParseGPUBind("per_task:"+n, "")
		for local := range want {
			if positions, _ := b.Select(local, 2, nil); !reflect.DeepEqual(positions, want[local]) {
				t.Errorf("per_task:%s: task %d: %v, want %v", n, local, positions, want[local])
			}
		}
	}
}

// With closest, a task gets the GPUs that are near one of its CPUs; all, if it is not known which
// are; and the first one, with a warning, if none is.
func TestClosestGPUs(t *testing.T) {
	b := ParseGPUBind("closest", "")
	near := [][]int{{0, 1}, {2, 3}, {2, 3}}
	for _, tt := range []struct {
		near [][]int
		cpus []int
		want []int
		warn int
	}{
		{near, []int{1}, []int{0}, 0},
		{near, []int{3}, []int{1, 2}, 0},
		{near, []int{1, 2}, []int{0, 1, 2}, 0},
		{near, []int{9}, []int{0}, 2},
		{[][]int{{0}, nil, {2}}, []int{0}, []int{0, 1, 2}, 0},
		{near, nil, []int{0}, 2},
	} {
		got, warnings := b.Select(0, 3, Overlapping(tt.near, tt.cpus))
		if !reflect.DeepEqual(got, tt.want) || len(warnings) != tt.warn {
			t.Errorf("near %v, CPUs %v: %v %q, want %v", tt.near, tt.cpus, got, warnings, tt.want)
		}
	}
}
