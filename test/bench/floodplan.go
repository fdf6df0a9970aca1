package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// planSeconds is how long plans are watched.
const planSeconds = 15

// plans times the plans of 10,000 pending jobs, which wait behind one that holds
// every CPU, without and with a flood of lists; it returns lines for below the
// table.
func (b *floodBench) plans(ctx context.Context) (string, error) {
	if _, err := b.output(ctx, "scancel", "-u", b.flood.name); err != nil {
		return "", err
	}
	if err := until(ctx, patience, 100*time.Millisecond, func() (bool, error) {
		left, err := b.output(ctx, "squeue", "-h", "-u", b.flood.name, "-o", "%i")
		return left == "", err
	}); err != nil {
		return "", err
	}
	id, err := b.output(ctx, "sbatch", "--parsable", "-N4", "--exclusive", "-t", "60", "-o", "/dev/null", "--wrap",
		"sleep 3600")
	if err != nil {
		return "", err
	}
	if b.job, err = id, until(ctx, patience, 100*time.Millisecond, func() (bool, error) {
		state, err := b.output(ctx, "squeue", "-h", "-j", id, "-o", "%T")
		return state == "RUNNING", err
	}); err != nil {
		return "", err
	}
	say("filling the queue with %d jobs", floodPlan)
	if err := b.client.fill(ctx, b.flood.name, floodPlan, false); err != nil {
		return "", err
	}
	before, err := b.planMean(ctx)
	if err != nil {
		return "", err
	}
	for _, kind := range floodKinds {
		if kind.name != "lists of the queue" {
			continue
		}
		stop, err := b.startFlood(ctx, kind)
		if err != nil {
			return "", err
		}
		during, err := b.planMean(ctx)
		answers := stop()
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("\nA plan of %d pending jobs takes %s on average, and %s during a flood of lists of that queue (%s).\n",
			floodPlan, short(before), short(during), answers), nil
	}
	return "", nil
}

// planMean causes plans by changing jobs, and returns their mean time.
func (b *floodBench) planMean(ctx context.Context) (time.Duration, error) {
	stats := func() (*status.PlanStats, error) {
		text, err := b.client.get(ctx, wire.QueueRoot+"/statistics")
		if err != nil {
			return nil, err
		}
		var d status.Diag
		return &d.Plan, json.Unmarshal(text, &d)
	}
	if err := settled(ctx); err != nil {
		return 0, err
	}
	first, err := stats()
	if err != nil {
		return 0, err
	}
	for range planSeconds {
		if _, err := b.as(ctx, b.quiet, "sbatch", "-o", "/dev/null", "--wrap", "true"); err != nil {
			return 0, err
		}
		if err := settled(ctx); err != nil {
			return 0, err
		}
	}
	last, err := stats()
	if err != nil {
		return 0, err
	}
	if last.Cycles == first.Cycles {
		return 0, fmt.Errorf("no plan was made in %d seconds", planSeconds)
	}
	return time.Duration(last.Total-first.Total) * time.Microsecond / time.Duration(last.Cycles-first.Cycles), nil
}
