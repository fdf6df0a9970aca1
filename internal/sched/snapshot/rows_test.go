package snapshot

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// TestPartitionRows: what a partition asks of its jobs is shown.
func TestPartitionRows(t *testing.T) {
	memory, over := int64(2000), int32(5)
	p := &v1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Spec: v1alpha1.PartitionSpec{
		MemoryLimits: v1alpha1.MemoryLimits{MaxMemPerNode: &memory}, OverTimeLimit: &over,
		DenyAccounts: []string{"x"}, DenyQOS: []string{"low"}, QOS: "high", ReqResv: true, ExclusiveUser: true, GraceTime: 7, MaxCPUs: 3, PreemptMode: "REQUEUE",
	}}
	rows := Build(Input{Now: time.Unix(1e9, 0), Partitions: []*v1alpha1.Partition{p}}).PartitionRows()
	if len(rows) != 1 {
		t.Fatal(rows)
	}
	r := rows[0]
	if r.MaxMemPerNode != 2000 || r.DefMemPerCPU != 0 || r.OverTimeLimit != 5 || !slices.Equal(r.DenyAccounts, []string{"x"}) || !slices.Equal(r.DenyQOS, []string{"low"}) ||
		r.QOS != "high" || !r.ReqResv || !r.ExclusiveUser || r.GraceTime != 7 || r.MaxCPUs != 3 || r.PreemptMode != "REQUEUE" {
		t.Errorf("%+v", r)
	}
}

// Nodes show the reservations that they are in at the time, whole nodes or
// some cores.
func TestReservedNodes(t *testing.T) {
	book := func(name, nodes string, minutes int, cores map[string]string, flags ...string) *v1alpha1.Reservation {
		r := &v1alpha1.Reservation{ObjectMeta: metav1.ObjectMeta{Name: name}}
		r.Spec = v1alpha1.ReservationSpec{StartTime: metav1.NewTime(now.Add(time.Duration(minutes) * time.Minute)), Duration: 60, Nodes: nodes, Cores: cores, Flags: flags}
		return r
	}
	v := view(Input{Reservations: []*v1alpha1.Reservation{
		book("works", "n1", -1, nil, "MAINT"), book("part", "n2", -1, map[string]string{"n2": "0"}), book("later", "n3", 5, nil), book("over", "n3", -61, nil),
	}})
	for minutes, want := range map[int]string{0: "n1 MAINTENANCE,RESERVED works; n2 RESERVED part; n3  ; n10  ; ", 6: "n1 MAINTENANCE,RESERVED works; n2 RESERVED part; n3 RESERVED later; n10  ; "} {
		rows := v.NodeRows()
		v.MarkReserved(rows, now.Add(time.Duration(minutes)*time.Minute).Unix())
		got := ""
		for _, r := range rows {
			got += r.Name + " " + strings.Join(r.Flags, ",") + " " + r.Reservation + "; "
		}
		if got != want {
			t.Errorf("after %d minutes %q, want %q", minutes, got, want)
		}
	}
}
