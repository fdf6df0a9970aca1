package daemon

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/session"
)

// If no cgroup can be created, resource limits are used instead, which the log reports,
// unless the cgroup is required.
func TestResourceLimitsReplaceCgroups(t *testing.T) {
	var output []string
	warn := func(text string) { output = append(output, text) }
	f := File{Cgroup: &Cgroup{Parent: t.TempDir(), CPUs: "200000 100000", Memory: "4G", PIDs: "512"}, Limits: map[string]string{"nproc": "100"}}
	c, err := f.session(warn)
	if err != nil || c.Place != nil {
		t.Fatalf("%v, placed: %v", err, c.Place != nil)
	}
	want := []session.Limit{
		{Resource: unix.RLIMIT_NPROC, Soft: 100, Hard: 100}, {Resource: unix.RLIMIT_DATA, Soft: 4 << 30, Hard: 4 << 30},
	}
	if !slices.Equal(c.Limits, want) {
		t.Errorf("%v", c.Limits)
	}
	if len(output) != 1 || !strings.Contains(output[0], "not in a cgroup2 file system") {
		t.Errorf("%q", output)
	}
	f.Cgroup.Required = true
	if _, err := f.session(warn); err == nil || len(output) != 1 {
		t.Errorf("required: %v", err)
	}
	for _, bad := range []Cgroup{{Memory: "4 GB"}, {Memory: "-1"}, {PIDs: "many"}, {Memory: "99999999999G"}} {
		bad.Parent = f.Cgroup.Parent
		f.Cgroup = &bad
		if _, err := f.session(warn); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	f.Cgroup = &Cgroup{Parent: f.Cgroup.Parent, Memory: "max", PIDs: "max"}
	if c, err := f.session(warn); err != nil || len(c.Limits) != 1 {
		t.Errorf("no limit: %v, %v", c.Limits, err)
	}
	f.Cgroup.PIDs, f.Limits = "512", nil
	if c, err := f.session(warn); err != nil || !slices.Equal(c.Limits, []session.Limit{{Resource: unix.RLIMIT_NPROC, Soft: 512, Hard: 512}}) {
		t.Errorf("processes: %v, %v", c.Limits, err)
	}
}
