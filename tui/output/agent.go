package output

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/ui"
)

// source is a source of output. Only one goroutine at a time calls read; close may
// be called at any time, and ends a read.
type source interface {
	read() chunk
	close()
}

// chunk is the result of one read.
type chunk struct {
	parts     []part
	reset     bool // discard what was read before: this is the start of the output
	existing  bool // the output was written before the page opened
	truncated bool // the start of the output is missing
	caughtUp  bool // there is nothing more to read at the moment
	finished  bool // the source has ended
	// older reports that the file was last written before the job started: it is
	// another machine's file, or another job's.
	older bool
	path  string // of the file, if the source reports it
	tasks uint32 // number of tasks of the step, if the source reports it
	err   error
}

// part is output of one task; noTask: of the batch script.
type part struct {
	task int32
	text []byte
}

const noTask int32 = -1

const (
	batchDelay = 100 * time.Millisecond // time in which frames are combined into one chunk
	maxParts   = 256                    // of one chunk
	readAhead  = 64                     // frames
)

// agentSource reads from the agent of the job's first node, by sattach's protocol.
type agentSource struct {
	cancel  context.CancelFunc
	open    func(context.Context) (io.ReadWriteCloser, error)
	request func(*step.Conn) error
	step    bool      // the source is a step, not the batch script
	stream  ui.Stream // of a step: Stderr leaves its standard output out

	ctx    context.Context //nolint:containedctx // close cancels it
	frames chan step.Frame
	end    error // why frames was closed
}

// newScriptSource returns a source of what the batch script writes.
func newScriptSource(env *data.Env, id int64, stream ui.Stream) source {
	return newAgentSource(env, id, func(c *step.Conn) error {
		return c.SendJSON(step.FrameTail, &step.Tail{Errors: stream == ui.Stderr, Most: maxBytes})
	})
}

// newStepSource returns a source of what the tasks of a step write from now on.
func newStepSource(env *data.Env, id int64, number int32, stream ui.Stream) source {
	a := newAgentSource(env, id, func(c *step.Conn) error {
		return c.SendJSON(step.FrameAttach, &step.Attach{StepID: number})
	})
	a.step, a.stream = true, stream
	return a
}

// newAgentSource returns a source that sends a request once it has connected.
func newAgentSource(env *data.Env, id int64, request func(*step.Conn) error) *agentSource {
	a := &agentSource{request: request}
	a.ctx, a.cancel = context.WithCancel(env.Context)
	a.open = func(ctx context.Context) (io.ReadWriteCloser, error) { return env.Cluster.Attach(ctx, id) }
	return a
}

func (a *agentSource) close() { a.cancel() }

// read implements source. It waits for the first frame, and combines those that
// arrive within batchDelay.
func (a *agentSource) read() chunk {
	if a.frames == nil {
		if err := a.connect(); err != nil {
			return chunk{err: err, finished: true}
		}
	}
	var c chunk
	f, ok := <-a.frames
	if !ok {
		return chunk{err: a.end, finished: true}
	}
	a.addFrame(&c, &f)
	deadline := time.After(batchDelay)
	for len(c.parts) < maxParts {
		select {
		case f, ok := <-a.frames:
			if !ok {
				return c // the next read returns the error
			}
			if f.Type == step.FrameTailStart && len(c.parts) > 0 {
				c = chunk{} // the file was truncated
			}
			a.addFrame(&c, &f)
		case <-deadline:
			return c
		}
	}
	return c
}

// connect connects to the agent and starts to read frames ahead.
func (a *agentSource) connect() error {
	raw, err := a.open(a.ctx)
	if err != nil {
		return err
	}
	conn, err := step.NewClient(raw)
	if err != nil {
		return err
	}
	if err := a.request(conn); err != nil {
		conn.Close()
		return err
	}
	a.frames = make(chan step.Frame, readAhead)
	go func() {
		<-a.ctx.Done()
		conn.Close()
	}()
	go func() {
		defer conn.Close()
		defer close(a.frames)
		a.end = step.Follow(conn, nil, func(f *step.Frame) error {
			if f.Type == step.FrameRefused {
				return fmt.Errorf("the job's agent: %s", f.Data)
			}
			clone := *f
			clone.Data = bytes.Clone(f.Data)
			select {
			case a.frames <- clone:
				return nil
			case <-a.ctx.Done():
				return a.ctx.Err()
			}
		})
	}()
	return nil
}

// addFrame adds a frame to a chunk.
func (a *agentSource) addFrame(c *chunk, f *step.Frame) {
	switch f.Type {
	case step.FrameTailStart:
		var t step.TailStart
		if f.Decode(&t) == nil {
			c.reset, c.existing, c.truncated, c.path = true, true, t.From > 0, t.Path
		}
	case step.FrameCreated:
		var created step.Created
		if f.Decode(&created) == nil {
			c.reset, c.tasks = true, created.Tasks
		}
	case step.FrameStdout, step.FrameStderr:
		task := noTask
		if a.step {
			if a.stream == ui.Stderr && f.Type == step.FrameStdout {
				return
			}
			task = int32(f.Task)
		}
		if f.Flags&step.FlagPartial != 0 {
			f.Data = append(f.Data, '\n')
		}
		c.parts = append(c.parts, part{task, f.Data})
	}
}
