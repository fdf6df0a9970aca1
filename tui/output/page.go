// Package output is the page of a job's output. While it is visible it follows the
// output: from the job's file if that is on a volume of this machine, else from the
// job's agent; or the output of a step's tasks, from the agent. If there is no
// source, the page says why.
package output

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/ui"
)

const (
	// pollInterval is the time between two reads of a file; shared file systems do
	// not report changes.
	pollInterval = time.Second
	// reconnectDelay is the pause before the page connects to an agent again.
	reconnectDelay = 2 * time.Second
	// clockSkew is how far the clocks of file servers may differ from ours.
	clockSkew = 10 * time.Minute
)

// Page shows the output of a job.
type Page struct {
	env             *data.Env
	id              string
	stream          ui.Stream
	feed            data.Feed[*status.JobEvent]
	store           *data.Store
	job             *status.Job // nil: it is not in the queue, or not received yet
	recordRequested bool        // accounting was queried

	choice    choice
	path      string // of the file; empty: unknown
	source    source // nil: none yet
	fileError error  // why the file is not the source
	buffer    lineBuffer
	tasks     uint32 // of the step; 0: no step
	task      int32  // the task that is shown; noTask: all
	taskLines []int  // its lines in buffer, counted from the first line ever received
	err       error
	hidden    bool
	reading   bool // a read is in progress
	finished  bool // the source has ended

	top, height, width int
	follow             bool
	paused             bool
	wrap, stamps       bool
	column             int
	pattern            *regexp.Regexp
	found              int // line of the last match
}

// fields are the fields of the job that the page uses.
var fields = []string{
	"id", "state", "user", "start", "noBatch", "stdOut", "stdErr", "workDir", "arrayJobID", "arrayTaskID", "hetJobID",
	"hetOffset", "name",
}

// New returns the page of one output stream of the job with this id.
func New(env *data.Env, id string, stream ui.Stream) *Page {
	p := &Page{env: env, id: id, stream: stream, follow: true, found: -1, hidden: true, task: noTask}
	p.feed = data.JobFeed(env, jobs.Filter{IDs: []string{p.id}, States: jobs.AllStates, Fields: fields})
	return p
}

// recorded carries the path of the output of a job that is only in accounting.
type recorded struct {
	page *Page
	path string
	err  error
}

// chunkRead carries what a source has read.
type chunkRead struct {
	source source
	piece  chunk
}

// poll requests the next read of a file.
type poll struct{ source source }

// reconnect requests a new connection to the agent.
type reconnect struct{ source source }

// Update implements ui.Page.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	if events, next, mine := p.feed.Handle(msg); mine {
		return tea.Batch(p.apply(events), next)
	}
	switch msg := msg.(type) {
	case ui.Shown:
		p.hidden, p.recordRequested = false, false
		p.store = data.NewStore(fields)
		return p.feed.Start()
	case ui.Hidden:
		p.hidden = true
		p.feed.Stop()
		p.closeSource()
	case recorded:
		if msg.page == p && p.source == nil {
			if p.err = msg.err; msg.err == nil {
				p.path = msg.path
				return p.readFrom(&fileSource{open: p.env.OpenFile, path: p.path})
			}
		}
	case poll:
		if msg.source == p.source {
			return p.read()
		}
	case reconnect:
		if msg.source == p.source && p.mayAttach() {
			return p.connect()
		}
	case chunkRead:
		if msg.source == p.source {
			p.reading = false
			return p.handleChunk(msg.piece)
		}
	case chosen:
		if msg.page == p {
			return p.setChoice(msg.choice)
		}
	case stepsLoaded:
		return p.showChoices(msg)
	case ui.Click:
		p.scroll(msg.Wheel)
	case ui.Press:
		return p.press(msg)
	}
	return nil
}

