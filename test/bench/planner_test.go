package main

import "testing"

func TestWhatBenchmarksReport(t *testing.T) {
	v := reported("goos: linux\nBenchmarkQueueEvent/full/nodes=1000/pending=10000-2 \t 500\t 423829 ns/op\t 92.00 p50-cpu-us\t 435.0 p99-cpu-us\n" +
		"BenchmarkPlan/default-2 10 40000000 ns/op 22.5 cpu-ms/op\nBenchmarkFollowMemory-2 1 5 ns/op 222.4 objects-MiB\nPASS\n")
	for _, tt := range []struct{ benchmark, unit, want string }{
		{"QueueEvent/full/nodes=1000/pending=10000", "p99-cpu-us", "0.4 ms"},
		{"Plan/default", "cpu-ms/op", "22 ms"},
		{"Plan/default", "ns/op", "40 ms"},
		{"FollowMemory", "objects-MiB", "222 MiB"},
		{"FollowMemory", "other", "–"},
	} {
		if got := v.text(figure{benchmark: tt.benchmark, unit: tt.unit}); got != tt.want {
			t.Errorf("%s of %s: %q, want %q", tt.unit, tt.benchmark, got, tt.want)
		}
	}
}
