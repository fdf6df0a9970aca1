package table_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/job"
)

// The billing of a job uses the weights of its partition.
func TestBillingFollowsThePartition(t *testing.T) {
	c, tab := newTable(nil)
	fake.Feed(c, fake.Partition("debug", func(p *v1alpha1.PartitionSpec) { p.Default, p.TRESBillingWeights = true, "CPU=0.5,Mem=1G" }),
		batchJob(1, "a", func(b *v1alpha1.BatchJob) {
			b.Spec.Partition = "debug"
			b.Status.State, b.Status.Allocation = v1alpha1.StateRunning, &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1", CPUs: 4, Memory: 2048}}}
		}))
	rows := tab.Select(t.Context(), table.Query{IDs: []int64{1}})
	if len(rows) != 1 || rows[0].TRES != "cpu=4,mem=2G,node=1,billing=4" {
		t.Errorf("%+v", rows)
	}
}

// Weights of a type of generic resource count for running and pending jobs, and for
// earlier attempts, which have the weights of their own partition.
func TestBillingOfTypedResources(t *testing.T) {
	weights := func(text string) func(*v1alpha1.PartitionSpec) {
		return func(p *v1alpha1.PartitionSpec) { p.TRESBillingWeights = text }
	}
	cards := []v1alpha1.GRESAllocation{{Name: "gpu", Type: "a100", Count: 2}, {Name: "gpu", Type: "t4", Count: 1}}
	running := batchJob(1, "anna", func(b *v1alpha1.BatchJob) {
		b.Spec.Partition, b.Status.State = "debug", v1alpha1.StateRunning
		b.Status.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1", CPUs: 4, GRES: cards}}}
	})
	pending := batchJob(2, "anna", func(b *v1alpha1.BatchJob) {
		b.Spec.Partition = "debug"
		b.Spec.Job.Shape.GRES = []job.GRES{{Name: "gpu", Type: "a100", Count: 3, Per: job.PerNode}}
	})
	c := fake.Cluster(interceptor.Funcs{})
	fake.Feed(c, fake.Partition("debug", weights("CPU=1,GRES/gpu:a100=10")),
		fake.Partition("other", weights("CPU=0,GRES/gpu=7")), running, pending)
	dir := directory.New(c, nil)
	if got, want := table.RowOf(running, dir).TRES, "cpu=4,node=1,billing=24,gres/gpu=3"; got != want {
		t.Errorf("running: %s, want %s", got, want)
	}
	if got, want := table.RowOf(pending, dir).TRESReq, "cpu=6,node=2,billing=66,gres/gpu=6"; got != want {
		t.Errorf("pending: %s, want %s", got, want)
	}
	for partition, want := range map[string]int64{"debug": 24, "other": 21, "deleted": 4} {
		p := &v1alpha1.PastAttempt{Partition: partition, CPUs: 4, Nodes: 1, GRES: cards}
		if got := table.BillingOf(running, p, dir); got != want {
			t.Errorf("an attempt in partition %s: %d, want %d", partition, got, want)
		}
	}
}
