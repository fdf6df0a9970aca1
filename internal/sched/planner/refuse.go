package planner

import "time"

// refusal is what is remembered of a kubelet that refused planned pods.
type refusal struct {
	times int
	at    time.Time
	until time.Time
}

// How long nothing is planned onto a node whose kubelet has just refused a pod:
// its own view and the API server's differ, and its next report settles that.
// The time doubles with every refusal until there has been none for a while.
const (
	leastRefusal  = 15 * time.Second
	mostRefusal   = 4 * time.Minute
	forgetRefusal = 15 * time.Minute
)

// Refused tells the planner that the node's kubelet refused a planned pod.
func (p *Planner) Refused(node string) {
	now := p.now()
	p.mu.Lock()
	r := p.refusing[node]
	if now.Sub(r.at) > forgetRefusal {
		r.times = 0
	}
	if !now.Before(r.until) { // the pods of one gang count once
		r.until = now.Add(min(leastRefusal<<min(r.times, 8), mostRefusal))
		r.times++
	}
	r.at = now
	if p.refusing == nil {
		p.refusing = map[string]refusal{}
	}
	p.refusing[node] = r
	p.mu.Unlock()
	p.log.Warn("a node refused a planned pod", "node", node, "until", r.until)
	p.Wake()
	time.AfterFunc(r.until.Sub(now)+time.Second, p.Wake) // the plan counts in seconds
}

// avoided are the nodes to leave alone now, and until when.
func (p *Planner) avoided(now time.Time) map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out map[string]time.Time
	for name, r := range p.refusing {
		switch {
		case now.Sub(r.at) > forgetRefusal:
			delete(p.refusing, name)
		case now.Before(r.until):
			if out == nil {
				out = map[string]time.Time{}
			}
			out[name] = r.until
		}
	}
	return out
}
