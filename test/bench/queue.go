package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// queueSuite measures a queue that grows to 10,000 jobs, is listed at some
// lengths, and is cancelled; and an array of very short tasks.
var queueSuite = suite{
	name:  "queue",
	up:    []string{"--nodes=4", "--cpus=4", "--memory=4000M"}, // as the Slurm of our comparisons
	ups:   1,
	marks: marks{"<!-- queue: written by make bench-queue -->\n", "<!-- end of queue -->\n"},
	measures: []measure{
		{"`squeue --version`", "10 ms", versionCall},
		{"array of 1,000 tasks of `true` on 16 cores, submission to the last one's end", "10 s", shortArray},
		{"1,000 jobs of `true` on 16 cores, time of each, from their partition's start to the last one's end", "7 ms", manyShortJobs},
		{"`squeue`, 10 pending", "12 ms", squeueOf(10)},
		{"`squeue`, 1,000 pending", "16 ms", squeueOf(1000)},
		{"time of one submission, 8 submitters, queue growing to 10,000", "3.8 ms (260/s)", growQueue},
		{"`squeue`, 10,000 pending", "90 ms", squeueOf(10000)},
		{"`squeue --json`, 10,000 pending", "1.2 s", squeueOf(10000, "--json")},
		{"`sbatch`, one call, 10,000 pending", "20 ms", sbatchCall},
		{"`scancel -u`, 10,000 pending", "5.8 s", cancelQueue},
	},
}

const (
	submitters  = 8
	queueLength = 10000
)

func versionCall(ctx context.Context, s *system, n int) (samples, error) {
	return timed(n, func(int) error {
		_, err := s.output(ctx, "squeue", "--version")
		return err
	})
}

// shortArray times one array of tasks that do nothing.
func shortArray(ctx context.Context, s *system, _ int) (samples, error) {
	start := time.Now()
	id, err := s.output(ctx, "sbatch", "--parsable", "-n1", "--mem=10", "-a", "1-1000", "-o", "/dev/null", "--wrap",
		"true")
	if err != nil {
		return nil, err
	}
	err = until(ctx, 5*time.Minute, 50*time.Millisecond, func() (bool, error) {
		left, err := s.output(ctx, "squeue", "-h", "-j", id, "-t", "PD,CF,R,CG", "-o", "%i")
		return left == "", err
	})
	return samples{time.Since(start)}, err
}

// manyShortJobs times many jobs of one task, each with a record of its own, once they have
// been submitted and their partition is up.
func manyShortJobs(ctx context.Context, s *system, _ int) (samples, error) {
	const jobs = 1000
	if err := s.setPartition(ctx, "DOWN"); err != nil {
		return nil, err
	}
	err := eightAtATime(jobs, func(int) error {
		_, err := s.output(ctx, "sbatch", "-n1", "--mem=10", "-J", "short", "-o", "/dev/null", "--wrap", "true")
		return err
	})
	start := time.Now()
	if err := errors.Join(err, s.setPartition(ctx, "UP")); err != nil {
		return nil, err
	}
	err = until(ctx, 5*time.Minute, 50*time.Millisecond, func() (bool, error) {
		left, err := s.output(ctx, "squeue", "-h", "-n", "short", "-t", "PD,CF,R,CG", "-o", "%i")
		return left == "", err
	})
	return samples{time.Since(start) / jobs}, err
}

// squeueOf measures squeue with that number of pending jobs.
func squeueOf(jobs int, args ...string) func(context.Context, *system, int) (samples, error) {
	return func(ctx context.Context, s *system, n int) (samples, error) {
		if _, err := fill(ctx, s, jobs); err != nil {
			return nil, err
		}
		return timed(n, func(int) error {
			_, err := s.output(ctx, "squeue", args...)
			return err
		})
	}
}

// growQueue fills the queue with several concurrent submitters and returns the time per
// job.
func growQueue(ctx context.Context, s *system, _ int) (samples, error) {
	start := time.Now()
	made, err := fill(ctx, s, queueLength)
	if err != nil || made == 0 {
		return nil, errors.Join(err, errUnless(made > 0, "the queue was full before"))
	}
	return samples{time.Since(start) / time.Duration(made)}, nil
}

func errUnless(ok bool, text string) error {
	if ok {
		return nil
	}
	return errors.New(text)
}

// fill submits held jobs until that number is pending, and returns how many it
// submitted.
func fill(ctx context.Context, s *system, jobs int) (made int, err error) {
	have, err := waitingJobs(ctx, s)
	if err != nil || have >= jobs {
		return 0, err
	}
	var (
		next atomic.Int64
		wg   sync.WaitGroup
		errs [submitters]error
	)
	for i := range submitters {
		wg.Go(func() {
			for errs[i] == nil && next.Add(1) <= int64(jobs-have) {
				_, errs[i] = s.output(ctx, "sbatch", "--hold", "-N1", "-J", "bench", "-o", "/dev/null", "--wrap",
					"true")
			}
		})
	}
	wg.Wait()
	return jobs - have, errors.Join(errs[:]...)
}

func waitingJobs(ctx context.Context, s *system) (int, error) {
	list, err := s.output(ctx, "squeue", "-h", "-n", "bench", "-t", "PD", "-o", "%i")
	return len(strings.Fields(list)), err
}

// cancelQueue times the one command that empties the queue.
func cancelQueue(ctx context.Context, s *system, _ int) (samples, error) {
	return timed(1, func(int) error {
		if _, err := s.output(ctx, "scancel", "-u", strconv.Itoa(os.Getuid()), "-n", "bench"); err != nil {
			return err
		}
		return until(ctx, time.Minute, 10*time.Millisecond, func() (bool, error) {
			left, err := waitingJobs(ctx, s)
			return left == 0, err
		})
	})
}

// until waits for a condition, with a deadline.
func until(ctx context.Context, most, pause time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, errors.New("no end after "+most.String()))
	defer cancel()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting: %w", context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}
