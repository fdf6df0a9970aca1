package agentapi

import (
	"slices"

	"github.com/berth-hpc/berth/internal/wire"
)

// Bounds of what an agent reports. It has its user's uid and may send anything: longer
// texts are cut, and further steps are left out.
const (
	maxMessage  = 1024
	maxStepName = 1024 // as jobs' names
	maxName     = 255  // of hosts, users and distributions
	// maxStep is slurm.conf(5)'s default of MaxStepCount.
	maxStep = 40000
)

// cut shortens s to at most most bytes.
func cut(s *string, most int) {
	if len(*s) > most {
		*s = (*s)[:most]
	}
}

// boundReport cuts the texts of a report.
func boundReport(r *wire.Report) {
	cut(&r.Message, maxMessage)
	cut(&r.LostNode, maxName)
}

// boundSteps cuts the records of a job's steps and returns those within the bound.
// nodes is how many nodes the job has.
func boundSteps(list []wire.StepRecord, nodes int) []wire.StepRecord {
	list = slices.DeleteFunc(list,
		func(s wire.StepRecord) bool { return s.ID >= maxStep || s.ID < wire.StepInteractive })
	for i := range list {
		s := &list[i]
		cut(&s.Name, maxStepName)
		for _, text := range []*string{&s.Layout, &s.SrunHost, &s.State, &s.KilledBy} {
			cut(text, maxName)
		}
		s.Nodes = s.Nodes[:min(len(s.Nodes), nodes)]
		for n := range s.Nodes {
			cut(&s.Nodes[n], maxName)
		}
	}
	return list
}
