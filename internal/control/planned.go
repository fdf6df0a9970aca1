package control

import "time"

// Planned is the part of the newest plan about one pending job.
type Planned struct {
	Start    time.Time // zero: no start found
	Nodes    []string  // short names; empty without Start
	Reason   string    // Slurm's reason code: Resources, Priority, BeginTime, Dependency, ...
	Priority int64
	// NodeCPUs is the number of CPUs of the largest node of the job's partition; 0:
	// unknown.
	NodeCPUs int32
	// Outcomes has a letter for each dependency of the job: met ('m'), impossible ('n')
	// or undecided ('u'). It is empty if the job waits for something else.
	Outcomes string
}
