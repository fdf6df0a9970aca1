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
	measureInterval = 5 * time.Second // between two questions to the agents
	maxSamples      = 120             // kept: ten minutes
)

// sample is what a job has used up to an instant.
type sample struct {
	at     time.Time
	cpu    int64 // microseconds, of steps that run
	memory int64 // bytes, the sum of what tasks have had at most
	gpus   []step.GPU
	// rated: cpu is what is used now, in thousandths of a CPU, and memory what
	// is used now, as the metrics API tells it.
	instant bool
}

// measured is the agents' answer.
type measured struct {
	page   *Page
	sample sample
	err    error
}

type remeasure struct{ page *Page }

// measure asks the agents what the job's steps use, as sstat does, or where it
// has no agents the metrics API what its pods use. Its owner is told; of pods
// operators are, too.
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

// podsUse is what the metrics API knows of the job's pods.
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
		s.memory += u.Record.Usage.TotalRSS
		s.gpus = append(s.gpus, u.GPUs...)
		return nil
	})
	if err == nil && n == 0 {
		err = errors.New("no steps run")
	}
	s.gpus = mergeGPUs(s.gpus)
	return s, err
}

// taken takes an answer in.
func (p *Page) addSample(m measured) tea.Cmd {
	p.measuring = false
	if m.err == nil {
		p.samples = append(p.samples, m.sample)
		p.samples = p.samples[max(0, len(p.samples)-maxSamples):]
	} else if len(p.samples) == 0 {
		return nil // not ours, or nothing to measure: not asked again
	}
	return tea.Tick(measureInterval, func(time.Time) tea.Msg { return remeasure{p} })
}

// busy is the part of the CPUs that was used between two samples each, or at a
// sample.
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

// idleShare is the use of CPUs or GPUs below which they look idle.
const idleShare = 0.01

// used compares what the job uses with what it has.
func (p *Page) usageText(s *textBuilder) {
	j := p.job
	if len(p.steps) > 0 && j.State != "PENDING" {
		s.heading("Steps")
		for i := range p.steps {
			t := &p.steps[i]
			s.paragraph(ui.Style{}, fmt.Sprintf("%-12s %-10s %-9s %3d CPUs %3d tasks %s", t.ID, t.Name, t.State, t.CPUs, t.Tasks, t.NodeList))
		}
	}
	if len(p.samples) == 0 || j.State != "RUNNING" {
		return
	}
	last := p.samples[len(p.samples)-1]
	s.heading("Used, against what it has")
	width := min(20, max(0, s.width-48))
	rates := cpuLoad(p.samples, j.CPUs)
	if len(rates) > 0 {
		now := rates[len(rates)-1]
		s.field("CPU", strings.TrimSpace(fmt.Sprintf("%s %3.0f%% of %d CPUs  %s", p.env.Meter(int64(now*1000), 1000, width), now*100, j.CPUs, p.env.Spark(rates, 20))))
	} else {
		s.field("CPU", strconv.FormatInt(last.cpu/1e6, 10)+" s of CPU time so far")
	}
	most := " at most"
	if last.instant {
		most = ""
	}
	if whole := memoryLimit(j); whole > 0 {
		s.field("memory", fmt.Sprintf("%s %s of %s%s", p.env.Meter(last.memory, whole, width), formatSize(last.memory), formatSize(whole), most))
	} else {
		s.field("memory", formatSize(last.memory)+most)
	}
	p.gpuText(s, rates, width)
}

// idle tells whether nothing was done for a minute; rates are parts of the
// whole.
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

// memoryOf is the memory that a job may use on all of its nodes, in bytes; 0:
// no limit is known.
func memoryLimit(j *status.Job) int64 {
	n := j.MinMemory << 20
	if j.MemoryPerCPU {
		return n * int64(j.CPUs)
	}
	return n * int64(max(1, j.Nodes))
}
