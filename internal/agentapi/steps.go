package agentapi

import (
	"net/http"

	"github.com/berth-hpc/berth/internal/wire"
)

// maxSteps bounds the steps of one report.
const maxSteps = 10000

func (s *Server) stepReport(w http.ResponseWriter, r *http.Request) {
	a, err := s.batchHost(r)
	if err != nil {
		fail(w, err)
		return
	}
	var report wire.StepReport
	if err := receive(w, r, &report); err != nil {
		fail(w, err)
		return
	}
	if report.JobID != a.JobID || report.Attempt != a.Attempt || len(report.Steps) > maxSteps {
		fail(w, &failure{http.StatusConflict, "the report is of another job"})
		return
	}
	s.reportSteps(a, report.Steps)
	send(w, struct{}{})
}

func (s *Server) reportSteps(a *agent, steps []wire.StepRecord) {
	if steps = boundSteps(steps, len(a.job.Status.Allocation.Nodes)); s.Steps != nil && len(steps) > 0 {
		s.Steps(a.JobID, a.Attempt, steps)
	}
}
