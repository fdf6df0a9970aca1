package reserve_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/reserve"
)

// coresPool is pool with four cores in each node.
func coresPool(jobs []*v1alpha1.BatchJob, others ...*v1alpha1.Reservation) *reserve.Pool {
	p := pool(jobs)
	for i := range p.Nodes {
		p.Nodes[i].CPUs, p.Nodes[i].Threads = 4, 1
	}
	p.Reservations = others
	return p
}

func onCPUs(b *v1alpha1.BatchJob, ids string) *v1alpha1.BatchJob {
	b.Status.Allocation.Nodes[0].CPUIDs = ids
	return b
}

func coresText(s *spec) string {
	var out []string
	for n, ids := range s.Cores {
		out = append(out, n+":"+ids)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestPlaceCores: which cores a reservation gets that asks for a number of them. Slurm
// 22.05.8 responded the same on the same nodes, except where a name has its number.
func TestPlaceCores(t *testing.T) {
	first := []string{"FIRST_CORES"}
	counts := func(n ...int32) func(*spec) { return func(s *spec) { s.CoreCounts = n } }
	for _, tt := range []struct {
		name   string
		set    func(*spec)
		jobs   []*v1alpha1.BatchJob
		others []*v1alpha1.Reservation
		want   string
		flags  string
		err    string
	}{
		{name: "a number", set: counts(2), want: "n1:0-1"},
		{name: "more than a node has", set: counts(5), want: "n1:0-3 n2:0"},
		{name: "none", set: counts(0), err: "Requested nodes are busy"},
		{name: "more than exist", set: counts(1000), err: "Requested nodes are busy"},
		{name: "on a number of nodes", set: func(s *spec) { s.CoreCounts, s.NodeCount = []int32{4}, 2 },
			want: "n1:0-1 n2:0-1"},
		{name: "on a named node", set: func(s *spec) { s.CoreCounts, s.Nodes = []int32{3}, "n2" }, want: "n2:0-2",
			flags: "SPEC_NODES"},
		{name: "on named nodes", set: func(s *spec) { s.CoreCounts, s.Nodes = []int32{2, 3}, "n1,n2" },
			want: "n1:0-1 n2:0-2", flags: "SPEC_NODES"},
		{name: "too few numbers", set: func(s *spec) { s.CoreCounts, s.Nodes = []int32{2}, "n1,n2" },
			err: "Core count for reservation node list is not consistent!"},
		{name: "too many numbers", set: func(s *spec) { s.CoreCounts, s.Nodes = []int32{2, 3, 1}, "n1,n2" },
			err: "Requested nodes are busy"},
		{name: "more than the named node has", set: func(s *spec) { s.CoreCounts, s.Nodes = []int32{9}, "n1" },
			err: "Requested nodes are busy"},
		{name: "an unknown node", set: func(s *spec) { s.CoreCounts, s.Nodes = []int32{1}, "n9" },
			err: "Invalid node name specified"},
		{name: "an unknown feature", set: func(s *spec) { s.CoreCounts, s.Features = []int32{1}, "nope" },
			err: "Invalid feature specification"},
		{name: "replaced",
			set: func(s *spec) { s.CoreCounts, s.NodeCount, s.Flags = []int32{1}, 1, []string{"REPLACE"} },
			err: "CPU count specification invalid"},
		{name: "the first ones, without a number", set: func(s *spec) { s.Nodes, s.Flags = "n1", first },
			err: "Requested nodes are busy"},
		{name: "the first ones of each",
			set: func(s *spec) { s.CoreCounts, s.NodeCount, s.Flags = []int32{2}, 2, first }, want: "n1:0-1 n2:0-1",
			flags: "FIRST_CORES"},
		{name: "beside a job", set: counts(2), jobs: []*v1alpha1.BatchJob{onCPUs(running("", "n1"), "0,2")},
			want: "n1:1,3"},
		{name: "the first ones beside a job", set: func(s *spec) { s.CoreCounts, s.Flags = []int32{2}, first },
			jobs: []*v1alpha1.BatchJob{onCPUs(running("", "n1"), "0,2")}, want: "n2:0-1", flags: "FIRST_CORES"},
		{name: "beside another", set: func(s *spec) { s.CoreCounts, s.Nodes = []int32{2}, "n1" },
			others: []*v1alpha1.Reservation{held("n1", map[string]string{"n1": "0-1"})}, want: "n1:2-3", flags: "SPEC_NODES"},
		{name: "there is no room beside it", set: func(s *spec) { s.CoreCounts, s.Nodes = []int32{3}, "n1" },
			others: []*v1alpha1.Reservation{held("n1", map[string]string{"n1": "0-1"})}, err: "Requested nodes are busy"},
		{name: "beside one of a whole node", set: counts(2), others: []*v1alpha1.Reservation{held("n1", nil)},
			want: "n2:0-1"},
		{name: "a whole node of which cores are reserved (22.05.8: created)", set: func(s *spec) { s.Nodes = "n1" },
			others: []*v1alpha1.Reservation{held("n1", map[string]string{"n1": "0"})}, err: "Requested reservation overlaps with another reservation"},
	} {
		r := reservation(tt.set)
		err := coresPool(tt.jobs, tt.others...).Place(r, true)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.err || err == nil && (coresText(&r.Spec) != tt.want || strings.Join(r.Spec.Flags, " ") != tt.flags) {
			t.Errorf("%s: %q, %s, flags %v", tt.name, got, coresText(&r.Spec), r.Spec.Flags)
		}
	}
}

// held returns another reservation at the same time.
func held(nodes string, cores map[string]string) *v1alpha1.Reservation {
	r := reservation(func(s *spec) { s.Nodes, s.Cores = nodes, cores })
	r.Name = "held"
	return r
}

// TestCoresAreFixed: a reservation keeps its cores, which must be free at its new time.
func TestCoresAreFixed(t *testing.T) {
	r := reservation(func(s *spec) { s.CoreCounts = []int32{2} })
	p := coresPool(nil)
	if err := p.Place(r, true); err != nil {
		t.Fatal(err)
	}
	r.Name = "r"
	if err := p.Place(r, true); err != nil || coresText(&r.Spec) != "n1:0-1" {
		t.Errorf("%v %s", err, coresText(&r.Spec))
	}
	if _, moved := p.Replace(r); moved {
		t.Error("its nodes are replaced")
	}
	p.Reservations = append(p.Reservations, held("n1", map[string]string{"n1": "1"}))
	if err := p.Place(r, true); !errors.Is(err, refusal.ReservationOverlap) {
		t.Error(fmt.Sprint(err))
	}
	r.Spec.Nodes = "n2"
	if err := p.Place(r, true); !errors.Is(err, refusal.ReservationCoresFixed) {
		t.Error(fmt.Sprint(err))
	}
}
