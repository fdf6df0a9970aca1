package coord

import (
	"fmt"

	"github.com/berth-hpc/berth/internal/step/placement"
)

// Steps can reserve these ports (--resv-ports). The range is that of the example of
// MpiParams in slurm.conf(5). Each pod has its own network, so the ports need only be
// unique among the steps of the job.
const (
	firstPort = 12000
	lastPort  = 12999
)

// portRange is a number of consecutive ports.
type portRange struct{ first, count int32 }

// String returns the range in the form of SLURM_STEP_RESV_PORTS, or "" if it is
// empty.
func (p portRange) String() string {
	switch p.count {
	case 0:
		return ""
	case 1:
		return fmt.Sprint(p.first)
	}
	return fmt.Sprintf("%d-%d", p.first, p.first+p.count-1)
}

// reservePorts reserves the ports that a step requests (step.Request.Ports), the
// same on all its nodes. busy is true if the step must wait for other steps. The
// caller holds c.mu.
func (c *Coordinator) reservePorts(want *int32, l *placement.Layout) (p portRange, busy bool, err error) {
	if want == nil {
		return portRange{}, false, nil
	}
	n := *want
	if n == 0 {
		for _, tasks := range l.PerNode() {
			n = max(n, tasks)
		}
		n++
	}
	if n > lastPort-firstPort+1 {
		return portRange{}, false, placement.Refuse(c.job.ID, "Requires more ports than can be reserved")
	}
	free := int32(0)
	for port := int32(firstPort); port <= lastPort; port++ {
		if free++; c.ports[port] {
			free = 0
		}
		if free == n {
			p = portRange{port - n + 1, n}
			for used := p.first; used <= port; used++ {
				c.ports[used] = true
			}
			return p, false, nil
		}
	}
	return portRange{}, true, nil
}

// releasePorts undoes reservePorts. The caller holds c.mu.
func (c *Coordinator) releasePorts(p portRange) {
	for port := p.first; port < p.first+p.count; port++ {
		delete(c.ports, port)
	}
}
