package step

import (
	"reflect"
	"testing"
)

func TestParseBind(t *testing.T) {
	for text, want := range map[string]Bind{
		"":                    {},
		"verbose,cores":       {Verbose: true, Kind: BindCores},
		"cores,v":             {Verbose: true, Kind: BindCores},
		"quiet":               {},
		"v,ldoms":             {Verbose: true, Kind: BindDomains},
		"None":                {Kind: BindNone},
		"rank_ldom":           {Kind: BindRankDomain},
		"one_thread,threads":  {Kind: BindThreads, OneThread: true},
		"map_cpu:7,4":         {Kind: BindMap, List: []string{"7", "4"}},
		"map_cpu:7,4,verbose": {Kind: BindMap, List: []string{"7", "4"}, Verbose: true},
		"v,mask_cpu:0xF0,30":  {Verbose: true, Kind: BindMask, List: []string{"F0", "30"}},
		"mask_cpu:0x10*2":     {Kind: BindMask, List: []string{"10", "10"}},
		"map_ldom:1":          {Kind: BindMapDomain, List: []string{"1"}},
	} {
		if b, err := ParseBind(text); err != nil || !reflect.DeepEqual(b, want) {
			t.Errorf("%q: %+v, %v; want %+v", text, b, err, want)
		}
	}
	for _, bad := range []string{"nonsense", "map_cpu", "map_cpu:x", "mask_cpu:0", "mask_cpu:g", "map_cpu:1*0", "map_cpu:-1", "cores:1"} {
		if _, err := ParseBind(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if got := Mask([]int{0, 1, 8}); got != "0x103" {
		t.Error(got)
	}
}

func TestParseMemBind(t *testing.T) {
	for text, want := range map[string]MemBind{
		"verbose,prefer,sort,map_mem:0,1": {Verbose: true, Prefer: true, Sort: true, Kind: BindMapMemory, List: []string{"0", "1"}},
		"local":                           {Kind: BindLocal},
		"mask_mem:3*2":                    {Kind: BindMaskMemory, List: []string{"3", "3"}},
		"unset":                           {},
	} {
		want.Given = text
		if b, err := ParseMemBind(text); err != nil || !reflect.DeepEqual(b, want) {
			t.Errorf("%q: %+v, %v; want %+v", text, b, err, want)
		}
	}
}

// TestGPUPlaces holds what tasks see of two GPUs against the real srun's
// gres/gpu (22.05.8, two devices on one node).
func TestGPUPlaces(t *testing.T) {
	const first = "Binding to the first device in the allocation instead."
	for _, c := range []struct {
		bind, perTask string
		want          [2][]int
		said          [2]string // the last complaint's end
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
			places, said := b.Places(local, 2)
			last := ""
			if len(said) > 0 {
				last = said[len(said)-1]
			}
			if !reflect.DeepEqual(places, want) || (c.said[local] == "") != (last == "") || !endsWith(last, c.said[local]) {
				t.Errorf("%q, %q: task %d: %v, %q; want %v, %q", c.bind, c.perTask, local, places, said, want, c.said[local])
			}
		}
	}
}

func endsWith(text, end string) bool {
	return len(text) >= len(end) && text[len(text)-len(end):] == end
}
