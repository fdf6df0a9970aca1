package bind

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"github.com/berth-hpc/berth/internal/step/affinity"
)

// machine returns the topology of a machine with two sockets, each a NUMA node of two
// cores with two threads: CPU n and CPU n+4 are one core, and pairs of CPUs alternate
// between the sockets.
func machine(t *testing.T) *Topology {
	t.Helper()
	sys := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(sys, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for id := range 8 {
		dir := "devices/system/cpu/cpu" + strconv.Itoa(id) + "/topology/"
		write(dir+"physical_package_id", strconv.Itoa(id%4/2))
		write(dir+"core_id", strconv.Itoa(id%2))
	}
	write("devices/system/cpu/cpufreq/x", "") // not a CPU
	write("devices/system/node/node0/cpulist", "0-1,4-5")
	write("devices/system/node/node1/cpulist", "2-3,6-7")
	return Read(sys)
}

func TestCPUs(t *testing.T) {
	m := machine(t)
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for _, c := range []struct {
		bind         string
		cpus         []int
		tasks, per   int
		distribution string
		want         string
	}{
		// with as many tasks as sockets, cores or threads, each gets one; otherwise all
		{"", all, 2, 1, "", "[[0 1 4 5] [2 3 6 7]]"},
		{"", all, 4, 1, "", "[[0 4] [2 6] [1 5] [3 7]]"},
		{"", all, 2, 2, "", "[[0 4] [2 6]]"},
		{"", all, 8, 1, "", "[[0] [2] [4] [6] [1] [3] [5] [7]]"},
		{"", all, 3, 1, "", "[[0 1 2 3 4 5 6 7] [0 1 2 3 4 5 6 7] [0 1 2 3 4 5 6 7]]"},
		{"", []int{1, 5}, 1, 1, "", "[[1 5]]"},
		{"", []int{0}, 1, 1, "", "[[0]]"},
		{"cores", []int{0, 1}, 3, 1, "", "[[0 1] [0 1] [0 1]]"}, // they share
		{"none", all, 2, 1, "", "[]"},

		{"threads", all, 2, 1, "", "[[0] [2]]"},
		{"threads", all, 2, 1, "block:block", "[[0] [1]]"},
		{"threads", all, 2, 4, "block:fcyclic", "[[0 2 4 6] [1 3 5 7]]"},
		{"threads", all, 2, 4, "", "[[0 1 4 5] [2 3 6 7]]"},
		{"threads", all, 1, 3, "cyclic:block", "[[0 1 4]]"},
		{"cores", all, 3, 1, "", "[[0 4] [2 6] [1 5]]"},
		{"cores", all, 2, 1, "block:block", "[[0 4] [1 5]]"},
		{"cores", []int{0, 1, 2}, 2, 1, "", "[[0] [2]]"}, // only threads that the step has
		{"one_thread,threads", all, 4, 1, "", "[[0] [2] [1] [3]]"},
		{"one_thread,cores", all, 2, 1, "", "[[0] [2]]"},
		{"sockets", all, 3, 1, "", "[[0 1 4 5] [2 3 6 7] [0 1 4 5]]"},
		{"sockets", []int{0, 1, 2}, 2, 1, "", "[[0 1] [2]]"},
		{"ldoms", all, 2, 1, "block:block", "[[0 1 4 5] [0 1 4 5]]"},

		{"rank", all, 3, 1, "", "[[0] [1] [2]]"},
		{"rank", []int{4, 6}, 3, 1, "", "[[4] [6] [4]]"},
		{"rank_ldom", all, 3, 1, "", "[[0 1 4 5] [2 3 6 7] [0 1 4 5]]"},
		{"map_cpu:7,3", all, 3, 1, "", "[[7] [3] [7]]"},
		{"mask_cpu:0xF0,0xc", all, 2, 1, "", "[[4 5 6 7] [2 3]]"},
		{"map_ldom:1", all, 2, 1, "", "[[2 3 6 7] [2 3 6 7]]"},
		{"map_ldom:3", all, 1, 1, "", "[[2 3 6 7]]"},
		{"mask_ldom:0x2,3", all, 2, 1, "", "[[2 3 6 7] [0 1 2 3 4 5 6 7]]"},
		{"map_ldom:1", []int{0, 1}, 1, 1, "", "[[0 1]]"}, // the step has no CPU of it
	} {
		b, err := affinity.ParseCPUBind(c.bind)
		if err != nil {
			t.Fatal(c.bind, err)
		}
		got := m.CPUs(&b, &Tasks{CPUs: c.cpus, Count: c.tasks, Per: c.per, Distribution: c.distribution})
		if fmt.Sprint(got) != c.want {
			t.Errorf("--cpu-bind=%s of %v, %d tasks of %d, %q: %v, want %s",
				c.bind, c.cpus, c.tasks, c.per, c.distribution, got, c.want)
		}
	}
}

func TestMemory(t *testing.T) {
	m := machine(t)
	for _, c := range []struct {
		bind  string
		local int
		cpus  []int
		want  []int
		fails string
	}{
		{"none", 0, nil, nil, ""},
		{"verbose", 0, nil, nil, ""},
		{"prefer", 1, nil, nil, "--mem-bind value is empty for local task 1"},
		{"local", 0, []int{2, 6}, []int{1}, ""},
		{"local", 0, []int{6, 0, 2}, []int{0, 1}, ""},
		{"rank", 1, nil, []int{1}, ""},
		{"rank", 2, nil, nil, "NUMA node 2 does not exist; cannot bind local task 2 to it (--mem-bind=rank)"},
		{"map_mem:1,0", 1, nil, []int{0}, ""},
		{"map_mem:5", 0, nil, nil, "NUMA node 5 does not exist; cannot bind local task 0 to it (--mem-bind=map_mem)"},
		{"mask_mem:3", 0, nil, []int{0, 1}, ""},
		{"mask_mem:4", 0, nil, nil, "NUMA node 2 does not exist; cannot bind local task 0 to it (--mem-bind=mask_mem; 0x4)"},
	} {
		b, err := affinity.ParseMemBind(c.bind)
		if err != nil {
			t.Fatal(c.bind, err)
		}
		got, err := m.Memory(&b, c.local, c.cpus)
		message := ""
		if err != nil {
			message = err.Error()
		}
		if !reflect.DeepEqual(got, c.want) || message != c.fails {
			t.Errorf("--mem-bind=%s for task %d: %v, %q; want %v, %q", c.bind, c.local, got, message, c.want, c.fails)
		}
	}
}

func TestUnknownTopology(t *testing.T) {
	m := Read(t.TempDir())
	b := affinity.CPUBind{Kind: affinity.Cores}
	if got := m.CPUs(&b, &Tasks{CPUs: []int{3, 9}, Count: 2, Per: 1}); fmt.Sprint(got) != "[[3] [9]]" {
		t.Error(got)
	}
}
