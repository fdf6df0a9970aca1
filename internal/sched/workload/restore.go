package workload

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/wire"
)

// The job of a single pod is in the leader's memory before it has an object. The jobs that
// an earlier leader had not written are restored from its bindings, which have the job's
// id (see plugin.Bind).

// restoreFor is for how long after its end a pod is considered: far longer than a
// cluster is without a leader, and shorter than accounting keeps records.
const restoreFor = 24 * time.Hour

// queueBound queues the pods that were bound and have no job.
func (w *Controller) queueBound() {
	for _, p := range w.cluster.Pods.List() {
		if g := control.GroupOf(p); strings.HasPrefix(g, "pod ") && p.Spec.NodeName != "" &&
			p.Annotations[wire.AnnotationJob] != "" && !w.cluster.HasWorkload(p.UID) {
			w.queue.Add(g)
		}
	}
}

// restore creates the job of a single pod that an earlier leader had bound, unless
// there is one. The keeper finds it running, or ended.
func (w *Controller) restore(ctx context.Context, key string, p *corev1.Pod) error {
	id, err := strconv.ParseInt(p.Annotations[wire.AnnotationJob], 10, 64)
	if err != nil || id < 1 || w.cluster.HasWorkload(p.UID) || w.cluster.NextID == nil {
		return nil //nolint:nilerr // an annotation that is not a number is not Berth's
	}
	if _, ok := w.Allowed(p.Namespace); !ok {
		return nil
	}
	if known, err := w.isRecorded(ctx, p, id); err != nil || known {
		return err
	}
	g := &Group{Key: key, Kind: "Pod", Name: p.Name, MinMember: 1, Pods: []*corev1.Pod{p}}
	s, ok, err := w.buildSpec(ctx, g, g.Pods)
	if err != nil || !ok {
		return err
	}
	if s.JobID, err = w.idFor(ctx, id); err != nil {
		return err
	}
	created := metav1.NewMicroTime(p.CreationTimestamp.Time)
	s.SubmitTime = &created
	b, err := w.queueJob(ctx, w.jobOf(s, g.Pods))
	if err == nil {
		w.log.Info("job of a bound pod restored", "job", b.Spec.JobID, "namespace", p.Namespace, "name", p.Name, "node",
			p.Spec.NodeName)
	}
	return err
}

// isRecorded reports whether the job of a pod need not be restored: accounting has it, or
// the pod ended long ago.
func (w *Controller) isRecorded(ctx context.Context, p *corev1.Pod, id int64) (bool, error) {
	over := snapshot.IsTerminated(p)
	switch {
	case w.Recorded == nil:
		return over, nil
	case over && w.now().Sub(endOf(p)) > restoreFor:
		return true, nil
	}
	known, err := w.Recorded(ctx, id)
	if err != nil && over {
		return false, fmt.Errorf("looking up job %d of pod %s in accounting: %w", id, p.Name, err)
	}
	return known && over, nil
}

// endOf returns when the last container of a pod ended, as far as its status shows
// it.
func endOf(p *corev1.Pod) time.Time {
	end := p.CreationTimestamp.Time
	for i := range p.Status.ContainerStatuses {
		if t := p.Status.ContainerStatuses[i].State.Terminated; t != nil && t.FinishedAt.After(end) {
			end = t.FinishedAt.Time
		}
	}
	return end
}

// idFor returns the job id that a pod names, if no other job has it and it was
// assigned once; else a new one. Owners can write to their pods.
func (w *Controller) idFor(ctx context.Context, id int64) (int64, error) {
	next, err := w.cluster.NextID(ctx)
	if err != nil {
		return 0, err
	}
	if _, taken := w.cluster.Job(id); taken || id > next {
		return next, nil
	}
	if w.Recorded != nil {
		if known, err := w.Recorded(ctx, id); err != nil || known {
			return next, err
		}
	}
	return id, nil
}
