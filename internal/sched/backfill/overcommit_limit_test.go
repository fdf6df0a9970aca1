package backfill

import "testing"

// With --overcommit a job needs the CPUs of one task on each node, so a limit that leaves
// as many does not keep it waiting.
func TestMinUsageWithOvercommit(t *testing.T) {
	j := &Job{MinNodes: 2, Tasks: 64, CPUsPerTask: 2, Overcommit: true, MemPerCPU: 100}
	for quantity, want := range map[Quantity]int64{QuantityCPUs: 4, QuantityMemory: 400} {
		if got := (&Limit{Quantity: quantity}).minUsage(j); got != want {
			t.Errorf("quantity %v: %d, want %d", quantity, got, want)
		}
	}
	j.Overcommit = false
	if got := (&Limit{Quantity: QuantityCPUs}).minUsage(j); got != 128 {
		t.Errorf("without overcommit: %d CPUs, want 128", got)
	}
}
