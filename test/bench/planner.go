package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// The suite "planner" needs no cluster: it runs Go's benchmarks of the planner and
// writes their results into the page.
var plannerMarks = marks{"<!-- planner: written by make bench-sched -->\n", "<!-- end of planner -->\n"}

// figure is one row: a value that a benchmark reports under a unit.
type figure struct {
	what, benchmark, unit, goal string
}

// benchmarks are run one after the other, each in its package.
var benchmarks = []struct {
	pkg, pattern, times string
	figures             []figure
}{
	{"./internal/sched/backfill", "FullMachine/.*/nodes=10*$/pending=10*$", "10x", []figure{
		{
			"start and nodes for each of 10,000 jobs, 1,000 nodes",
			"PlanFullMachine/default/nodes=1000/pending=10000", "cpu-ms/op", "20 ms",
		},
		{
			"the same for 10,000 jobs, 10,000 nodes", "PlanFullMachine/default/nodes=10000/pending=10000",
			"cpu-ms/op", "300 ms",
		},
		{
			"the same for 100,000 jobs, 10,000 nodes", "PlanFullMachine/default/nodes=10000/pending=100000",
			"cpu-ms/op", "1.5 s",
		},
		{
			"a start that is kept for each, 10,000 jobs, 1,000 nodes (conservative)",
			"PlanFullMachine/conservative/nodes=1000/pending=10000", "cpu-ms/op", "20 ms",
		},
		{
			"the same for 100,000 jobs, 10,000 nodes", "PlanFullMachine/conservative/nodes=10000/pending=100000",
			"cpu-ms/op", "1.5 s",
		},
	}},
	{"./internal/sched/backfill", "QueueEvent", "1000x", []figure{
		{
			"who starts after one event, 10,000 jobs, 1,000 nodes: median",
			"QueueEvent/full/nodes=1000/pending=10000", "p50-cpu-us", "",
		},
		{"99th percentile", "QueueEvent/full/nodes=1000/pending=10000", "p99-cpu-us", "1 ms"},
		{
			"the same of a queue of many kinds: 99th percentile", "QueueEvent/mixed/nodes=1000/pending=10000",
			"p99-cpu-us", "",
		},
		{"100,000 jobs, 10,000 nodes: median", "QueueEvent/full/nodes=10000/pending=100000", "p50-cpu-us", ""},
		{"99th percentile", "QueueEvent/full/nodes=10000/pending=100000", "p99-cpu-us", "5 ms"},
		{
			"the same of a queue of many kinds: 99th percentile", "QueueEvent/mixed/nodes=10000/pending=100000",
			"p99-cpu-us", "",
		},
	}},
	{"./internal/sched/backfill", "Gang", "100x", []figure{
		{"where a job of 1,000 nodes runs on 5,000 empty ones", "Gang", "ns/op", "50 ms"},
	}},
	{"./internal/sched/snapshot", "Follow$", "1000x", []figure{
		{
			"from objects to who starts, after one event, 10,000 jobs, 1,000 nodes: 99th percentile",
			"Follow/nodes=1000/pending=10000", "p99-cpu-us", "1 ms",
		},
		{"by the clock", "Follow/nodes=1000/pending=10000", "p99-us", "1 ms"},
		{"the same for 100,000 jobs, 10,000 nodes", "Follow/nodes=10000/pending=100000", "p99-cpu-us", "5 ms"},
		{"by the clock", "Follow/nodes=10000/pending=100000", "p99-us", "5 ms"},
	}},
	{"./internal/sched/planner", "Locks", "5x", []figure{
		{
			"longest wait for a lock at 100,000 jobs, 10,000 nodes: reading a job (by the clock)", "Locks",
			"read-us", "50 ms",
		},
		{"submitting one", "Locks", "submit-us", "50 ms"},
		{"asking whether one could run", "Locks", "feasible-us", "50 ms"},
	}},
	{"./internal/sched/snapshot", "FollowMemory|FirstDecision", "1x", []figure{
		{"memory, 100,000 jobs and 10,000 nodes: objects", "FollowMemory", "objects-MiB", "1 GiB in all"},
		{"memory, what follows them", "FollowMemory", "view-MiB", ""},
		{
			"restart with 5,000 nodes and 100,000 pods, from the objects to the first decision", "FirstDecision",
			"ns/op", "30 s",
		},
	}},
	{"./cli/sim", "Replay", "3x", []figure{
		{"replay of KTH-SP2 (28,481 jobs), EASY", "Replay/easy", "cpu-ms/op", "0.15 s"},
		{"by the clock", "Replay/easy", "ns/op", "0.15 s"},
		{"replay of KTH-SP2, conservative", "Replay/conservative", "cpu-ms/op", "1 s"},
	}},
}

func benchPlanner(ctx context.Context, page string) error {
	load := firstField("/proc/loadavg")
	var b strings.Builder
	b.WriteString("| what | | to pass |\n|---|---|---|\n")
	for _, r := range benchmarks {
		say("%s: %s", r.pkg, r.pattern)
		cmd := exec.CommandContext(ctx, "go", "test", "-run", "-", "-bench", r.pattern, "-benchtime", r.times, r.pkg)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", r.pkg, err, out)
		}
		values := reported(string(out))
		for _, f := range r.figures {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", f.what, values.text(f), f.goal)
		}
	}
	b.WriteString(circumstances(load))
	fmt.Print(b.String())
	if page == "" {
		return nil
	}
	return plannerMarks.replace(page, b.String())
}

// values are what benchmarks reported, by name and unit.
type values map[[2]string]float64

// reported reads the output of go test -bench.
func reported(out string) values {
	v := values{}
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(f[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i]
		}
		for i := 2; i+1 < len(f); i += 2 {
			if n, err := strconv.ParseFloat(f[i], 64); err == nil {
				v[[2]string{name, f[i+1]}] = n
			}
		}
	}
	return v
}

// text returns a figure in a readable form.
func (v values) text(f figure) string {
	n, ok := v[[2]string{f.benchmark, f.unit}]
	if !ok {
		return "–"
	}
	unit := map[string]time.Duration{"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond}
	for name, d := range unit {
		if f.unit == name+"/op" || strings.HasSuffix(f.unit, "-"+name) || f.unit == "cpu-"+name+"/op" {
			return short(time.Duration(n * float64(d)))
		}
	}
	return fmt.Sprintf("%.0f %s", n, f.unit[strings.LastIndexByte(f.unit, '-')+1:])
}
