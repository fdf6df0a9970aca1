package job

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/ui"
)

// Bounds of measuring.
const (
	measurePause = 5 * time.Second // between two questions to the agents
	mostSamples  = 120             // kept: ten minutes
)

// sample is what a job has used up to an instant.
type sample struct {
	at     time.Time
	cpu    int64 // microseconds, of steps that run
	memory int64 // bytes, the sum of what tasks have had at most
}

// measured is the agents' answer.
type measured struct {
	page   *Page
	sample sample
	err    error
}

type measureAgain struct{ page *Page }

// measure asks the agents what the job's steps use, as sstat does: its owner
// and operators are told.
func (p *Page) measure() tea.Cmd {
	if p.measuring || p.watch == nil || p.job == nil || p.job.State != "RUNNING" {
		return nil
	}
	p.measuring = true
	env, id := p.env, p.job.ID
	return func() tea.Msg {
		ctx, cancel := env.Timeout()
		defer cancel()
		s, err := ask(ctx, env.Cluster, id)
		s.at = env.Now()
		return measured{p, s, err}
	}
}

func ask(ctx context.Context, c data.Cluster, id int64) (s sample, err error) {
	raw, err := c.Attach(ctx, id)
	if err != nil {
		return s, err
	}
	conn, err := step.NewClient(raw)
	if err != nil {
		return s, err
	}
	defer conn.Close()
	if err := conn.SendJSON(step.FrameQuery, &step.Query{}); err != nil {
		return s, err
	}
	n := 0
	err = step.Follow(conn, nil, func(f *step.Frame) error {
		var u step.Usage
		if f.Type != step.FrameUsage {
			return fmt.Errorf("%w: type %d", step.ErrFrame, f.Type)
		}
		if err := f.Decode(&u); err != nil {
			return err
		}
		n++
		s.cpu += u.Record.Usage.UserCPU + u.Record.Usage.SystemCPU
		s.memory += u.Record.Usage.TotalRSS
		return nil
	})
	if err == nil && n == 0 {
		err = errors.New("no steps run")
	}
	return s, err
}

// take takes an answer in.
func (p *Page) take(m measured) tea.Cmd {
	p.measuring = false
	if m.err == nil {
		p.samples = append(p.samples, m.sample)
		p.samples = p.samples[max(0, len(p.samples)-mostSamples):]
	} else if len(p.samples) == 0 {
		return nil // not ours, or nothing to measure: not asked again
	}
	return tea.Tick(measurePause, func(time.Time) tea.Msg { return measureAgain{p} })
}

// busy is the part of the CPUs that was used between two samples each.
func busy(samples []sample, cpus int32) []float64 {
	var out []float64
	for i := 1; i < len(samples); i++ {
		span := samples[i].at.Sub(samples[i-1].at).Microseconds()
		if span > 0 && cpus > 0 {
			out = append(out, max(0, float64(samples[i].cpu-samples[i-1].cpu)/float64(span)/float64(cpus)))
		}
	}
	return out
}

// idleShare is the use of CPUs below which a job with GPUs looks idle.
const idleShare = 0.01

// used compares what the job uses with what it has.
func (p *Page) used(s *sheet) {
	j := p.job
	if len(p.steps) > 0 && j.State != "PENDING" {
		s.head("Steps")
		for i := range p.steps {
			t := &p.steps[i]
			s.say(ui.Style{}, fmt.Sprintf("%-12s %-10s %-9s %3d CPUs %3d tasks %s", t.ID, t.Name, t.State, t.CPUs, t.Tasks, t.NodeList))
		}
	}
	if len(p.samples) == 0 || j.State != "RUNNING" {
		return
	}
	last := p.samples[len(p.samples)-1]
	s.head("Used, against what it has")
	width := min(20, max(0, s.width-48))
	if rates := busy(p.samples, j.CPUs); len(rates) > 0 {
		now := rates[len(rates)-1]
		s.field("CPU", strings.TrimSpace(fmt.Sprintf("%s %3.0f%% of %d CPUs  %s", p.env.Meter(int64(now*1000), 1000, width), now*100, j.CPUs, p.env.Spark(rates, 20))))
		if gpus := query.GPUs(j.TRES); gpus > 0 && idle(rates) {
			s.say(p.env.Bad, fmt.Sprintf("! It has %d GPUs and has used almost no CPU since this page is open: they are likely idle.", gpus))
		}
	} else {
		s.field("CPU", strconv.FormatInt(last.cpu/1e6, 10)+" s of CPU time so far")
	}
	if whole := memoryOf(j); whole > 0 {
		s.field("memory", fmt.Sprintf("%s %s of %s at most", p.env.Meter(last.memory, whole, width), size(last.memory), size(whole)))
	} else {
		s.field("memory", size(last.memory)+" at most")
	}
}

// idle tells whether the CPUs were idle for a minute.
func idle(rates []float64) bool {
	const enough = int(time.Minute / measurePause)
	if len(rates) < enough {
		return false
	}
	for _, r := range rates[len(rates)-enough:] {
		if r >= idleShare {
			return false
		}
	}
	return true
}

// memoryOf is the memory that a job may use on all of its nodes, in bytes; 0:
// no limit is known.
func memoryOf(j *status.Job) int64 {
	n := j.MinMemory << 20
	if j.MemoryPerCPU {
		return n * int64(j.CPUs)
	}
	return n * int64(max(1, j.Nodes))
}
