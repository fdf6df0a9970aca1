// Package jobevents writes Kubernetes events about BatchJobs, which kubectl describe shows:
// what happened to a job that its user did not cause, or every change of its state; and about
// NodePools.
package jobevents

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
)

// Recorder writes the events of jobs. A write does not delay the change of a job, and is
// dropped if a thousand wait.
type Recorder struct {
	level    func() string // of v1alpha1.JobEvents...; "": the default
	recorder record.EventRecorder
}

// New returns a Recorder and starts its writer, which ends with ctx. level returns the
// Cluster's jobEvents.
func New(ctx context.Context, kube *rest.Config, scheme *runtime.Scheme, level func() string) (*Recorder, error) {
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return nil, fmt.Errorf("client for events: %w", err)
	}
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return &Recorder{level, b.NewRecorder(scheme, corev1.EventSource{Component: "berth"})}, nil
}

// Changed handles a change of a job; it has the form of a store's subscription. It does not
// block.
func (r *Recorder) Changed(old, now *v1alpha1.BatchJob) {
	if old == nil || now == nil || !control.IsCreated(now) {
		return
	}
	level := cmp.Or(r.level(), v1alpha1.JobEventsWarnings)
	if level == v1alpha1.JobEventsNone {
		return
	}
	for _, e := range eventsOf(old, now, level == v1alpha1.JobEventsAll) {
		r.recorder.Event(now, e.kind, e.reason, e.message)
	}
}
