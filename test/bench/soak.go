package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The suite "soak" submits jobs of one task at a constant rate for as long as -duration,
// and follows what the cluster's process uses. A job leaves the queue a minute after its
// end (MinJobAge), and the API server keeps events of watches for 75 seconds, so what the
// process needs is constant after minutes.
var soakMarks = marks{"<!-- soak: written by make bench-soak -->\n", "<!-- end of soak -->\n"}

var soakDuration time.Duration

func init() {
	flag.DurationVar(&soakDuration, "duration", 30*time.Minute, "how long the suite soak lasts")
}

const soakConf = `NodeName=n[1-4] CPUs=4 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES
MinJobAge=60
`

// soakRate is the number of jobs per second: few enough for a busy machine.
const soakRate = 6

// soakSample is what the process used at one time.
type soakSample struct {
	at   time.Duration
	jobs int64 // submitted until then
	usage
}

func benchSoak(ctx context.Context, o options) error {
	busy := firstField("/proc/loadavg")
	b, stop, err := startSized(ctx, o, soakConf)
	defer stop()
	if err != nil {
		return err
	}
	samples, err := b.soak(ctx)
	if err != nil {
		return err
	}
	text := soakTable(samples) + circumstances(busy)
	return soakMarks.publish(o.page, text)
}

// soak submits jobs and takes a sample every thirtieth of the time.
func (b *sizeBench) soak(ctx context.Context) ([]soakSample, error) {
	loading, stop := context.WithTimeout(ctx, soakDuration)
	defer stop()
	var submitted atomic.Int64
	var failure error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer stop()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for failure == nil {
			select {
			case <-tick.C:
				failure = b.submitSome(loading, &submitted)
			case <-loading.Done():
				return
			}
		}
	})
	var samples []soakSample
	var err error
	start := time.Now()
	for tick := time.NewTicker(soakDuration / 30); err == nil && loading.Err() == nil; {
		select {
		case <-tick.C:
			s := soakSample{at: time.Since(start), jobs: submitted.Load()}
			s.usage, err = b.usage(ctx)
			samples = append(samples, s)
			say("%v: %d jobs, %v", s.at.Round(time.Second), s.jobs, s.cells())
		case <-loading.Done():
		}
	}
	stop()
	wg.Wait()
	if errors.Is(failure, context.DeadlineExceeded) || loading.Err() != nil && ctx.Err() == nil {
		failure = nil // the last command was ended with the load
	}
	return samples, errors.Join(err, failure)
}

// submitSome submits the jobs of one second.
func (b *sizeBench) submitSome(ctx context.Context, submitted *atomic.Int64) error {
	for range soakRate {
		code, err := b.api.do(ctx, http.MethodPost, batchJobsOf("root"), newBatchJob("soak", false, 200))
		if err != nil {
			return err
		}
		if code != http.StatusCreated {
			return fmt.Errorf("a submission was answered %d", code)
		}
		submitted.Add(1)
	}
	return nil
}

// soakTable compares the second sixth of the time with the last one.
func soakTable(samples []soakSample) string {
	n := len(samples) / 6
	if n == 0 {
		return ""
	}
	first, last := samples[n:2*n], samples[len(samples)-n:]
	row := func(name string, of func(*soakSample) int64, unit string) string {
		a, b := medianOf(first, of), medianOf(last, of)
		change := 100 * float64(b-a) / float64(max(a, 1))
		return fmt.Sprintf("| %s | %d%s | %d%s | %+.1f %% |\n", name, a, unit, b, unit, change)
	}
	return fmt.Sprintf("| | %s to %s | %s to %s | change |\n|---|---|---|---|---|\n", short(first[0].at),
		short(first[n-1].at), short(last[0].at), short(last[n-1].at)) +
		row("jobs submitted", func(s *soakSample) int64 { return s.jobs }, "") +
		row("live heap", func(s *soakSample) int64 { return s.heap >> 20 }, " MB") +
		row("resident", func(s *soakSample) int64 { return s.resident >> 20 }, " MB") +
		row("goroutines", func(s *soakSample) int64 { return s.goroutines }, "") +
		row("descriptors", func(s *soakSample) int64 { return s.descriptors }, "") +
		row("etcd and accounting on disk", func(s *soakSample) int64 { return s.disk >> 20 }, " MB")
}

func medianOf(samples []soakSample, of func(*soakSample) int64) int64 {
	var all []int64
	for i := range samples {
		all = append(all, of(&samples[i]))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
