package job

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/ui"
)

const (
	// maxGPUs bounds the GPUs that are shown one by one.
	maxGPUs = 16
	// idlePercent is the utilization of a GPU, in percent, below which it is idle.
	idlePercent = 1
)

// mergeGPUs sorts GPUs and removes duplicates, which several steps on one node
// report.
func mergeGPUs(list []step.GPU) []step.GPU {
	slices.SortStableFunc(list, func(a, b step.GPU) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Index, b.Index))
	})
	return slices.CompactFunc(list, func(a, b step.GPU) bool { return a.Node == b.Node && a.Index == b.Index })
}

// gpuLoad returns the fraction of the time that GPUs were busy; ok is false if no GPU
// reports it.
func gpuLoad(list []step.GPU) (part float64, ok bool) {
	sum, n := 0.0, 0
	for i := range list {
		if list[i].Busy >= 0 {
			sum += float64(list[i].Busy) / 100
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// gpuLoads returns the load of all samples that have one.
func gpuLoads(samples []sample) []float64 {
	var out []float64
	for i := range samples {
		if part, ok := gpuLoad(samples[i].gpus); ok {
			out = append(out, part)
		}
	}
	return out
}

// gpuText writes the load of the job's GPUs; rates are the loads of its CPUs. If no
// GPU can be measured, a job that does not use its CPUs either is likely idle.
func (p *Page) gpuText(s *textBuilder, rates []float64, width int) {
	wanted := query.GPUs(p.job.TRES)
	if wanted == 0 {
		return
	}
	last := p.samples[len(p.samples)-1].gpus
	parts := gpuLoads(p.samples)
	if len(parts) == 0 {
		if isIdle(rates) {
			s.paragraph(p.env.Bad, fmt.Sprintf(
				"! The job has %d GPUs and has used almost no CPU since this page opened: they are likely idle.",
				wanted,
			))
		}
		s.field("GPUs", "utilization unknown: nvidia-smi does not report it in the job's pods")
		return
	}
	now := parts[len(parts)-1]
	s.field("GPUs", fmt.Sprintf("%s %3.0f%% of %d  %s",
		p.env.Meter(int64(now*1000), 1000, width), now*100, len(last), p.env.Spark(parts, 20)))
	for i := range last[:min(len(last), maxGPUs)] {
		s.paragraph(ui.Style{}, "            "+gpuLine(&last[i]))
	}
	if len(last) < wanted {
		s.paragraph(p.env.Dim, fmt.Sprintf(
			"            %d of its %d GPUs are measured: those on nodes where its steps or its script run.",
			len(last),
			wanted,
		))
	}
	if isIdle(parts) {
		s.paragraph(p.env.Bad, "! IDLE GPU: the job's GPUs have done nothing for a minute.")
		return
	}
	for i := range last {
		if last[i].Busy >= 0 && last[i].Busy < idlePercent && len(last) > 1 {
			s.paragraph(p.env.Notice, fmt.Sprintf("GPU %d on %s is idle at the moment.", last[i].Index, last[i].Node))
		}
	}
}

func gpuLine(g *step.GPU) string {
	text := fmt.Sprintf("%s:%d ", g.Node, g.Index)
	if g.Busy >= 0 {
		text += fmt.Sprintf(" %3d%%", g.Busy)
	}
	if g.Memory >= 0 && g.Total > 0 {
		text += fmt.Sprintf("  %s of %s", formatSize(g.Memory), formatSize(g.Total))
	}
	return text + "  " + g.Name
}
