package coord

import (
	"fmt"

	"github.com/berth-hpc/berth/internal/step/placement"
)

// The ports that steps can reserve (--resv-ports), as slurm.conf(5) has them in
// its example of MpiParams. The pods of a job have a network to themselves, so
// they are kept apart only from those of the job's other steps.
const (
	firstPort = 12000
	lastPort  = 12999
)

// ports are so many from first on.
type ports struct{ first, count int32 }

// String is the range as SLURM_STEP_RESV_PORTS has it; empty: there is none.
func (p ports) String() string {
	switch p.count {
	case 0:
		return ""
	case 1:
		return fmt.Sprint(p.first)
	}
	return fmt.Sprintf("%d-%d", p.first, p.first+p.count-1)
}

// reservePorts gives a step the ports that it wants (step.Request.Ports), the
// same on all its nodes. busy: it has to wait for those of other steps. c.mu is
// held.
func (c *Coordinator) reservePorts(want *int32, l *placement.Layout) (p ports, busy bool, err error) {
	if want == nil {
		return ports{}, false, nil
	}
	n := *want
	if n == 0 {
		for _, tasks := range l.PerNode() {
			n = max(n, tasks)
		}
		n++
	}
	if n > lastPort-firstPort+1 {
		return ports{}, false, placement.Refuse(c.job.ID, "Requires more ports than can be reserved")
	}
	free := int32(0)
	for port := int32(firstPort); port <= lastPort; port++ {
		if free++; c.ports[port] {
			free = 0
		}
		if free == n {
			p = ports{port - n + 1, n}
			c.mark(p, true)
			return p, false, nil
		}
	}
	return ports{}, true, nil
}

// mark takes ports, or gives them back. c.mu is held.
func (c *Coordinator) mark(p ports, taken bool) {
	for port := p.first; port < p.first+p.count; port++ {
		if taken {
			c.ports[port] = true
		} else {
			delete(c.ports, port)
		}
	}
}
