// Command differential compares Berth with a Slurm on the same machine. It makes command
// lines from Berth's option tables and small grammars of values, runs each on both
// systems, and groups the differences between the answers by their cause.
//
// It needs a reference Slurm and, for other users than the caller, root. The local Berth
// cluster reads the slurm.conf of the reference, so that both have the same nodes and
// partitions. The same seed makes the same command lines.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	bin, slurm, conf, state, users, only, report string
	scripts                                      string
	calls, parallel                              int
	seed                                         uint64
	timeout                                      time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "`directory` of Berth's commands")
	flag.StringVar(&o.slurm, "slurm", "", "`directory` of Slurm's commands (default: where PATH has sbatch)")
	flag.StringVar(&o.conf, "slurm-conf", os.Getenv("SLURM_CONF"), "slurm.conf of the reference Slurm")
	flag.StringVar(&o.state, "state-dir", "", "state `directory` of a running local cluster (default: start one)")
	flag.StringVar(&o.users, "users", "", "two `users`, with a comma, whose commands are compared (as root)")
	flag.StringVar(&o.only, "only", "", "compare these `commands` only, with commas")
	flag.StringVar(&o.report, "report", "", "`file` of the report (default: standard output)")
	flag.StringVar(&o.scripts, "scripts", "",
		"compare batch scripts instead, made anew or from those in this `directory`")
	flag.IntVar(&o.calls, "calls", 1000, "how many command lines to compare")
	flag.IntVar(&o.parallel, "parallel", 3, "how many command lines run at the same time")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the command lines")
	flag.DurationVar(&o.timeout, "timeout", 15*time.Second, "limit of a single command")
	flag.Parse()
	if err := differential(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "differential: error:", err)
		stop()
		os.Exit(1)
	}
}

// differential prepares both systems, compares the calls and writes the report.
func differential(ctx context.Context, o *options) error {
	both, down, err := newPair(ctx, o)
	if err != nil {
		return err
	}
	defer down()
	defer both.clean()
	if err := both.prepare(ctx); err != nil {
		return err
	}
	next := newGenerator(o.seed, strings.FieldsFunc(o.only, func(r rune) bool { return r == ',' })...).next
	if o.scripts != "" {
		s, err := newScripts(o.seed, o.scripts)
		if err != nil {
			return err
		}
		next = s.next
	}
	calls := make([]*call, o.calls)
	for i := range calls {
		calls[i] = next()
	}
	started := time.Now()
	r := newRun(both, o.parallel)
	r.compareAll(ctx, calls)
	return r.write(o, time.Since(started))
}
