package snapshot

import (
	"slices"
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
