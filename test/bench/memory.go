package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"time"
)

// memoryPause is how long the cluster is left alone before its heap is measured: the
// planner has made its plan of all jobs then, and accounting has written its records.
const memoryPause = 5 * time.Second

// benchMemory prints the live heap of the local cluster's process that each pending job
// takes, and the processor time of its submission. With o.profiles it writes heap profiles
// there.
func benchMemory(ctx context.Context, o options) error {
	_, state, stop, err := startAlone(ctx, o, queueSuite.up...)
	defer stop()
	if err != nil {
		return err
	}
	c, err := newAPIClient(filepath.Join(state, "kubeconfig"))
	if err != nil {
		return err
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	if err := c.fill(ctx, me.Username, 100, true); err != nil { // what is allocated once
		return err
	}
	before, err := c.restingHeap(ctx, o.profiles, "before")
	if err != nil {
		return err
	}
	const cpuTime = "process_cpu_seconds_total"
	used, err := c.metric(ctx, cpuTime)
	if err != nil {
		return err
	}
	profiled := make(chan error, 1)
	go func() { profiled <- c.profile(ctx, o.profiles, "cpu", "profile?seconds=10") }()
	if err := c.fill(ctx, me.Username, queueLength, true); err != nil {
		return err
	}
	if err := <-profiled; err != nil {
		return err
	}
	usedThen, err := c.metric(ctx, cpuTime)
	if err != nil {
		return err
	}
	after, err := c.restingHeap(ctx, o.profiles, "after")
	if err != nil {
		return err
	}
	each := time.Duration((usedThen - used) * float64(time.Second) / queueLength)
	fmt.Printf("%d pending jobs: %d bytes of live heap each; a submission takes %s of processor time\n", queueLength,
		(after-before)/queueLength, short(each))
	return nil
}

// restingHeap returns the live heap of a cluster that has been left alone for a moment,
// and writes its profile into the directory, unless that is "".
func (c *apiClient) restingHeap(ctx context.Context, directory, name string) (int64, error) {
	select {
	case <-time.After(memoryPause):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	n, err := c.heap(ctx)
	if err != nil {
		return 0, err
	}
	return n, c.profile(ctx, directory, name, "heap?gc=1")
}

// profile writes a profile of the process into the directory, unless that is "".
func (c *apiClient) profile(ctx context.Context, directory, name, path string) error {
	if directory == "" {
		return nil
	}
	profile, err := c.get(ctx, "/debug/pprof/"+path)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, name+".pprof"), profile, 0o600)
}
