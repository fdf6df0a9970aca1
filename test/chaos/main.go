// Command chaos runs a local cluster under a load of several users while it injects faults,
// and checks afterwards from the history of everything that happened that the cluster kept
// its promises. docs/reliability.md says what these are.
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

	"github.com/berth-hpc/berth/test/chaos/cluster"
	"github.com/berth-hpc/berth/test/chaos/faults"
	"github.com/berth-hpc/berth/test/chaos/history"
)

// options are the flags.
type options struct {
	bin, kinds, plan, check string
	previous                string
	seed                    uint64
	duration, pause, think  time.Duration
	lease                   time.Duration
	alter                   float64
	nodes, users, etcd      int
	simulated               int
	postgres, standby       bool
	reader, keep, shrink    bool
	disk, login             bool
}

func main() {
	cluster.RunEtcdMember()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "`directory` of the programs of make build")
	flag.StringVar(&o.previous, "previous-bin", "",
		"`directory` of the programs of another version, for the fault upgrade")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()%1e9), "seed of load and faults (default: a new one)")
	flag.DurationVar(&o.duration, "duration", 30*time.Minute, "how long the load lasts")
	flag.StringVar(&o.kinds, "faults", "", "`kinds` of faults with commas; none: no faults (default: all)")
	flag.DurationVar(&o.pause, "pause", 6*time.Second, "mean time between two faults")
	flag.Float64Var(&o.alter, "alter", -1,
		"`share` of all answers of the API server that are altered throughout (default: by the seed)")
	flag.StringVar(&o.plan, "plan", "", "inject these `faults` (TIME:KIND:SEED,...) instead of those of the seed")
	flag.BoolVar(&o.shrink, "shrink", false, "if promises are broken, repeat with fewer faults to find those that matter")
	flag.DurationVar(&o.think, "think", 500*time.Millisecond, "mean time between two commands of one terminal")
	flag.DurationVar(&o.lease, "lease-duration", 0, "lease of the schedulers (default: theirs)")
	flag.IntVar(&o.nodes, "nodes", 4, "number of nodes")
	flag.IntVar(&o.simulated, "kwok", 0, "`number` of nodes that exist only in the API server, as those of KWOK, with jobs of their own")
	flag.IntVar(&o.users, "users", 2, "number of users (as root)")
	flag.BoolVar(&o.postgres, "postgres", false, "accounting in PostgreSQL (default: by the seed, if it is installed)")
	flag.IntVar(&o.etcd, "etcd", -1, "`members` of an etcd of its own; 0: in the control plane's process (default: by the seed)")
	flag.BoolVar(&o.standby, "standby", true, "a second scheduler waits to lead")
	flag.BoolVar(&o.reader, "reader", false, "a process of its own answers queries (default: by the seed)")
	flag.BoolVar(&o.disk, "disk", false, "the state is on a disk, which can fail (default: by the seed; as root)")
	flag.BoolVar(&o.login, "login", false, "users also submit on a login node (default: by the seed; as root)")
	flag.BoolVar(&o.keep, "keep", false, "keep the directory of the run")
	flag.StringVar(&o.check, "check", "", "check a history `file` again, and run nothing")
	flag.Parse()
	if err := chaos(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "chaos: error:", err)
		stop()
		os.Exit(1)
	}
}

// chaos runs what the options say, and reports.
func chaos(ctx context.Context, o *options) error {
	if o.check != "" {
		h, err := readHistory(o.check)
		if err != nil {
			return err
		}
		return report(os.Stdout, h)
	}
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return err
	}
	o.bin = bin
	plan, err := o.faults()
	if err != nil {
		return err
	}
	fmt.Printf("seed %d, %d faults in %v\n", o.seed, len(plan), o.duration)
	h, err := o.run(ctx, plan, os.Stderr)
	if err != nil {
		return err
	}
	broken := report(os.Stdout, h)
	if broken == nil || !o.shrink {
		return broken
	}
	few := faults.Shrink(plan, func(p []faults.Fault) bool {
		h, err := o.run(ctx, p, os.Stderr)
		return ctx.Err() == nil && (err != nil || len(history.Check(h)) > 0)
	})
	fmt.Printf("still broken with -seed=%d -plan=%s\n", o.seed, join(few))
	return broken
}

// faults returns the plan of the flags.
func (o *options) faults() ([]faults.Fault, error) {
	if o.plan != "" {
		var plan []faults.Fault
		for text := range strings.SplitSeq(o.plan, ",") {
			f, err := faults.Parse(text)
			if err != nil {
				return nil, err
			}
			plan = append(plan, f)
		}
		return plan, nil
	}
	if o.kinds == "none" {
		return nil, nil
	}
	var names []string
	if o.kinds != "" {
		names = strings.Split(o.kinds, ",")
	}
	return faults.Plan(o.seed, o.duration, o.pause, names)
}

func join(plan []faults.Fault) string {
	texts := make([]string, len(plan))
	for i, f := range plan {
		texts[i] = f.String()
	}
	return strings.Join(texts, ",")
}
