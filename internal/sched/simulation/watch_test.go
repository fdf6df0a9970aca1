package simulation

import (
	"cmp"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// breakWatch lets a watch of the leader deliver nothing for a while. Then the leader lists the
// objects, because the API server no longer has the events (410 Gone).
func (s *simulation) breakWatch() bool {
	if s.leader == nil {
		return false
	}
	kind, _ := pick(s.random, watchedKinds)
	if !s.leader.silent[kind].IsZero() {
		return false
	}
	s.leader.silent[kind] = time.Now().Add(s.between(0, 20*time.Second))
	return true
}

// watchChoices are the events that a process can receive.
func (s *simulation) watchChoices(p *process, former string) (all []choice) {
	for _, kind := range watchedKinds {
		switch until, n := p.silent[kind], p.delivered[kind]; {
		case until.IsZero() && n < len(s.api.events[kind]):
			all = append(all, choice{"watch " + kind + former, 10, func() {
				p.delivered[kind]++
				p.apply(s.api.events[kind][n])
			}})
		case !until.IsZero() && !time.Now().Before(until):
			all = append(all, choice{"list " + kind + former, 10, func() {
				delete(p.silent, kind)
				p.relist(kind)
			}})
		}
	}
	return all
}

// silenceEnds returns how long it takes until the first watch of the process that delivers
// nothing is replaced; a long time, if there is none.
func (p *process) silenceEnds() time.Duration {
	d := time.Hour
	for _, until := range p.silent {
		d = min(d, time.Until(until))
	}
	return d
}

// relist lists the objects of a kind and applies the differences, as an informer does: what
// was created and deleted in the meantime is never seen.
func (p *process) relist(kind string) {
	events := p.sim.api.events[kind]
	known := map[objectKey]client.Object{}
	for _, e := range events[:p.delivered[kind]] {
		if e.deleted {
			delete(known, keyOf(e.object))
		} else {
			known[keyOf(e.object)] = e.object
		}
	}
	p.delivered[kind] = len(events)
	for _, o := range p.sim.api.list(kind) {
		k := keyOf(o)
		old := known[k]
		delete(known, k)
		if old != nil && old.GetUID() != o.GetUID() {
			p.apply(event{object: old, deleted: true})
		}
		if old == nil || old.GetResourceVersion() != o.GetResourceVersion() {
			p.apply(event{object: o})
		}
	}
	gone := make([]objectKey, 0, len(known))
	for k := range known {
		gone = append(gone, k)
	}
	slices.SortFunc(gone, func(a, b objectKey) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	for _, k := range gone {
		p.apply(event{object: known[k], deleted: true})
	}
}
