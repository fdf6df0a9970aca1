package sstat

import (
	"bytes"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// usageOf returns a measure of a step with one task.
func usageOf(amount int64) wire.Measure {
	at := wire.Extreme{Amount: amount}
	return wire.Measure{Total: amount, Max: at, Min: at}
}

// The lines are those of sstat -a -P -n 22.05.8 for a batch script, and for a step that has
// written one byte.
func TestDefaultFields(t *testing.T) {
	batch := wire.StepRecord{
		ID: wire.StepBatch, Nodes: []string{"n1"}, Tasks: 1,
		Usage: wire.Usage{
			CPU: usageOf(10_000), RSS: usageOf(12836864), VMSize: usageOf(295886848),
			DiskRead: usageOf(65993), DiskWrite: usageOf(2247),
		},
	}
	sleep := wire.StepRecord{
		ID: 9, Nodes: []string{"n1"}, Tasks: 1,
		Usage: wire.Usage{
			RSS: usageOf(1605632), VMSize: usageOf(2990080), DiskRead: usageOf(6977), DiskWrite: usageOf(1),
		},
	}
	const used = "cpu=00:00:00,energy=0,fs/disk=65993,mem=12536K,pages=0,vmem=288952K"
	const nodes = "cpu=n1,energy=n1,fs/disk=n1,mem=n1,pages=n1,vmem=n1"
	const tasks = "cpu=00:00:00,fs/disk=0,mem=0,pages=0,vmem=0"
	const written = "energy=0,fs/disk=2247"
	want := "1029.batch|288952K|n1|0|288952K|12536K|n1|0|12536K|0|n1|0|0|00:00:00|n1|0|00:00:00|1|0|0|0|0|0|" +
		"65993|n1|0|65993|2247|n1|0|2247|" +
		used + "|" + used + "|" + nodes + "|" + tasks + "|" + used + "|" + nodes + "|" + tasks + "|" + used + "|" +
		written + "|" + written + "|energy=n1,fs/disk=n1|fs/disk=0|" +
		written + "|energy=n1,fs/disk=n1|fs/disk=0|" + written + "\n"
	compareLines(t, []string{"-a", "-P", "1029"}, batch, want)
	fields := "JobID,MaxDiskWrite,AveDiskWrite,TRESUsageOutMax,MaxDiskRead,AveRSS,ReqCPUFreqMin,ReqCPUFreqGov"
	compareLines(t, []string{"-a", "-P", "-o", fields, "1029"}, sleep,
		"1029.9|1.00M|1.00M|energy=0,fs/disk=1|6977|1568K|Unknown|Unknown\n")
	compareLines(t, []string{"-a", "-P", "--noconvert", "-o", fields, "1029"}, sleep,
		"1029.9|1.00M|1.00M|energy=0,fs/disk=1|6977|1605632|Unknown|Unknown\n")
}

func compareLines(t *testing.T, args []string, r wire.StepRecord, want string) {
	t.Helper()
	v, rest, err := option.Sstat.Parse(args, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o := New(&stdio.Process{Streams: stdio.Streams{Out: &out}, Now: time.Now}, nil)
	if err := o.complete(v, rest); err != nil {
		t.Fatal(err)
	}
	if err := o.print(&status.Record{ID: 1029}, []step.Usage{{Record: r}}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != want {
		t.Errorf("%v:\ngot  %swant %s", args, got, want)
	}
}
