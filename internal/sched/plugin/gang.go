package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
)

// gang names one attempt of one job.
type gang struct {
	jobID   int64
	attempt int32
}

// member identifies one pod of a gang.
type member struct {
	gang
	namespace string
	index     int
}

// hasJobLabel reports whether the pod's labels name a job.
func hasJobLabel(pod *corev1.Pod) bool {
	_, ok := pod.Labels[wire.LabelJobID]
	return ok
}

// memberOf returns the job, attempt and index of a pod: those of its labels and
// annotations, which users cannot set in their namespaces, or those of the workload that
// it belongs to. ours is false for a pod of no job.
func (p *Plugin) memberOf(pod *corev1.Pod) (m member, ours bool, err error) {
	m.namespace = pod.Namespace
	id, ok := pod.Labels[wire.LabelJobID]
	if !ok {
		m.jobID, m.attempt, m.index, ours = p.placements.Workload(pod)
		return m, ours, nil
	}
	if m.jobID, err = strconv.ParseInt(id, 10, 64); err != nil {
		return member{}, false, fmt.Errorf("label %s: %w", wire.LabelJobID, err)
	}
	attempt, err := strconv.ParseInt(pod.Labels[wire.LabelAttempt], 10, 32)
	if err != nil {
		return member{}, false, fmt.Errorf("label %s: %w", wire.LabelAttempt, err)
	}
	m.attempt = int32(attempt)
	if m.index, err = control.PodIndex(pod); err != nil {
		return member{}, false, err
	}
	return m, true, nil
}

// gangs counts the reserved pods of each gang. The zero value is empty. Safe
// for concurrent use.
type gangs struct {
	mu       sync.Mutex
	reserved map[gang]map[types.UID]*corev1.Pod
	bound    map[gang][]types.UID // of gangs with reserved pods, when they were last listed
}

func (g *gangs) add(k gang, pod *corev1.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reserved == nil {
		g.reserved = map[gang]map[types.UID]*corev1.Pod{}
	}
	if g.reserved[k] == nil {
		g.reserved[k] = map[types.UID]*corev1.Pod{}
	}
	g.reserved[k][pod.UID] = pod
}

// remove removes the pod with the UID and returns the other reserved pods of the gang.
func (g *gangs) remove(k gang, uid types.UID) []*corev1.Pod {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.reserved[k], uid)
	others := make([]*corev1.Pod, 0, len(g.reserved[k]))
	for _, p := range g.reserved[k] {
		others = append(others, p)
	}
	if len(others) == 0 {
		g.forget(k)
	}
	return others
}

func (g *gangs) forget(k gang) {
	delete(g.reserved, k)
	delete(g.bound, k)
}

// smallGang is the number of reserved pods up to which complete lists the bound pods each
// time.
const smallGang = 64

// complete reports whether the reserved and the bound pods are all size pods of the gang.
// If so, it forgets the gang and returns the reserved pods. It calls bound, which lists
// all pods of the gang, only if the gang can be complete; for large gangs also at each
// power of two reserved pods, because most have no bound pod until all are reserved.
func (g *gangs) complete(k gang, size int, bound func() []types.UID) ([]types.UID, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	reserved := g.reserved[k]
	n := len(reserved)
	if n < size && n > smallGang && n&(n-1) != 0 && n+len(g.bound[k]) < size {
		return nil, false
	}
	if n < size {
		if g.bound == nil {
			g.bound = map[gang][]types.UID{}
		}
		g.bound[k] = bound()
		for _, u := range g.bound[k] {
			if reserved[u] == nil {
				n++
			}
		}
	}
	if n < size {
		return nil, false
	}
	members := slices.Collect(maps.Keys(reserved))
	g.forget(k)
	return members, true
}
