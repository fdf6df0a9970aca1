package wire

// AnnotationForecast on a BatchJob of a dry run requests a forecast of its start. The
// answer has a Forecast in JSON in its place. Stored jobs have none.
const AnnotationForecast = "berth.hpc/forecast"

// Forecast is when and where a job would start if it were submitted now.
type Forecast struct {
	// Start is in Unix seconds; 0: no start was found, because of Reason.
	Start int64 `json:"start,omitempty"`
	// Reason is Slurm's code for what the job would wait for; empty: the forecast was
	// not made, because the scheduler is busy with others.
	Reason string `json:"reason,omitempty"`
	// Parts are the components of the job; most jobs have one.
	Parts []ForecastPart `json:"parts,omitempty"`
}

// ForecastPart is what one component of a job would get.
type ForecastPart struct {
	ID        int64  `json:"id"` // unless other jobs are submitted first
	Partition string `json:"partition"`
	CPUs      int64  `json:"cpus"`
	Nodes     string `json:"nodes"` // a host list
}
