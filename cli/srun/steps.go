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

// steps are the parts of one step: a single one, or one in each of several
// components of a heterogeneous job.
type steps struct {
	o     *Options
	parts []*run
	tasks uint32 // of all parts; set when they are created

	// mu guards what signals and timers access, here and in the parts.
	mu sync.Mutex
	// canceled means that a signal has ended the wait for the step.
	canceled  bool
	joined    bool            // all parts are created and start
	killing   bool            // the step is being killed because of a signal to srun
	aborted   bool            // by Ctrl-C
	taskEnded bool            // a task has ended
	reported  map[uint32]bool // wait statuses that need not be reported again
	timer     *time.Timer     // --wait
	fences    map[string]*step.Collective
	fence     step.Fence
	waits     int // parts that have reached the fence
}

// stepTarget is where a part of the step runs: its options, and the connection to
// its job.
type stepTarget struct {
	parsed *option.Parsed
	dial   dial
	// remote means that srun is not a process of the job.
	remote bool
}

// runSteps runs the step in all of its targets.
func (o *Options) runSteps(ctx context.Context, targets []stepTarget, signals <-chan os.Signal) error {
	all := &steps{o: o}
	if len(targets) > 1 {
		own, p := *o, *o.p
		writes := new(sync.Mutex)
		p.Out, p.Err = &syncWriter{writes, p.Out}, &syncWriter{writes, p.Err}
		own.p = &p
		all.o = &own
	}
	defer all.close()
	for _, target := range targets {
		r := &run{
			o: all.o, all: all, parsed: target.parsed, part: len(targets) > 1, remote: target.remote,
			quiet: target.parsed.Client.Quiet > 0,
		}
		all.parts = append(all.parts, r)
		if err := r.prepare(); err != nil {
			return err
		}
	}
	all.distributeInput()
	for i, r := range all.parts {
		if err := r.broadcast(ctx, targets[i].dial); err != nil {
			return err
		}
		conn, err := targets[i].dial(ctx)
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
	defer lead.rawTerminal()()
	go all.handleSignals(signals, over)
	return all.run()
}

func (s *steps) close() {
	for _, r := range s.parts {
		r.closeFiles()
		if r.conn != nil {
			r.conn.Close()
		}
	}
}

// run creates the parts, starts them together, and waits for their end. Parts are
// created in the order of the components, so that two steps over the same ones
// never wait for each other.
func (s *steps) run() error {
	for _, r := range s.parts {
		if err := r.create(); err != nil {
			return err
		}
	}
	if err := s.join(); err != nil {
		return err
	}
	for _, r := range s.parts {
		if err := r.openStepFiles(); err != nil {
			return err
		}
	}
	errs := make([]error, len(s.parts))
	var wg sync.WaitGroup
	for i, r := range s.parts {
		wg.Go(func() {
			if errs[i] = r.wait(); errs[i] == nil {
				return
			}
			if len(s.parts) > 1 { // the other parts report the loss, and end as well
				r.loseNodes()
				errs[i] = nil
			}
			s.terminate()
		})
	}
	wg.Wait()
	code := s.finish()
	switch {
	case errs[0] != nil: // of the only part
		return errs[0]
	case code == 0:
		return nil
	}
	return &slurmerr.Error{Code: code}
}

// finish reports the tasks that were not reported yet and returns the exit code.
func (s *steps) finish() (code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	for _, r := range s.parts {
		r.exits.flush(r)
		r.reportForced()
		code = max(code, r.exits.code)
	}
	return code
}

// join describes the whole step to its parts, which makes them start.
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
				return r.connError(err)
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

// nodes returns the nodes of the part, with the task numbers of the whole.
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

// terminate requests the termination of all parts.
func (s *steps) terminate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.parts {
		if !r.ending && r.exits.left > 0 {
			r.terminate(step.Signal{Terminate: true})
		}
	}
}

// distributeInput gives every part a copy of what srun reads.
func (s *steps) distributeInput() {
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
	in := s.o.input()
	go func() {
		buf := make([]byte, step.MaxData)
		for {
			n, err := in.Read(buf)
			for _, w := range readers {
				w.Write(buf[:n]) //nolint:errcheck // it may have closed its input
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

// syncWriter serializes the writes of several parts.
type syncWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (o *syncWriter) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(b)
}
