//go:build e2ereal

package realnode

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// phases are the phases of a pod's life, as seen in the API server.
var phases = []string{"created", "bound", "prepared", "running", "deletion requested", "ended", "deleted"}

// timeline records when each pod of a namespace reached each phase.
type timeline struct {
	mu   sync.Mutex
	seen map[types.UID]map[string]time.Time
	stop func()
	done chan struct{}
}

func watchPods(t *testing.T, ctx context.Context, s *Site, namespace string) *timeline {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	w, err := s.Client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	l := &timeline{seen: map[types.UID]map[string]time.Time{}, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok {
				l.note(p, string(e.Type) == "DELETED")
			}
		}
	}()
	return l
}

func (l *timeline) note(p *corev1.Pod, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.seen[p.UID]
	if at == nil {
		at = map[string]time.Time{}
		l.seen[p.UID] = at
	}
	prepared := slices.ContainsFunc(p.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Terminated != nil })
	running := slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	for i, is := range []bool{true, p.Spec.NodeName != "", prepared, running, p.DeletionTimestamp != nil, over, gone} {
		if _, ok := at[phases[i]]; is && !ok {
			at[phases[i]] = time.Now()
		}
	}
}

// String returns the median time from each phase to the next that pods reached.
func (l *timeline) String() string {
	l.stop()
	<-l.done
	took := map[string][]time.Duration{}
	var order []string
	for i, from := range phases {
		for _, to := range phases[i+1:] {
			order = append(order, from+" to "+to)
		}
	}
	for _, at := range l.seen {
		last := ""
		for _, p := range slices.SortedFunc(slices.Values(phases), func(a, b string) int { return at[a].Compare(at[b]) }) {
			if at[p].IsZero() {
				continue
			}
			if last != "" {
				took[last+" to "+p] = append(took[last+" to "+p], at[p].Sub(at[last]))
			}
			last = p
		}
	}
	var output []string
	for _, step := range order {
		if all := took[step]; len(all) > 0 {
			slices.Sort(all)
			output = append(output, fmt.Sprintf("%s %.2f s (%d)", step, all[len(all)/2].Seconds(), len(all)))
		}
	}
	return strings.Join(output, ", ")
}
