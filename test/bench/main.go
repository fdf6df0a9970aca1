// Command bench measures a local Berth cluster and, if Slurm runs on the same machine,
// Slurm as well, and writes the table of docs/performance.md. "make bench" builds and
// runs it.
//
// It only measures and never fails because of a result. Ratios matter, because times
// differ between machines.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var o options
	flag.StringVar(&o.suite, "suite", "basic",
		"what to measure: basic, queue, nodes, steps, pods or backlog; floods, failover, size and soak, as root; memory; profile; planner, without a cluster; topology, beside a Slurm with switches; real and cores, on real kubelets; or cost, which draws the figure of docs/sim.md")
	flag.StringVar(&o.bin, "bin", "bin", "`directory` of Berth's commands")
	flag.StringVar(&o.slurm, "slurm", os.Getenv("BERTH_BENCH_SLURM"),
		"`directory` of Slurm's commands (default: where PATH has sbatch); \"none\": without")
	flag.StringVar(&o.page, "page", "docs/performance.md", "page to write the table into; \"\": print it only")
	flag.StringVar(&o.only, "only", "",
		"of the suites pods, backlog, floods, basic, queue, nodes and steps, only what has this `text` in its name; the page is left alone")
	flag.StringVar(&o.profiles, "profiles", "", "`directory` for the profiles of the suites memory and profile; \"\": none")
	flag.IntVar(&o.repeat, "repeat", 20, "measurements of each kind")
	flag.Parse()
	if o.only != "" {
		o.page = ""
	}
	if err := bench(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench: error:", err)
		stop()
		os.Exit(1)
	}
}

type options struct {
	suite, bin, slurm, page string
	only                    string
	profiles                string
	repeat                  int
}

// suite is a set of measurements of one cluster.
type suite struct {
	name     string
	up       []string // flags of berth up
	ups      int      // how often the start of a cluster is measured
	marks    marks    // where its table stands
	measures []measure
	// after returns more results of Berth's cluster, for lines below the table; nil:
	// none.
	after func(ctx context.Context, s *system) (string, error)
}

func suiteCalled(name string) (*suite, error) {
	for _, s := range []*suite{&basicSuite, &queueSuite, &nodesSuite, &stepsSuite} {
		if s.name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("there is no suite %q", name)
}

func bench(ctx context.Context, o options) error {
	switch o.suite {
	case "planner":
		return benchPlanner(ctx, o.page)
	case "real":
		return benchReal(ctx, o.page)
	case "cost":
		return drawCost(o.page)
	case "cores":
		return benchCores(ctx, o.page)
	case "topology":
		return benchTopology(ctx, o)
	case "pods":
		return benchPods(ctx, o)
	case "backlog":
		return benchBacklog(ctx, o)
	case "floods":
		return benchFloods(ctx, o)
	case "soak":
		return benchSoak(ctx, o)
	case "size":
		return benchSize(ctx, o)
	case "failover":
		return benchFailover(ctx, o)
	case "memory":
		return benchMemory(ctx, o)
	case "profile":
		return benchProfile(ctx, o)
	case "flood-client": // of floods
		return floodClient(ctx, o.only)
	}
	what, err := suiteCalled(o.suite)
	if err != nil {
		return err
	}
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "berth-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	load := firstField("/proc/loadavg")
	b, ups, err := startBerth(ctx, what, bin, work)
	if b != nil {
		defer b.stop()
	}
	if err != nil {
		return err
	}
	systems := []*system{b}
	if s := findSlurm(ctx, o.slurm, work, bin); s != nil {
		systems = append(systems, s)
	}
	t := &table{systems: systems, load: load}
	t.add("`berth up` to ready, from an empty directory", "6 s", map[*system]samples{b: ups})
	for _, m := range what.measures {
		if !strings.Contains(m.name, o.only) {
			continue
		}
		row := map[*system]samples{}
		for _, s := range systems {
			say("%s: %s", s.name, m.name)
			if row[s], err = m.run(ctx, s, o.repeat); err != nil {
				return fmt.Errorf("%s: %s: %w", s.name, m.name, err)
			}
		}
		t.add(m.name, m.goal, row)
	}
	text := t.markdown()
	if what.after != nil {
		more, err := what.after(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		text += more
	}
	return what.marks.publish(o.page, text)
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s bench: %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}
