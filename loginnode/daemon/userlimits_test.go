package daemon

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/session"
)

func TestSharesOfThePod(t *testing.T) {
	all := capacity{processes: 2000, memory: 8 << 30}
	for _, c := range []struct {
		processes, memory string
		want              userLimits
		bad               bool
	}{
		{"", "", userLimits{500, 4 << 30}, false},
		{"10%", "100%", userLimits{200, (8 << 30) / 100 * 100}, false},
		{"300", "2G", userLimits{300, 2 << 30}, false},
		{"unlimited", "unlimited", userLimits{math.MaxUint64, math.MaxUint64}, false},
		{"0", "", userLimits{}, true}, {"", "0%", userLimits{}, true}, {"101%", "", userLimits{}, true}, {"many", "", userLimits{}, true},
		{"", "-1G", userLimits{}, true},
	} {
		f := &File{UserProcesses: c.processes, UserMemory: c.memory}
		got, err := f.userLimits(all)
		got.memory, c.want.memory = got.memory>>20, c.want.memory>>20
		if (err != nil) != c.bad || !c.bad && (got.processes != c.want.processes || c.want.memory-got.memory > 1) {
			t.Errorf("%q %q: %v, %v; want %v", c.processes, c.memory, got, err, c.want)
		}
	}
	// A percentage of a very large capacity is limited: no user needs that many processes,
	// and a fork bomb would fill the memory.
	if got, _ := (&File{}).userLimits(capacity{processes: 1 << 22, memory: 1 << 30}); got.processes != mostProcesses {
		t.Errorf("%d processes", got.processes)
	}
}

func TestCapacityIsTheLeastLimit(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := func(processes, memory uint64) {
		t.Helper()
		if got := readCapacity(root); got != (capacity{processes, memory}) {
			t.Errorf("%+v, want %d %d", got, processes, memory)
		}
	}
	want(math.MaxUint64, math.MaxUint64)
	write("proc/sys/kernel/pid_max", "32768\n")
	write("proc/meminfo", "MemFree: 1 kB\nMemTotal:       1024 kB\n")
	write("sys/fs/cgroup/pids.max", "max\n")
	write("sys/fs/cgroup/memory.max", "max\n")
	want(32768, 1<<20)
	write("sys/fs/cgroup/pids.max", "100\n")
	write("sys/fs/cgroup/memory.max", "4096\n")
	want(100, 4096)
	write("sys/fs/cgroup/pids/pids.max", "50\n")
	write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
	want(50, 4096)
}

// Without a cgroup every user has a limit of processes and of memory, unless the configuration
// sets another limit of the resource.
func TestUsersHaveLimitsByDefault(t *testing.T) {
	find := func(f *File, resource int) *session.Limit {
		t.Helper()
		c, err := f.session(func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(c.Limits, func(l session.Limit) bool { return l.Resource == resource }); i >= 0 {
			return &c.Limits[i]
		}
		return nil
	}
	if l := find(&File{}, unix.RLIMIT_DATA); l == nil || l.Hard == 0 || l.Hard == math.MaxUint64 {
		t.Errorf("memory: %v", l)
	}
	l := find(&File{}, unix.RLIMIT_NPROC)
	if root := os.Geteuid() == 0; (l != nil) != root || root && l.Hard > mostProcesses {
		t.Errorf("processes: %v", l)
	}
	f := &File{UserProcesses: unlimited, UserMemory: unlimited}
	if find(f, unix.RLIMIT_NPROC) != nil || find(f, unix.RLIMIT_DATA) != nil {
		t.Error("there are limits although the configuration has none")
	}
	f = &File{Limits: map[string]string{"nproc": "77"}}
	if l := find(f, unix.RLIMIT_NPROC); l == nil || l.Hard != 77 {
		t.Errorf("the limit of the configuration: %v", l)
	}
}
