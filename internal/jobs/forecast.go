package jobs

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// forecastOf returns the forecast in the response to a dry run, or nil.
func forecastOf(b *batchJob) *wire.Forecast {
	f := &wire.Forecast{}
	if json.Unmarshal([]byte(b.Metadata.Annotations[wire.AnnotationForecast]), f) != nil {
		return nil
	}
	return f
}

// slurmTime is the layout in which Slurm writes a time, in local time.
const slurmTime = "2006-01-02T15:04:05"

// ForecastLines says in Slurm's words when the job of a dry run would start. It returns a
// line for each component, or a line of ours if the start is unknown.
func (s *Submitted) ForecastLines() []string {
	f := s.Forecast
	if f == nil || len(f.Parts) == 0 {
		return []string{s.noForecastText()}
	}
	var lines []string
	for _, p := range f.Parts {
		lines = append(lines, fmt.Sprintf("Job %d to start at %s using %d processors on nodes %s in partition %s",
			p.ID, time.Unix(f.Start, 0).Format(slurmTime), p.CPUs, p.Nodes, p.Partition))
	}
	return lines
}

// ForecastSummary says in one line when the job would start, as sbatch does.
func (s *Submitted) ForecastSummary() string {
	f := s.Forecast
	if f == nil || len(f.Parts) < 2 {
		return s.ForecastLines()[0]
	}
	var cpus int64
	var nodes []string
	for _, p := range f.Parts {
		cpus += p.CPUs
		nodes = append(nodes, p.Nodes)
	}
	if names, err := hostlist.Expand(strings.Join(nodes, ",")); err == nil {
		nodes = []string{hostlist.FoldSorted(names)}
	}
	return fmt.Sprintf("Job %d to start at %s using %d processors on %s",
		f.Parts[0].ID, time.Unix(f.Start, 0).Format(slurmTime), cpus, strings.Join(nodes, ","))
}

// noForecastText returns what to print if the start is unknown.
func (s *Submitted) noForecastText() string {
	text := "the job would be accepted in partition " + s.Partition
	switch f := s.Forecast; {
	case f == nil:
		return text
	case f.Reason != "":
		return text + " and wait; its start cannot be predicted (" + f.Reason + ")"
	}
	return text + "; the scheduler is too busy to predict its start"
}
