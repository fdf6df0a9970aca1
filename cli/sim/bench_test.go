package sim

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// BenchmarkReplay replays KTH-SP2, without reading and reporting.
func BenchmarkReplay(b *testing.B) {
	dir := os.Getenv(tracesEnv)
	if dir == "" {
		b.Skip(tracesEnv + " names no directory with published traces")
	}
	f, err := os.Open(filepath.Join(dir, "KTH-SP2-1996-2.swf.gz"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	t, err := readTrace(f)
	if err != nil {
		b.Fatal(err)
	}
	machine := []backfill.Node{{CPUs: t.processors}}
	t.filter(t.processors)
	o := &options{}
	for _, name := range []string{"easy", "easy-sjbf", "conservative"} {
		b.Run(name, func(b *testing.B) {
			before := processorTime()
			for b.Loop() {
				replay(machine, policies[name], t.jobs, o.asker(policies[name], machine), nil)
			}
			b.ReportMetric(float64((processorTime()-before).Microseconds())/float64(b.N)/1000, "cpu-ms/op")
		})
	}
}

// processorTime returns the processor time that the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
