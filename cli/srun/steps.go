package srun

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/option"
)

// steps are the parts of one step: one, or one in each of several components
// of a heterogeneous job.
type steps struct {
	o     *Options
	parts []*run
	tasks uint32 // of all parts, once they are placed

	// mu guards what signals and timers read, here and in the parts.
	mu sync.Mutex
	// givenUp: a signal has ended the wait for a place.
	givenUp bool
	joined  bool            // all parts have their place and begin
	forced  bool            // the step is being killed for a signal of srun's
	aborted bool            // by Ctrl-C
	first   bool            // a task has ended
	named   map[uint32]bool // ways to end that need not be named again
	timer   *time.Timer     // --wait
	fences  map[string]*step.Collective
	fence   step.Fence
	waits   int // parts that have come to the fence
}

// where is a part of the step: what was asked for, and the way to the job.
type where struct {
	parsed *option.Parsed
	dial   dial
	// afar: srun is not a process of the job.
	afar bool
}

// runSteps asks for the step in each of the places and stays with it.
func (o *Options) runSteps(ctx context.Context, places []where, signals <-chan os.Signal) error {
	all := &steps{o: o}
	if len(places) > 1 {
		own, p := *o, *o.p
		writes := new(sync.Mutex)
		p.Out, p.Err = &oneAtATime{writes, p.Out}, &oneAtATime{writes, p.Err}
		own.p = &p
		all.o = &own
	}
	defer all.close()
	for _, place := range places {
		r := &run{
			o: all.o, all: all, parsed: place.parsed, part: len(places) > 1, afar: place.afar, quiet: place.parsed.Client.Quiet > 0,
		}
		all.parts = append(all.parts, r)
		if err := r.prepare(); err != nil {
			return err
		}
	}
	all.shareInput()
	for i, r := range all.parts {
		if err := r.broadcast(ctx, places[i].dial); err != nil {
			return err
		}
		conn, err := places[i].dial(ctx)
		if err != nil {
			return err
		}
		r.conn = conn
	}
	lead := all.parts[0]
	over := make(chan struct{})
	defer close(over)
	if err := lead.prolog(); err != nil {
		return err
	}
	defer lead.epilog()
	defer lead.terminal()()
	go all.obey(signals, over)
	return all.follow()
}

func (s *steps) close() {
	for _, r := range s.parts {
		r.closeFiles()
		if r.conn != nil {
			r.conn.Close()
		}
	}
}

// follow asks for the parts, has them start together, and stays until the last
// is over. They are asked for in the order of the components, so that two steps
// over the same ones never wait for each other.
func (s *steps) follow() error {
	for _, r := range s.parts {
		if err := r.ask(); err != nil {
			return err
		}
	}
	if err := s.join(); err != nil {
		return err
	}
	for _, r := range s.parts {
		if err := r.openLate(); err != nil {
			return err
		}
	}
	errs := make([]error, len(s.parts))
	var wg sync.WaitGroup
	for i, r := range s.parts {
		wg.Go(func() {
			if errs[i] = r.stay(); errs[i] == nil {
				return
			}
			if len(s.parts) > 1 { // the others tell of it, and are of no use alone
				r.vanished()
				errs[i] = nil
			}
			s.end()
		})
	}
	wg.Wait()
	code := s.finish()
	switch {
	case errs[0] != nil: // the only part's
		return errs[0]
	case code == 0:
		return nil
	}
	return &slurmerr.Error{Code: code}
}

// finish says what is left to say of the tasks and returns the exit code.
func (s *steps) finish() (code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	for _, r := range s.parts {
		r.exits.flush(r)
		r.last()
		code = max(code, r.exits.code)
	}
	return code
}

// join tells the parts of a step what it is as a whole, and with that to start.
func (s *steps) join() error {
	whole := step.Join{}
	for _, r := range s.parts {
		r.first = s.tasks
		s.tasks += r.created.Tasks
		whole.StepID = max(whole.StepID, r.created.StepID)
		whole.Nodes = append(whole.Nodes, r.nodes()...)
	}
	if len(s.parts) > 1 {
		for _, r := range s.parts {
			s.mu.Lock()
			r.created.StepID = whole.StepID
			s.mu.Unlock()
			part := whole
			part.FirstTask = r.first
			for _, before := range s.parts {
				if before == r {
					break
				}
				part.FirstNode += int32(len(before.created.Nodes))
			}
			if err := r.conn.SendJSON(step.FrameJoin, &part); err != nil {
				return r.lost(err)
			}
		}
	}
	s.mu.Lock()
	s.joined = true
	s.mu.Unlock()
	for _, r := range s.parts {
		r.sendInput()
	}
	return nil
}

// nodes are those of the part, with the numbers of the tasks in the whole.
func (r *run) nodes() []env.StepNode {
	list := make([]env.StepNode, len(r.created.Nodes))
	for i, name := range r.created.Nodes {
		list[i].Name = name
	}
	for t, node := range r.created.TaskNode {
		if int(node) < len(list) && node >= 0 {
			list[node].Tasks = append(list[node].Tasks, int32(r.first)+int32(t))
		}
	}
	return list
}

// end asks for the end of all parts.
func (s *steps) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.parts {
		if !r.ending && r.exits.left > 0 {
			r.end(step.Signal{Terminate: true})
		}
	}
}

// shareInput gives every part a copy of what srun reads.
func (s *steps) shareInput() {
	if len(s.parts) == 1 {
		return
	}
	var readers []*io.PipeWriter
	for _, r := range s.parts {
		if r.in == nil || r.inFile != nil {
			continue
		}
		in, w := io.Pipe()
		r.in, r.pipe = in, in
		readers = append(readers, w)
	}
	go func() {
		buf := make([]byte, step.MaxData)
		for {
			n, err := s.o.p.In.Read(buf)
			for _, w := range readers {
				w.Write(buf[:n]) //nolint:errcheck // one that reads no more
			}
			if err != nil {
				for _, w := range readers {
					w.Close() //nolint:errcheck // it never fails
				}
				return
			}
		}
	}()
}

// oneAtATime keeps the writes of several parts apart.
type oneAtATime struct {
	mu *sync.Mutex
	w  io.Writer
}

func (o *oneAtATime) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(b)
}
