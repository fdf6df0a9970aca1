package agent

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/agent/coord"
	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
)

// reportDelay is the time during which changes of steps are collected for one report.
const reportDelay = 200 * time.Millisecond

// maxStepsPerReport is the maximum number of steps in a report, and maxStepsAtEnd that in
// the report of the job's end.
const (
	maxStepsPerReport = 500
	maxStepsAtEnd     = 20
)

// stepReports reports changes of steps to the API role, several at a time, without
// delaying the steps. It is safe for concurrent use.
type stepReports struct {
	send func(ctx context.Context, list []wire.StepRecord) error

	mu      sync.Mutex
	pending []wire.StepRecord
	at      map[int32]int // index in pending, by step
	wake    chan struct{}
	closing chan struct{} // closed after the last put
	done    chan struct{}
	rest    []wire.StepRecord // not sent; set before done is closed
}

func newStepReports(send func(context.Context, []wire.StepRecord) error) *stepReports {
	s := &stepReports{send: send, at: map[int32]int{}, wake: make(chan struct{}, 1),
		closing: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

// put queues a record. It replaces a queued record of the same step.
func (s *stepReports) put(r wire.StepRecord) {
	s.mu.Lock()
	if i, ok := s.at[r.ID]; ok {
		s.pending[i] = r
	} else {
		s.at[r.ID] = len(s.pending)
		s.pending = append(s.pending, r)
	}
	s.mu.Unlock()
	s.notify()
}

func (s *stepReports) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stepReports) run() {
	defer close(s.done)
	for range s.wake {
		closed := false
		select {
		case <-s.closing:
			closed = true
		case <-time.After(reportDelay):
		}
		s.mu.Lock()
		list := s.pending
		s.pending, s.at = nil, map[int32]int{}
		s.mu.Unlock()
		if closed && len(list) <= maxStepsAtEnd {
			s.rest = list
			return
		}
		for part := range slices.Chunk(list, maxStepsPerReport) {
			ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
			_ = s.send(ctx, part) // only the accounting of these steps is lost
			cancel()
		}
		if closed {
			return
		}
	}
}

// close sends the queued records, within timeout. It does not send the last ones if they
// are few, but returns them for the report of the job's end. It must be called once, after
// the last put.
func (s *stepReports) close(timeout time.Duration) []wire.StepRecord {
	close(s.closing)
	s.notify()
	select {
	case <-s.done:
		return s.rest
	case <-time.After(timeout):
		return nil
	}
}

// reportSteps starts to report the coordinator's steps to the API role.
func (a *Agent) reportSteps() {
	a.steps = newStepReports(func(ctx context.Context, list []wire.StepRecord) error {
		return a.api.Steps(ctx, &wire.StepReport{JobID: a.welcome.JobID, Attempt: a.welcome.Attempt, Steps: list})
	})
	a.coord.OnChange(a.steps.put)
}

// batchUsage returns the current usage of the batch script, with the load of its node's
// GPUs if gpus is true. It returns nil if the script has ended.
func (b *batch) batchUsage(start time.Time, gpus bool) *step.Usage {
	select {
	case <-b.ended:
		return nil
	default:
	}
	session := b.proc.PID
	used, pids := spawn.Sample(map[int]bool{session: true})
	host := b.a.welcome.Hosts[0]
	out := &step.Usage{PIDs: [][]int32{pids[session]}, Record: wire.StepRecord{
		ID: wire.StepBatch, Name: "batch", Nodes: []string{host.Name}, Tasks: 1, CPUs: host.CPUs,
		State: "RUNNING", Start: start.UnixNano(),
	}}
	usage := used[session]
	coord.AddUsage(&out.Record.Usage, true, 0, 0, &usage)
	if gpus {
		out.GPUs = b.a.node.GPULoad()
	}
	return out
}

// reportBatchStep reports the record of the batch script. status is nil while it
// runs.
func (b *batch) reportBatchStep(start time.Time, status *syscall.WaitStatus) {
	if b.proc == nil {
		return
	}
	host := b.a.welcome.Hosts[0]
	r := wire.StepRecord{
		ID: wire.StepBatch, Name: "batch", Nodes: []string{host.Name}, Tasks: 1, CPUs: host.CPUs,
		State: "RUNNING", Start: start.UnixNano(),
	}
	if status != nil {
		u := spawn.Usage(b.proc.Used())
		r.End = time.Now().UnixNano()
		coord.AddUsage(&r.Usage, true, 0, 0, &u)
		r.State = "COMPLETED"
		if status.Signaled() {
			r.Signal = int32(status.Signal())
		} else {
			r.Status = int32(status.ExitStatus())
		}
		switch {
		case r.Signal != 0,
			b.reason == "TIMEOUT" || b.reason == "CANCELLED" || b.reason == "PREEMPTED" || b.reason == "NODE_FAIL":
			r.State = "CANCELLED"
		case r.Status != 0:
			r.State = "FAILED"
		}
	}
	b.a.steps.put(r)
}
