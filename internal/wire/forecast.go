package wire

// AnnotationForecast on a BatchJob of a dry run asks when the job would start.
// It comes back as a Forecast in JSON. Jobs that are stored have none.
const AnnotationForecast = "berth.hpc/forecast"

// Forecast is when and where a job would start if it were submitted now.
type Forecast struct {
	// Start in seconds since 1970; 0: none was found, for the Reason.
	Start int64 `json:"start,omitempty"`
	// Reason is Slurm's code for what it would wait for; empty: it was not
	// looked for, because the scheduler is busy with other such questions.
	Reason string `json:"reason,omitempty"`
	// Parts are the components of the job, of which most have one.
	Parts []ForecastPart `json:"parts,omitempty"`
}

// ForecastPart is what one component of a job would get.
type ForecastPart struct {
	ID        int64  `json:"id"` // unless others are submitted before
	Partition string `json:"partition"`
	CPUs      int64  `json:"cpus"`
	Nodes     string `json:"nodes"` // a host list
}
