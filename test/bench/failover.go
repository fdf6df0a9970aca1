package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/test/chaos/cluster"
)

// The suite "failover" kills the leading scheduler while a standby waits, and measures how
// long it takes until the standby leads and until the next job starts. All CPUs are busy
// when the leader dies, and their jobs end right afterwards: the next job can neither have
// been placed before nor has it to wait for anything else.
var failoverMarks = marks{"<!-- failover: written by make bench-failover -->\n", "<!-- end of failover -->\n"}

// failoverNodes have cluster.CPUsPerNode CPUs each.
const failoverNodes = 4

// failover is one measurement: times from SIGKILL.
type failover struct {
	leads, starts time.Duration
}

func benchFailover(ctx context.Context, o options) error {
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return err
	}
	busy := firstField("/proc/loadavg")
	dir, err := os.MkdirTemp("", "berth-failover-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := cluster.Start(ctx, cluster.Options{Bin: bin, Dir: dir, Nodes: failoverNodes, Standby: true,
		Log: os.Stderr})
	defer c.Stop()
	if err != nil {
		return err
	}
	var leads, starts samples
	for i := range o.repeat {
		f, err := failOver(ctx, c, i)
		if err != nil {
			return err
		}
		say("a standby leads after %v, the next job starts after %v", f.leads, f.starts)
		leads, starts = append(leads, f.leads), append(starts, f.starts)
	}
	text := fmt.Sprintf("| from SIGKILL of the leader until | median (and the range) of %d |\n|---|---|\n", o.repeat) +
		fmt.Sprintf("| the standby leads | %s |\n", cell(leads)) +
		fmt.Sprintf("| the next job's script runs | %s |\n", cell(starts)) + circumstances(busy)
	return failoverMarks.publish(o.page, text)
}

// failOver kills the leader of a cluster whose CPUs are all allocated, then lets the
// running jobs end, and waits for the job that is pending.
func failOver(ctx context.Context, c *cluster.Cluster, round int) (failover, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	end := filepath.Join(c.Output, fmt.Sprintf("end-%d", round))
	mark := filepath.Join(c.Output, fmt.Sprintf("started-%d", round))
	wait := fmt.Sprintf("while [ ! -e %s ]; do sleep 0.02; done", end)
	running, err := submit(ctx, c, "-a", fmt.Sprintf("1-%d", failoverNodes*cluster.CPUsPerNode), "--wrap", wait)
	if err != nil {
		return failover{}, err
	}
	err = until(ctx, patience, 50*time.Millisecond, func() (bool, error) {
		a := c.Run(ctx, c.Operator, "squeue", "-h", "-r", "-j", running, "-t", "R", "-o", "%i")
		return len(strings.Fields(a.Out)) == failoverNodes*cluster.CPUsPerNode, nil
	})
	if err != nil {
		return failover{}, fmt.Errorf("the jobs do not run: %w", err)
	}
	if _, err := submit(ctx, c, "--wrap", `printf '%s\nstarted\n' $(date +%s%6N) > `+mark); err != nil {
		return failover{}, err
	}
	leader, err := c.Leader(ctx)
	if err != nil {
		return failover{}, err
	}
	for _, p := range c.Schedulers {
		err = until(ctx, patience, 50*time.Millisecond, func() (bool, error) { return p.Settled(), nil })
		if err != nil {
			return failover{}, fmt.Errorf("%s does not run: %w", p.Name, err)
		}
	}
	return killLeader(ctx, c, leader, end, mark)
}

// killLeader measures. The script of the pending job writes the time at which it starts, in
// microseconds.
func killLeader(ctx context.Context, c *cluster.Cluster, leader *cluster.Process, end, mark string) (failover, error) {
	killed := time.Now()
	if err := leader.Kill(0); err != nil {
		return failover{}, err
	}
	if err := os.WriteFile(end, nil, 0o644); err != nil {
		return failover{}, err
	}
	if _, err := c.AwaitLeader(ctx, leader); err != nil {
		return failover{}, err
	}
	f := failover{leads: time.Since(killed)}
	text, err := waitForLine(ctx, mark, "started", patience)
	if err != nil {
		return failover{}, err
	}
	first, _, _ := strings.Cut(text, "\n")
	micros, err := strconv.ParseInt(first, 10, 64)
	f.starts = time.UnixMicro(micros).Sub(killed)
	return f, err
}

// submit submits a job of one CPU as the operator and returns its id.
func submit(ctx context.Context, c *cluster.Cluster, args ...string) (string, error) {
	args = append([]string{"--parsable", "-n1", "--mem=10", "-o", "/dev/null"}, args...)
	a := c.Run(ctx, c.Operator, "sbatch", args...)
	if a.Exit != 0 {
		return "", fmt.Errorf("sbatch: %s", a.Err)
	}
	return a.Out, nil
}
