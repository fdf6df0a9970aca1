package output

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/ui"
)

// source is where output comes from. look is called by one goroutine at a
// time; close may be called at any time, and ends it.
type source interface {
	read() chunk
	close()
}

// piece is what one look has brought.
type chunk struct {
	parts     []part
	reset     bool // what follows is not what was read before: forget that
	existing  bool // it was there before anybody looked
	truncated bool // the beginning was left out
	caughtUp  bool // there is no more for the moment
	finished  bool // nothing will come any more
	// others is a file that was there before the job: another machine's, or of
	// another job of that name.
	older bool
	path  string // of the file, where the source tells
	tasks uint32 // of the step, where the source tells
	err   error
}

// part is output of one task; noTask: of the batch script.
type part struct {
	task int32
	text []byte
}

const noTask int32 = -1

// Bounds of what is taken from an agent at once.
const (
	batchDelay = 100 * time.Millisecond // ten frames a second
	maxParts   = 256
	readAhead  = 64 // frames that are read ahead
)

// agent is the job's first node's agent, as sattach talks to it.
type agentSource struct {
	cancel  context.CancelFunc
	open    func(context.Context) (io.ReadWriteCloser, error)
	request func(*step.Conn) error
	step    bool      // the source is a step, not the batch script
	stream  ui.Stream // of a step: Stderr leaves its standard output out

	ctx    context.Context //nolint:containedctx // ends what close ends
	frames chan step.Frame
	end    error // of frames, once it is closed
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

func newAgentSource(env *data.Env, id int64, ask func(*step.Conn) error) *agentSource {
	a := &agentSource{request: ask}
	a.ctx, a.cancel = context.WithCancel(env.Context)
	a.open = func(ctx context.Context) (io.ReadWriteCloser, error) { return env.Cluster.Attach(ctx, id) }
	return a
}

func (a *agentSource) close() { a.cancel() }

// look waits until something comes.
func (a *agentSource) read() chunk {
	if a.frames == nil {
		if err := a.connect(); err != nil {
			return chunk{err: err, finished: true}
		}
	}
	var p chunk
	f, ok := <-a.frames
	if !ok {
		return chunk{err: a.end, finished: true}
	}
	a.addFrame(&p, &f)
	for late := time.After(batchDelay); len(p.parts) < maxParts; {
		select {
		case f, ok := <-a.frames:
			if !ok {
				return p // the next look tells
			}
			if f.Type == step.FrameTailed && len(p.parts) > 0 {
				p = chunk{} // the file was cut
			}
			a.addFrame(&p, &f)
			continue
		case <-late:
		}
		break
	}
	return p
}

// begin connects, and reads ahead from then on.
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
			own := *f
			own.Data = append([]byte(nil), f.Data...)
			select {
			case a.frames <- own:
				return nil
			case <-a.ctx.Done():
				return a.ctx.Err()
			}
		})
	}()
	return nil
}

// take adds a frame to a piece.
func (a *agentSource) addFrame(p *chunk, f *step.Frame) {
	switch f.Type {
	case step.FrameTailed:
		var t step.Tailed
		if f.Decode(&t) == nil {
			p.reset, p.existing, p.truncated, p.path = true, true, t.From > 0, t.Path
		}
	case step.FrameCreated:
		var c step.Created
		if f.Decode(&c) == nil {
			p.reset, p.tasks = true, c.Tasks
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
		p.parts = append(p.parts, part{task, f.Data})
	}
}
