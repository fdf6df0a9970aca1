package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/member"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
)

// JobContainer is the name of the container that runs a job.
const JobContainer = "job"

// limitInForce is the job's time limit in minutes.
func (a *Admission) limitInForce(b *v1alpha1.BatchJob) int32 {
	name := b.Status.Partition
	if name == "" {
		name = b.Spec.Partition
	}
	return table.TimeLimit(b, a.Directory.Partition(name))
}

// mutatePod serves CREATE of pods in users' namespaces and of pods that carry
// a job's label anywhere. Pods of jobs get their planned node's name; others in
// users' namespaces are an administrator's, or refused; of those elsewhere the
// ones that name our scheduler tolerate its nodes' taint.
func (a *Admission) mutatePod(ctx context.Context, r *admissionv1.AdmissionRequest) (*patch, error) {
	if r.Operation != admissionv1.Create || r.SubResource != "" {
		return nil, nil
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(r.Object.Raw, pod); err != nil {
		return nil, refusef("the pod cannot be read: %v", err)
	}
	owner := a.Directory.Owner(r.Namespace)
	_, claims := pod.Labels[wire.LabelJobID]
	switch {
	case !claims && owner == nil:
		return tolerate(pod), nil
	case !claims && a.Directory.Resolve(r.UserInfo.Username, r.UserInfo.Groups).Admin:
		return nil, nil
	case !claims:
		return nil, refusef("pods in the namespace of the user %s are made by Berth only; submit a job", owner.Name)
	case owner == nil || !a.creators[r.UserInfo.Username]:
		return nil, refusef("the label %s is for the pods of Berth's jobs", wire.LabelJobID)
	}
	return a.placePod(ctx, r.Namespace, pod, owner)
}

// tolerate lets a pod that names our scheduler onto nodes that are Berth's own
// by a taint.
func tolerate(pod *corev1.Pod) *patch {
	if pod.Spec.SchedulerName != wire.SchedulerName {
		return nil
	}
	t := corev1.Toleration{Key: wire.LabelManaged, Operator: corev1.TolerationOpExists}
	if slices.Contains(pod.Spec.Tolerations, t) {
		return nil
	}
	p := &patch{}
	if len(pod.Spec.Tolerations) == 0 {
		p.set("/spec/tolerations", []corev1.Toleration{t})
	} else {
		p.set("/spec/tolerations/-", t)
	}
	return p
}

// placePod checks that the pod is one of its job's and names its node.
func (a *Admission) placePod(ctx context.Context, namespace string, pod *corev1.Pod, owner *v1alpha1.User) (*patch, error) {
	at, err := member.Of(pod)
	if err != nil {
		return nil, refuse(refusal.Text(err.Error()))
	}
	b, err := a.jobAt(ctx, namespace, at)
	if err != nil {
		return nil, err
	}
	switch {
	case b == nil || b.Namespace != namespace || b.Spec.User != owner.Name:
		return nil, refusef("there is no job %d in the namespace %s", at.JobID, namespace)
	case b.Status.Attempt != at.Attempt || b.Status.Allocation == nil || b.DeletionTimestamp != nil:
		text := refusal.Text(fmt.Sprintf("attempt %d of job %d is over", at.Attempt, at.JobID))
		return nil, &Refusal{Text: text, Code: http.StatusConflict}
	case at.Index >= len(b.Status.Allocation.Nodes):
		return nil, refusef("job %d has %d nodes, not %d", at.JobID, len(b.Status.Allocation.Nodes), at.Index+1)
	case pod.Spec.ServiceAccountName != v1alpha1.ServiceAccountName:
		return nil, refusef("pods of jobs run under the ServiceAccount %s", v1alpha1.ServiceAccountName)
	}
	p := namePod(pod, b.Status.Allocation.Nodes[at.Index].Name)
	if t := tolerate(pod); t != nil {
		p.ops = append(p.ops, t.ops...)
	}
	return p, nil
}

// jobAt is the job as this process knows it; if the pod speaks of a later
// attempt than that, the API server is asked. nil: there is none.
func (a *Admission) jobAt(ctx context.Context, namespace string, at member.Place) (*v1alpha1.BatchJob, error) {
	b, ok := a.Known(at.JobID)
	if !ok {
		return nil, nil // jobs are known long before they have pods
	}
	if b.Namespace != namespace || at.Attempt < b.Status.Attempt || at.Attempt == b.Status.Attempt && b.Status.Allocation != nil {
		return b, nil
	}
	live, err := a.Read(ctx, b.Namespace, b.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading job %d: %w", at.JobID, err)
	}
	return live, nil
}

// namePod gives the pod its node's name: as host name and in the agent's
// environment.
func namePod(pod *corev1.Pod, node string) *patch {
	p := &patch{}
	if !pod.Spec.HostNetwork {
		p.set("/spec/hostnameOverride", node)
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if c.Name != JobContainer {
			continue
		}
		at := fmt.Sprintf("/spec/containers/%d/env", i)
		entry := corev1.EnvVar{Name: wire.EnvNodeName, Value: node}
		have := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == wire.EnvNodeName })
		switch {
		case len(c.Env) == 0:
			p.set(at, []corev1.EnvVar{entry})
		case have >= 0:
			p.ops = append(p.ops, op{Op: "replace", Path: fmt.Sprintf("%s/%d", at, have), Value: entry})
		default:
			p.set(at+"/-", entry)
		}
	}
	return p
}
