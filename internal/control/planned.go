package control

import "time"

// Planned is what the newest plan says about one pending job.
type Planned struct {
	Start    time.Time // zero: no start found
	Nodes    []string  // short names; empty without Start
	Reason   string    // Slurm's reason code: Resources, Priority, BeginTime, Dependency, ...
	Priority int64
	// NodeCPUs are those of the largest node of the job's partition; 0: unknown.
	NodeCPUs int32
	// Outcomes says of each dependency of the job whether it is met ('m'), never
	// will be ('n'), or is open ('u'); empty: it waits for something else.
	Outcomes string
}
