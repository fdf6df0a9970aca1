package planner

import (
	"maps"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/sched/snapshot"
)

// refusal is what is known about a kubelet that refused planned pods.
type refusal struct {
	times int       // refusals in a row
	at    time.Time // of the last one
	until time.Time // when jobs may be planned onto the node again
}

// No job is planned onto a node for a while after its kubelet has refused a pod, because
// its view and the API server's differ until it reports again. The time doubles with
// every refusal, until there has been none for refusalMemory.
const (
	minRefusal    = 15 * time.Second
	maxRefusal    = 4 * time.Minute
	refusalMemory = 15 * time.Minute
)

// refusals are the nodes that refused pods. The zero value is empty. Safe for concurrent
// use.
type refusals struct {
	mu     sync.Mutex
	byNode map[string]refusal // by Kubernetes name
	byJob  map[int64]*jobRefusals
	// unprepared are the jobs whose devices a node did not prepare, and when, by the node's
	// Kubernetes name.
	unprepared map[string]map[int64]time.Time
}

// add records a refusal and returns until when no job is planned onto the node.
func (r *refusals) add(node string, now time.Time) (until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.byNode[node]
	if now.Sub(last.at) > refusalMemory {
		last.times = 0
	}
	if !now.Before(last.until) { // the refused pods of one gang count once
		last.until = now.Add(min(minRefusal<<min(last.times, 8), maxRefusal))
		last.times++
	}
	last.at = now
	if r.byNode == nil {
		r.byNode = map[string]refusal{}
	}
	r.byNode[node] = last
	return last.until
}

// current returns the nodes onto which no job is planned now, and until when.
func (r *refusals) current(now time.Time) map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out map[string]time.Time
	for name, last := range r.byNode {
		switch {
		case now.Sub(last.at) > refusalMemory:
			delete(r.byNode, name)
		case now.Before(last.until):
			if out == nil {
				out = map[string]time.Time{}
			}
			out[name] = last.until
		}
	}
	return out
}

// jobRefusals are the nodes that have refused a job because of the CPUs or devices that it
// requests.
type jobRefusals struct {
	refusal
	nodes map[string]bool // by Kubernetes name
}

// avoidanceMemory is how long such a node is not tried again for the job.
const avoidanceMemory = time.Hour

// addJob records that the node refused the job, and returns until when the job waits if there
// are no other nodes for it.
func (r *refusals) addJob(job int64, node string, now time.Time) (until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, x := range r.byJob {
		if now.Sub(x.at) > avoidanceMemory {
			delete(r.byJob, id)
		}
	}
	if r.byJob == nil {
		r.byJob = map[int64]*jobRefusals{}
	}
	x := r.byJob[job]
	if x == nil {
		x = &jobRefusals{nodes: map[string]bool{}}
		r.byJob[job] = x
	}
	x.nodes[node] = true
	if !now.Before(x.until) {
		x.until = now.Add(min(minRefusal<<min(x.times, 8), maxRefusal))
		x.times++
	}
	x.at = now
	return x.until
}

// avoided returns the nodes that have refused jobs.
func (r *refusals) avoided(now time.Time) map[int64]snapshot.Avoided {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out map[int64]snapshot.Avoided
	for id, x := range r.byJob {
		if now.Sub(x.at) > avoidanceMemory {
			continue
		}
		if out == nil {
			out = map[int64]snapshot.Avoided{}
		}
		out[id] = snapshot.Avoided{Nodes: maps.Clone(x.nodes), Until: x.until}
	}
	return out
}

// addUnprepared records that the node did not prepare the job's devices.
func (r *refusals) addUnprepared(node string, job int64, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unprepared == nil {
		r.unprepared = map[string]map[int64]time.Time{}
	}
	if r.unprepared[node] == nil {
		r.unprepared[node] = map[int64]time.Time{}
	}
	r.unprepared[node][job] = now
}

// currentUnprepared returns how many jobs' devices each node has not prepared in the last
// snapshot.UnpreparedMemory.
func (r *refusals) currentUnprepared(now time.Time) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out map[string]int
	for node, jobs := range r.unprepared {
		maps.DeleteFunc(jobs, func(_ int64, at time.Time) bool { return now.Sub(at) > snapshot.UnpreparedMemory })
		if len(jobs) == 0 {
			delete(r.unprepared, node)
			continue
		}
		if out == nil {
			out = map[string]int{}
		}
		out[node] = len(jobs)
	}
	return out
}

// DevicesFailed records that a node (by its Kubernetes name) did not prepare the devices of a
// planned job. The job is not planned onto the node for a while.
func (p *Planner) DevicesFailed(node string, job int64) {
	p.refusals.addUnprepared(node, job, p.now())
	p.Refused(node, job)
}

// Refused records that a node (by its Kubernetes name) refused a planned pod. No job is planned
// onto the node for a while; if job is not 0, only that job is not.
func (p *Planner) Refused(node string, job int64) {
	now := p.now()
	var until time.Time
	if job != 0 {
		until = p.refusals.addJob(job, node, now)
	} else {
		until = p.refusals.add(node, now)
	}
	p.log.Warn("node refused a planned pod", "node", node, "job", job, "until", until)
	p.Wake()
	time.AfterFunc(until.Sub(now)+time.Second, p.Wake) // plans count in seconds
}
