package coord

import (
	"testing"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
)

func TestAddUsage(t *testing.T) {
	var got wire.Usage
	for i, u := range []step.TaskUsage{
		{User: 5, System: 2, RSS: 10, VMSize: 40, Read: 7, Write: 1},
		{User: 1, System: 1, RSS: 30, VMSize: 40, Pages: 1, Read: 9, Write: 1},
		{User: 3, System: 9, RSS: 20, VMSize: 50, Read: 6, Write: 3},
	} {
		AddUsage(&got, i == 0, int32(i/2), int32(i), &u)
	}
	at := func(amount int64, node, task int32) wire.Extreme {
		return wire.Extreme{Amount: amount, Node: node, Task: task}
	}
	want := wire.Usage{
		UserCPU: 9, SystemCPU: 12,
		CPU:       wire.Measure{Total: 21, Max: at(12, 1, 2), Min: at(2, 0, 1)},
		RSS:       wire.Measure{Total: 60, Max: at(30, 0, 1), Min: at(10, 0, 0)},
		VMSize:    wire.Measure{Total: 130, Max: at(50, 1, 2), Min: at(40, 0, 0)},
		Pages:     wire.Measure{Total: 1, Max: at(1, 0, 1), Min: at(0, 0, 0)},
		DiskRead:  wire.Measure{Total: 22, Max: at(9, 0, 1), Min: at(6, 1, 2)},
		DiskWrite: wire.Measure{Total: 5, Max: at(3, 1, 2), Min: at(1, 0, 0)},
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func BenchmarkAddUsage(b *testing.B) {
	var s wire.Usage
	u := step.TaskUsage{User: 5, System: 2, RSS: 10, VMSize: 40, Read: 7, Write: 1}
	for i := range b.N {
		AddUsage(&s, i == 0, 0, int32(i), &u)
	}
}
