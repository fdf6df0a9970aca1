package coord

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
)

// sampleTime bounds how long the tasks' nodes are waited for; what has come by
// then is told.
const sampleTime = 5 * time.Second

// sampler gathers what the tasks of a step use. Safe for concurrent use.
type sampler struct {
	mu   sync.Mutex
	seen map[uint32]*step.TaskSample
	all  int
	done chan struct{} // closed when all have told
}

func (x *sampler) add(list []step.TaskSample) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range list {
		before := len(x.seen)
		if int(list[i].Task) < x.all {
			x.seen[list[i].Task] = &list[i]
		}
		if len(x.seen) == x.all && before < x.all {
			close(x.done)
		}
	}
}

// Batch has what the batch script uses told by fn, which gives nil when it is
// over. gpus: what the GPUs of its node do is wanted, too.
func (c *Coordinator) Batch(fn func(gpus bool) *step.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batch = fn
}

// query tells the client at conn what steps use.
func (c *Coordinator) query(conn *step.Conn, f *step.Frame) {
	var q step.Query
	if f.Decode(&q) != nil {
		return
	}
	wanted := func(id int32) bool { return len(q.Steps) == 0 || slices.Contains(q.Steps, id) }
	var all []*step.Usage
	c.mu.Lock()
	batch := c.batch
	c.mu.Unlock()
	if batch != nil {
		if u := batch(q.GPUs); u != nil && wanted(u.Record.ID) {
			all = append(all, u)
		}
	}
	live := c.running()
	for _, id := range slices.Sorted(maps.Keys(live)) {
		if id >= 0 && wanted(id) {
			if u := live[id].sample(q.GPUs); u != nil {
				all = append(all, u)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *step.Usage) int { return cmp.Compare(a.Record.ID, b.Record.ID) })
	for _, u := range all {
		if conn.SendJSON(step.FrameUsage, u) != nil {
			return
		}
	}
	conn.Send(&step.Frame{Type: step.FrameDone}) //nolint:errcheck // as it goes
}

// sample asks the tasks' nodes; nil: the step does not run.
func (s *session) sample(gpus bool) *step.Usage {
	s.sampling.Lock() // one at a time
	defer s.sampling.Unlock()
	s.mu.Lock()
	tree := s.tree
	if tree == nil {
		s.mu.Unlock()
		return nil
	}
	x := &sampler{seen: map[uint32]*step.TaskSample{}, all: int(s.grant.layout.Count), done: make(chan struct{})}
	s.sampler = x
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.sampler = nil
		s.mu.Unlock()
	}()
	f := step.Frame{Type: step.FrameSample, Task: step.AllTasks}
	if gpus {
		f.Flags = step.FlagGPUs
	}
	if tree.Down(&f) != nil {
		return nil
	}
	select {
	case <-x.done:
	case <-time.After(sampleTime):
	}
	return s.usage(x)
}

func (s *session) usage(x *sampler) *step.Usage {
	out := &step.Usage{Record: s.rec.get(), PIDs: make([][]int32, len(s.grant.layout.Nodes))}
	out.Record.Usage = wire.Usage{}
	x.mu.Lock()
	defer x.mu.Unlock()
	some := false
	for _, task := range slices.Sorted(maps.Keys(x.seen)) {
		one := x.seen[task]
		node := s.rec.node[task]
		Add(&out.Record.Usage, some, node, int32(task), &one.Used)
		out.PIDs[node] = append(out.PIDs[node], one.PIDs...)
		out.GPUs = append(out.GPUs, one.GPUs...)
		some = true
	}
	return out
}

// sampled takes what a node told.
func (s *session) sampled(f *step.Frame) error {
	var list []step.TaskSample
	if err := f.Decode(&list); err != nil {
		return err
	}
	s.mu.Lock()
	x := s.sampler
	s.mu.Unlock()
	if x != nil {
		x.add(list)
	}
	return nil
}
