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

const (
	measureInterval = 5 * time.Second // between two requests to the agents
	maxSamples      = 120             // ten minutes
)

// sample is one measurement of what a job uses.
type sample struct {
	at     time.Time
	cpu    int64 // microseconds of CPU time of the running steps so far
	memory int64 // bytes, the sum of the tasks' maximum resident sets
	gpus   []step.GPU
	// instant marks a sample of the metrics API: cpu is the present use in
	// thousandths of a CPU, and memory the present use.
	instant bool
}

// measured carries a sample.
type measured struct {
	page   *Page
	sample sample
	err    error
}

// remeasure requests the next sample.
type remeasure struct{ page *Page }

// measure requests a sample: from the job's agents, as sstat does, or else from the
// metrics API. The agents answer only the owner, the API operators too.
func (p *Page) measure() tea.Cmd {
	if p.measuring || !p.feed.Open() || p.job == nil || p.job.State != "RUNNING" {
		return nil
	}
	p.measuring = true
	env, id, gpus := p.env, p.job.ID, query.GPUs(p.job.TRES) > 0
	return func() tea.Msg {
		ctx, cancel := env.RequestContext()
		defer cancel()
		s, err := queryAgents(ctx, env.Cluster, id, gpus)
		if err != nil {
			if used, ok := podUsage(ctx, env.Cluster, id); ok {
				s, err = used, nil
			}
		}
		s.at = env.Now()
		return measured{p, s, err}
	}
}

// podUsage returns what the job's pods use, as the metrics API reports it.
func podUsage(ctx context.Context, c data.Cluster, id int64) (s sample, ok bool) {
	list, err := c.Pods(ctx, id, true)
	if err != nil {
		return s, false
	}
	s.instant = true
	for i := range list.Items {
		x := &list.Items[i]
		if x.Measured > 0 {
			s.cpu, s.memory, ok = s.cpu+x.CPU, s.memory+x.Memory, true
		}
	}
	return s, ok
}

// queryAgents returns what the job's steps use, as the agents report it.
func queryAgents(ctx context.Context, c data.Cluster, id int64, gpus bool) (s sample, err error) {
	raw, err := c.Attach(ctx, id)
	if err != nil {
		return s, err
	}
	conn, err := step.NewClient(raw)
	if err != nil {
		return s, err
	}
	defer conn.Close()
	if err := conn.SendJSON(step.FrameQuery, &step.Query{GPUs: gpus}); err != nil {
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
		s.memory += u.Record.Usage.RSS.Total
		s.gpus = append(s.gpus, u.GPUs...)
		return nil
	})
	if err == nil && n == 0 {
		err = errors.New("no step is running")
	}
	s.gpus = mergeGPUs(s.gpus)
	return s, err
}

// addSample stores a sample and schedules the next one.
func (p *Page) addSample(m measured) tea.Cmd {
	p.measuring = false
	if m.err == nil {
		p.samples = append(p.samples, m.sample)
		p.samples = p.samples[max(0, len(p.samples)-maxSamples):]
	} else if len(p.samples) == 0 {
		return nil // the job is another user's, or has nothing to measure
	}
	return tea.Tick(measureInterval, func(time.Time) tea.Msg { return remeasure{p} })
}

// cpuLoad returns the fraction of the CPUs that was used, between each two
// successive samples or at a sample of the metrics API.
func cpuLoad(samples []sample, cpus int32) []float64 {
	var out []float64
	for i := range samples {
		if samples[i].instant && cpus > 0 {
			out = append(out, float64(samples[i].cpu)/1000/float64(cpus))
		}
		if i == 0 || samples[i].instant || samples[i-1].instant {
			continue
		}
		span := samples[i].at.Sub(samples[i-1].at).Microseconds()
		if span > 0 && cpus > 0 {
			out = append(out, max(0, float64(samples[i].cpu-samples[i-1].cpu)/float64(span)/float64(cpus)))
		}
	}
	return out
}

// idleShare is the fraction of CPUs or GPUs in use below which a job looks idle.
const idleShare = 0.01

// usageText writes the job's steps, and what it uses of what it has.
func (p *Page) usageText(s *textBuilder) {
	j := p.job
	if len(p.steps) > 0 && j.State != "PENDING" {
		s.heading("Steps")
		for i := range p.steps {
			t := &p.steps[i]
			s.paragraph(ui.Style{}, fmt.Sprintf("%-12s %-10s %-9s %3d CPUs %3d tasks %s",
				t.ID, t.Name, t.State, t.CPUs, t.Tasks, t.NodeList))
		}
	}
	if len(p.samples) == 0 || j.State != "RUNNING" {
		return
	}
	last := p.samples[len(p.samples)-1]
	s.heading("Usage")
	width := min(20, max(0, s.width-48))
	rates := cpuLoad(p.samples, j.CPUs)
	if len(rates) > 0 {
		now := rates[len(rates)-1]
		s.field("CPU", strings.TrimSpace(fmt.Sprintf("%s %3.0f%% of %d CPUs  %s",
			p.env.Meter(int64(now*1000), 1000, width), now*100, j.CPUs, p.env.Spark(rates, 20))))
	} else {
		s.field("CPU", strconv.FormatInt(last.cpu/1e6, 10)+" s of CPU time so far")
	}
	qualifier := " at most"
	if last.instant {
		qualifier = ""
	}
	if limit := memoryLimit(j); limit > 0 {
		s.field("memory", fmt.Sprintf("%s %s of %s%s",
			p.env.Meter(last.memory, limit, width), formatSize(last.memory), formatSize(limit), qualifier))
	} else {
		s.field("memory", formatSize(last.memory)+qualifier)
	}
	p.gpuText(s, rates, width)
}

// isIdle reports whether all loads of the last minute are below idleShare.
func isIdle(rates []float64) bool {
	const enough = int(time.Minute / measureInterval)
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

// memoryLimit returns the memory that a job may use on all of its nodes, in bytes; 0
// if no limit is known.
func memoryLimit(j *status.Job) int64 {
	n := j.MinMemory << 20
	if j.MemoryPerCPU {
		return n * int64(j.CPUs)
	}
	return n * int64(max(1, j.Nodes))
}
