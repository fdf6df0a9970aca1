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

// stepPause is how long changes of steps are gathered for one report.
const stepPause = 200 * time.Millisecond

// stepsAtOnce bounds one report, stepsAtEnd what goes with that of the job's end.
const (
	stepsAtOnce = 500
	stepsAtEnd  = 20
)

// stepReports tells the API role about steps, several at a time, without
// holding up any. Safe for concurrent use.
type stepReports struct {
	send func(ctx context.Context, list []wire.StepRecord) error

	mu      sync.Mutex
	pending []wire.StepRecord
	at      map[int32]int // of a step in pending
	wake    chan struct{}
	closing chan struct{} // closed when nothing more will be put in
	done    chan struct{}
	rest    []wire.StepRecord // set before done
}

func newStepReports(send func(context.Context, []wire.StepRecord) error) *stepReports {
	s := &stepReports{send: send, at: map[int32]int{}, wake: make(chan struct{}, 1),
		closing: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

// put takes a record in place of what is still to be told about the same step.
func (s *stepReports) put(r wire.StepRecord) {
	s.mu.Lock()
	if i, ok := s.at[r.ID]; ok {
		s.pending[i] = r
	} else {
		s.at[r.ID] = len(s.pending)
		s.pending = append(s.pending, r)
	}
	s.mu.Unlock()
	s.poke()
}

func (s *stepReports) poke() {
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
		case <-time.After(stepPause):
		}
		s.mu.Lock()
		list := s.pending
		s.pending, s.at = nil, map[int32]int{}
		s.mu.Unlock()
		if closed && len(list) <= stepsAtEnd {
			s.rest = list
			return
		}
		for part := range slices.Chunk(list, stepsAtOnce) {
			ctx, cancel := context.WithTimeout(context.Background(), reportTime)
			_ = s.send(ctx, part) // accounting alone suffers, and says that it was not measured
			cancel()
		}
		if closed {
			return
		}
	}
}

// close tells what is left, within limit, and returns what is still to be told:
// a few records, which may go with the report of the job's end. It is called
// once, and nothing may be put in afterwards.
func (s *stepReports) close(limit time.Duration) []wire.StepRecord {
	close(s.closing)
	s.poke()
	select {
	case <-s.done:
		return s.rest
	case <-time.After(limit):
		return nil
	}
}

// reportSteps has the coordinator's steps told to the API role.
func (a *Agent) reportSteps() {
	a.steps = newStepReports(func(ctx context.Context, list []wire.StepRecord) error {
		return a.api.Steps(ctx, &wire.StepReport{JobID: a.welcome.JobID, Attempt: a.welcome.Attempt, Steps: list})
	})
	a.coord.OnChange(a.steps.put)
}

// batchUsage is what the batch script uses, with what the GPUs of its node do
// where that is wanted; nil: there is none any more.
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
	one := used[session]
	coord.AddUsage(&out.Record.Usage, true, 0, 0, &one)
	if gpus {
		out.GPUs = b.a.node.GPULoad()
	}
	return out
}

// batchStep is the record of the batch script; status is nil while it runs.
func (b *batch) batchStep(start time.Time, status *syscall.WaitStatus) {
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
		r.Usage = wire.Usage{
			UserCPU: u.User, SystemCPU: u.System, MinCPU: u.User + u.System, MaxRSS: u.RSS, TotalRSS: u.RSS,
			MaxPages: u.Pages, TotalPages: u.Pages, DiskRead: u.Read, DiskWrite: u.Write,
		}
		r.State = "COMPLETED"
		if status.Signaled() {
			r.Signal = int32(status.Signal())
		} else {
			r.Status = int32(status.ExitStatus())
		}
		switch {
		case r.Signal != 0, b.reason == "TIMEOUT" || b.reason == "CANCELLED" || b.reason == "PREEMPTED" || b.reason == "NODE_FAIL":
			r.State = "CANCELLED"
		case r.Status != 0:
			r.State = "FAILED"
		}
	}
	b.a.steps.put(r)
}
