package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// nodesSuite lists a cluster of many nodes on which many jobs run, before a
// long queue.
var nodesSuite = suite{
	name:  "nodes",
	up:    []string{"--nodes=1000", "--cpus=4", "--memory=4000M"},
	ups:   1,
	marks: marks{"<!-- nodes: written by make bench-queue -->\n", "<!-- end of nodes -->\n"},
	measures: []measure{
		{"`sinfo`, 1,000 nodes", "15 ms", sinfoCall},
		{"`squeue`, 10,000 pending and 1,000 running", "150 ms", squeueRunning},
	},
}

const manyNodes, manyRunning = 1000, 1000

// sinfoCall is measured with this number of nodes.
func sinfoCall(ctx context.Context, s *system, n int) (samples, error) {
	nodes, err := s.output(ctx, "sinfo", "-h", "-N", "-o", "%N")
	if err != nil || strings.Count(nodes, "\n")+1 < manyNodes {
		return nil, err
	}
	return timed(n, func(int) error {
		_, err := s.output(ctx, "sinfo")
		return err
	})
}

// squeueRunning is measured if this number of jobs can run.
func squeueRunning(ctx context.Context, s *system, n int) (samples, error) {
	cpus, err := s.output(ctx, "sinfo", "-h", "-o", "%C")
	var idle, all int
	if _, scanned := fmt.Sscanf(strings.ReplaceAll(cpus, "/", " "), "%d %d %d %d", new(int), &idle, new(int),
		&all); err != nil || scanned != nil || idle < manyRunning {
		return nil, err
	}
	if _, err := fill(ctx, s, queueLength); err != nil {
		return nil, err
	}
	id, err := s.output(ctx, "sbatch", "--parsable", "-n1", "--mem=10", "-a", fmt.Sprintf("1-%d", manyRunning), "-o",
		"/dev/null", "--wrap", "sleep 900")
	if err != nil {
		return nil, err
	}
	err = until(ctx, 10*time.Minute, time.Second, func() (bool, error) {
		running, err := s.output(ctx, "squeue", "-h", "-r", "-j", id, "-t", "R", "-o", "%i")
		return len(strings.Fields(running)) == manyRunning, err
	})
	if err != nil {
		return nil, err
	}
	return timed(n, func(int) error {
		_, err := s.output(ctx, "squeue")
		return err
	})
}
