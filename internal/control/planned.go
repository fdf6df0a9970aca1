package control

import "time"

// Planned is what the newest plan says about one pending job.
type Planned struct {
	Start    time.Time // zero: no start found
	Nodes    []string  // short names; empty without Start
	Reason   string    // Slurm's reason code: Resources, Priority, BeginTime, Dependency, ...
	Priority int64
}