// apply applies events of the job.
func (p *Page) apply(events []*status.JobEvent) tea.Cmd {
	for _, e := range events {
		p.store.Apply(e)
	}
	if !p.store.Complete {
		return nil
	}
	j, ok := p.store.Find(p.id)
	if !ok {
		p.job = nil
		if p.source == nil && !p.recordRequested {
			p.recordRequested = true
			return p.requestRecord()
		}
		return nil
	}
	before := p.job
	p.job = &j
	switch {
	case p.source == nil:
		return p.connect()
	case before != nil && before.State != j.State && j.State == "RUNNING":
		return p.connect() // the job has started, or started again
	}
	return nil
}

// connect reads from the chosen source, from its beginning.
func (p *Page) connect() tea.Cmd {
	j := p.job
	switch {
	case j == nil:
		return nil
	case p.choice.kind == fromStep:
		return p.readFrom(newStepSource(p.env, j.ID, p.choice.step, p.stream))
	case p.choice.kind == fromAgent:
		return p.readFrom(newScriptSource(p.env, j.ID, p.stream))
	}
	file, err := outputFile(j, p.stream)
	if p.err = err; err != nil {
		return nil
	}
	p.path = file
	t := &fileSource{open: p.env.OpenFile, path: file}
	if j.Start > 0 && p.mayAttach() && p.choice.kind == fromAny {
		t.since = time.Unix(j.Start, 0).Add(-clockSkew)
	}
	return p.readFrom(t)
}

// mayAttach reports whether the job's agent accepts a connection: the job is running
// and belongs to the user.
func (p *Page) mayAttach() bool {
	return p.job != nil && p.job.State == "RUNNING" && (p.env.User == "" || p.env.User == p.job.User)
}

// readFrom replaces the source and reads it from its beginning.
func (p *Page) readFrom(s source) tea.Cmd {
	p.closeSource()
	p.source, p.reading, p.finished, p.err = s, false, false, nil
	return p.read()
}

// closeSource closes the present source.
func (p *Page) closeSource() {
	if p.source != nil {
		_, isFile := p.source.(*fileSource)
		if !isFile || !p.reading { // a file that is being read is closed by the garbage collector
			p.source.close()
		}
	}
	p.source = nil
}

// requestRecord requests the accounting record of the job, which has its working
// directory.
func (p *Page) requestRecord() tea.Cmd {
	env, id := p.env, p.id
	return func() tea.Msg {
		ctx, cancel := env.RequestContext()
		defer cancel()
		records, err := env.Cluster.Records(ctx, &status.RecordQuery{Jobs: []string{id}, NoSteps: true})
		if err == nil && len(records.Items) == 0 {
			err = fmt.Errorf("job %s does not exist", id)
		}
		if err != nil {
			return recorded{p, "", err}
		}
		// Accounting has the directory but not the name; assume sbatch's default.
		r := &records.Items[len(records.Items)-1]
		return recorded{p, path.Join(r.WorkDir, "slurm-"+id+".out"), nil}
	}
}

// outputFile returns the path of the file that receives a stream of the job.
func outputFile(j *status.Job, stream ui.Stream) (string, error) {
	if j.NoBatch {
		return "", errors.New("the job has no batch script, so its output went to the terminal of srun or salloc; " +
			"i chooses a running step")
	}
	file := j.StdOut
	if stream == ui.Stderr && j.StdErr != "" {
		file = j.StdErr
	}
	if file == "" {
		file = "slurm-" + format.JobID(j) + ".out"
	}
	if !path.IsAbs(file) {
		file = path.Join(j.WorkDir, file)
	}
	return file, nil
}

// read returns a command that reads the next chunk, or nil if the page is hidden or
// paused, or a read is in progress.
func (p *Page) read() tea.Cmd {
	if p.hidden || p.reading || p.paused || p.source == nil || p.finished {
		return nil
	}
	p.reading = true
	s := p.source
	return func() tea.Msg { return chunkRead{s, s.read()} }
}
