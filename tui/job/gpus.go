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
	// mostGPUs are shown one by one.
	maxGPUs = 16
	// idleBusy is the use of a GPU, in percent, below which it is idle.
	idlePercent = 1
)

// merged are GPUs without those that several steps on a node have told of.
func mergeGPUs(list []step.GPU) []step.GPU {
	slices.SortStableFunc(list, func(a, b step.GPU) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Index, b.Index))
	})
	return slices.CompactFunc(list, func(a, b step.GPU) bool { return a.Node == b.Node && a.Index == b.Index })
}

// load is the part of the time that GPUs were busy; ok is false where none
// tells.
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

// loads are the parts of all samples that have one.
func gpuLoads(samples []sample) []float64 {
	var out []float64
	for i := range samples {
		if part, ok := gpuLoad(samples[i].gpus); ok {
			out = append(out, part)
		}
	}
	return out
}

// gpuText says what the job's GPUs do; rates are what its CPUs did. Where no
// GPU can be measured, a job that does not even use its CPUs is likely idle.
func (p *Page) gpuText(s *textBuilder, rates []float64, width int) {
	wanted := query.GPUs(p.job.TRES)
	if wanted == 0 {
		return
	}
	last := p.samples[len(p.samples)-1].gpus
	parts := gpuLoads(p.samples)
	if len(parts) == 0 {
		if isIdle(rates) {
			s.paragraph(p.env.Bad, fmt.Sprintf("! It has %d GPUs and has used almost no CPU since this page is open: they are likely idle.", wanted))
		}
		s.field("GPUs", "how busy they are is not known: nvidia-smi does not tell it in the job's pods")
		return
	}
	now := parts[len(parts)-1]
	s.field("GPUs", fmt.Sprintf("%s %3.0f%% of %d  %s", p.env.Meter(int64(now*1000), 1000, width), now*100, len(last), p.env.Spark(parts, 20)))
	for i := range last[:min(len(last), maxGPUs)] {
		s.paragraph(ui.Style{}, "            "+gpuLine(&last[i]))
	}
	if len(last) < wanted {
		s.paragraph(p.env.Dim, fmt.Sprintf("            %d of its %d GPUs are measured: those on nodes where its steps or its script run.", len(last), wanted))
	}
	if isIdle(parts) {
		s.paragraph(p.env.Bad, "! IDLE GPU: they have done nothing since this page is open.")
		return
	}
	for i := range last {
		if last[i].Busy >= 0 && last[i].Busy < idlePercent && len(last) > 1 {
			s.paragraph(p.env.Notice, fmt.Sprintf("GPU %d on %s does nothing at the moment.", last[i].Index, last[i].Node))
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
