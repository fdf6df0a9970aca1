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

// limitInForce returns the job's time limit in minutes.
func (a *Admission) limitInForce(b *v1alpha1.BatchJob) int32 {
	name := b.Status.Partition
	if name == "" {
		name = b.Spec.Partition
	}
	return table.TimeLimit(b, a.Directory.Partition(name))
}

// mutatePod serves CREATE of pods in users' namespaces, and of pods with a job's label
// in any namespace. Pods of jobs get the name of their planned node. Others in
// users' namespaces are refused, unless an administrator creates them. Pods
// elsewhere that name our scheduler tolerate the taint of its nodes.
func (a *Admission) mutatePod(ctx context.Context, r *admissionv1.AdmissionRequest) (*patch, error) {
	if r.Operation != admissionv1.Create || r.SubResource != "" {
		return nil, nil
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(r.Object.Raw, pod); err != nil {
		return nil, refusef("the pod cannot be read: %v", err)
	}
	owner := a.Directory.Owner(r.Namespace)
	_, hasJobLabel := pod.Labels[wire.LabelJobID]
	switch {
	case !hasJobLabel && owner == nil:
		return addToleration(pod), nil
	case !hasJobLabel && a.Directory.Resolve(r.UserInfo.Username, r.UserInfo.Groups).Admin:
		return nil, nil
	case !hasJobLabel:
		return nil, refusef("pods in the namespace of the user %s are created only by Berth; submit a job", owner.Name)
	case owner == nil || !a.creators[r.UserInfo.Username]:
		return nil, refusef("the label %s is for the pods of Berth's jobs", wire.LabelJobID)
	}
	return a.placePod(ctx, r.Namespace, pod, owner)
}

// addToleration lets a pod that names our scheduler run on nodes with Berth's taint.
func addToleration(pod *corev1.Pod) *patch {
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
func (a *Admission) placePod(
	ctx context.Context, namespace string, pod *corev1.Pod, owner *v1alpha1.User,
) (*patch, error) {
	at, err := member.Of(pod)
	if err != nil {
		return nil, refuse(refusal.Text(err.Error()))
	}
	b, err := a.jobOf(ctx, namespace, at)
	if err != nil {
		return nil, err
	}
	switch {
	case b == nil || b.Namespace != namespace || b.Spec.User != owner.Name:
		return nil, refusef("there is no job %d in the namespace %s", at.JobID, namespace)
	case b.Status.Attempt != at.Attempt || b.Status.Allocation == nil || b.DeletionTimestamp != nil:
		text := refusal.Text(fmt.Sprintf("attempt %d of job %d has ended", at.Attempt, at.JobID))
		return nil, &Refusal{Text: text, Code: http.StatusConflict}
	case at.Index >= len(b.Status.Allocation.Nodes):
		return nil, refusef("job %d has %d nodes, not %d", at.JobID, len(b.Status.Allocation.Nodes), at.Index+1)
	case pod.Spec.ServiceAccountName != v1alpha1.ServiceAccountName:
		return nil, refusef("pods of jobs run under the ServiceAccount %s", v1alpha1.ServiceAccountName)
	}
	p := setNodeName(pod, b.Status.Allocation.Nodes[at.Index].Name)
	if t := addToleration(pod); t != nil {
		p.ops = append(p.ops, t.ops...)
	}
	return p, nil
}

// jobOf returns the job of a pod, or nil if there is none. If the pod is of a later
// attempt than this process knows, the job is read from the API server.
func (a *Admission) jobOf(ctx context.Context, namespace string, at member.Place) (*v1alpha1.BatchJob, error) {
	b, ok := a.Known(at.JobID)
	if !ok {
		return nil, nil // jobs are known long before they have pods
	}
	isKnown := at.Attempt < b.Status.Attempt || at.Attempt == b.Status.Attempt && b.Status.Allocation != nil
	if b.Namespace != namespace || isKnown {
		return b, nil
	}
	newest, err := a.Read(ctx, b.Namespace, b.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading job %d: %w", at.JobID, err)
	}
	return newest, nil
}

// setNodeName sets the name of the pod's node as its host name and in the agent's
// environment.
func setNodeName(pod *corev1.Pod, node string) *patch {
	p := &patch{}
	if !pod.Spec.HostNetwork {
		p.set("/spec/hostnameOverride", node)
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if c.Name != JobContainer {
			continue
		}
		env := fmt.Sprintf("/spec/containers/%d/env", i)
		entry := corev1.EnvVar{Name: wire.EnvNodeName, Value: node}
		index := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == wire.EnvNodeName })
		switch {
		case len(c.Env) == 0:
			p.set(env, []corev1.EnvVar{entry})
		case index >= 0:
			p.ops = append(p.ops, op{Op: "replace", Path: fmt.Sprintf("%s/%d", env, index), Value: entry})
		default:
			p.set(env+"/-", entry)
		}
	}
	return p
}
