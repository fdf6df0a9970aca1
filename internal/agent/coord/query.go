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

// sampleTimeout limits the wait for samples from the tasks' nodes. The response
// to a query contains those that have arrived by then.
const sampleTimeout = 5 * time.Second

// sampler collects the usage of the tasks of a step. It is safe for concurrent use.
type sampler struct {
	mu      sync.Mutex
	samples map[uint32]*step.TaskSample
	tasks   int           // of the step
	done    chan struct{} // closed when there is a sample of every task
}

func (x *sampler) add(list []step.TaskSample) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range list {
		before := len(x.samples)
		if int(list[i].Task) < x.tasks {
			x.samples[list[i].Task] = &list[i]
		}
		if len(x.samples) == x.tasks && before < x.tasks {
			close(x.done)
		}
	}
}

// SetBatchUsage registers the function that returns the usage of the batch
// script, with the load of its node's GPUs if gpus is true, or nil after the end
// of the script.
func (c *Coordinator) SetBatchUsage(fn func(gpus bool) *step.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batch = fn
}

// query sends the usage of steps to a client.
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
	conn.Send(&step.Frame{Type: step.FrameDone}) //nolint:errcheck // the client may be gone
}

// sample returns the usage of a step, which it requests from the tasks' nodes. It returns
// nil if the step does not run.
func (s *session) sample(gpus bool) *step.Usage {
	s.sampling.Lock() // one query at a time
	defer s.sampling.Unlock()
	s.mu.Lock()
	tree := s.tree
	if tree == nil {
		s.mu.Unlock()
		return nil
	}
	x := &sampler{
		samples: map[uint32]*step.TaskSample{},
		tasks:   int(s.allocation.layout.Count),
		done:    make(chan struct{}),
	}
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
	case <-time.After(sampleTimeout):
	}
	return s.usage(x)
}

// usage returns the usage of the step according to the samples in x.
func (s *session) usage(x *sampler) *step.Usage {
	out := &step.Usage{Record: s.rec.get(), PIDs: make([][]int32, len(s.allocation.layout.Nodes))}
	out.Record.Usage = wire.Usage{}
	x.mu.Lock()
	defer x.mu.Unlock()
	first := true
	for _, task := range slices.Sorted(maps.Keys(x.samples)) {
		sample := x.samples[task]
		node := s.rec.node[task]
		AddUsage(&out.Record.Usage, first, node, int32(task), &sample.Used)
		out.PIDs[node] = append(out.PIDs[node], sample.PIDs...)
		out.GPUs = append(out.GPUs, sample.GPUs...)
		first = false
	}
	return out
}

// addSamples handles the samples of a node.
func (s *session) addSamples(f *step.Frame) error {
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
