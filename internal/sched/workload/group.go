package workload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/wire"
)

// lwsSize is the annotation with the number of pods in a group of a
// LeaderWorkerSet.
const lwsSize = "leaderworkerset.sigs.k8s.io/size"

// group returns the group of the pods with the key; nil if it is not known yet, or its
// annotations are invalid. why is a message for the pods' owner, or "".
func (w *Controller) group(ctx context.Context, key string, pods []*corev1.Pod) (g *Group, why string, err error) {
	p := pods[0]
	switch {
	case strings.HasPrefix(key, "group "):
		return w.podGroup(key, pods)
	case strings.HasPrefix(key, "lws "):
		size := sizeOf(p)
		if size < 1 {
			return nil, "the annotation " + lwsSize + " is not a number", nil
		}
		g := &Group{
			Key: key, Kind: "LeaderWorkerSet",
			Name: p.Labels[control.LabelLWS] + "-" + p.Labels[control.LabelLWSGroup], MinMember: size, Pods: pods,
		}
		ready, err := w.startsWithLeader(ctx, p)
		if err != nil {
			return nil, "", err
		}
		if ready { // the workers are created when the leader is ready
			g.MinMember = 1
		}
		return g, "", nil
	}
	return &Group{Key: key, Kind: "Pod", Name: p.Name, MinMember: 1, Pods: pods}, "", nil
}

// sizeOf returns how many pods the group of p, of a LeaderWorkerSet, has; 0:
// unknown.
func sizeOf(p *corev1.Pod) int {
	n, err := strconv.Atoi(p.Annotations[lwsSize])
	if err != nil {
		return 0
	}
	return n
}

func (w *Controller) podGroup(key string, pods []*corev1.Pod) (g *Group, why string, err error) {
	name := pods[0].Labels[podgroup.PodGroupLabel]
	pg, ok := w.cluster.PodGroups.Get(pods[0].Namespace + "/" + name)
	if !ok {
		return nil, fmt.Sprintf("there is no PodGroup %s yet", name), nil
	}
	least := max(1, int(pg.Spec.MinMember))
	return &Group{Key: key, Kind: "PodGroup", Name: name, MinMember: least, Pods: pods}, "", nil
}

// startsWithLeader reports whether the workers of p's LeaderWorkerSet are created
// only when its leader is ready: the group cannot be placed at once.
func (w *Controller) startsWithLeader(ctx context.Context, p *corev1.Pod) (bool, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1",
		Kind: "LeaderWorkerSet"})
	err := w.cluster.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Labels[control.LabelLWS]}, u)
	switch {
	case absent(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the LeaderWorkerSet of pod %s: %w", p.Name, err)
	}
	policy, _, _ := unstructured.NestedString(u.Object, "spec", "startupPolicy")
	return policy == "LeaderReady", nil
}

// absent reports whether the object, or its kind, does not exist or may not be
// read.
func absent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || apierrors.IsForbidden(err)
}

// owner is what was read from a controller's object.
type owner struct {
	annotations map[string]string
	next        *metav1.OwnerReference // its own controller
	namespace   string
	read        time.Time
}

// For how long owners are cached, how many of them, and how far the chain of owners is
// followed.
const (
	maxOwnerAge = 10 * time.Second
	maxOwners   = 4096
	maxParents  = 5
)

// layers returns the annotations that count for the group: those of its first pod,
// of its PodGroup, and of the controllers above the pod.
func (w *Controller) layers(ctx context.Context, g *Group, pods []*corev1.Pod) ([]map[string]string, error) {
	p := pods[0]
	out := []map[string]string{p.Annotations}
	if pg, ok := w.cluster.PodGroups.Get(p.Namespace + "/" + g.Name); ok && g.Kind == "PodGroup" {
		out = append(out, pg.Annotations)
	}
	ref := metav1.GetControllerOf(p)
	for i := 0; ref != nil && i < maxParents; i++ {
		o, err := w.owner(ctx, p.Namespace, ref)
		if err != nil {
			return nil, err
		}
		out = append(out, o.annotations)
		ref = o.next
	}
	return out, nil
}

// owner reads the controller's object that ref names, or returns it from the cache. An
// object that does not exist or may not be read has no annotations and no owner.
func (w *Controller) owner(ctx context.Context, namespace string, ref *metav1.OwnerReference) (owner, error) {
	now := w.now()
	w.mu.Lock()
	o, known := w.owners[string(ref.UID)]
	w.mu.Unlock()
	if known && now.Sub(o.read) < maxOwnerAge {
		return o, nil
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	err := w.cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, m)
	if err != nil && !absent(err) {
		return owner{}, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	o = owner{namespace: namespace, read: now}
	if err == nil && m.UID == ref.UID {
		o.annotations, o.next = m.Annotations, metav1.GetControllerOf(m)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.owners) >= maxOwners {
		clear(w.owners)
	}
	w.owners[string(ref.UID)] = o
	return o, nil
}

// buildSpec returns the spec of the job for the pods. ok is false if they request
// something that is not available; their owner gets an event.
func (w *Controller) buildSpec(
	ctx context.Context, g *Group, pods []*corev1.Pod,
) (s *v1alpha1.BatchJobSpec, ok bool, err error) {
	layers, err := w.layers(ctx, g, pods)
	if err != nil {
		return nil, false, err
	}
	params := w.cluster.Parameters()
	s, ignored, err := spec(g, pods, &params, layers)
	if err == nil {
		err = w.check(s)
	}
	if err != nil {
		return nil, false, w.recordEvent(ctx, pods[0], err.Error())
	}
	for _, text := range ignored {
		if err := w.recordEvent(ctx, pods[0], text); err != nil {
			return nil, false, err
		}
	}
	return s, true, nil
}

// check returns an error in Slurm's words if the job names something that does not exist
// or that workloads may not use. It sets the partition.
func (w *Controller) check(s *v1alpha1.BatchJobSpec) error {
	j := &s.Job
	if len(j.Partitions) == 0 {
		d := w.dir.Default()
		if d == nil {
			return refusal.NoPartition
		}
		s.Partition = d.Name
	} else {
		s.Partition = j.Partitions[0]
	}
	if a, known := w.dir.Account(j.Account); known && a == nil && j.Account != "" {
		return refusal.InvalidAccount
	}
	if q, known := w.dir.QOS(j.QOS); known && q == nil && j.QOS != "" {
		return refusal.InvalidQOS
	}
	names := j.Partitions
	if len(names) == 0 {
		names = []string{s.Partition}
	}
	for _, name := range names {
		if err := w.checkPartition(j.Account, j.QOS, name); err != nil {
			return err
		}
	}
	if j.Reservation != "" && w.dir.Reservation(j.Reservation) == nil {
		return refusal.InvalidReservation
	}
	total := w.cluster.Parameters().Licenses
	for _, l := range j.Licenses {
		if total[l.Name] < l.Count {
			return refusal.InvalidLicense
		}
	}
	return nil
}

// checkPartition refuses partitions that only some users may use: a workload has no
// user.
func (w *Controller) checkPartition(account, qos, name string) error {
	p := w.dir.Partition(name)
	if p == nil {
		return refusal.InvalidPartition
	}
	s := &p.Spec
	switch {
	case s.RootOnly:
		return refusal.AccessDenied
	case len(s.AllowGroups) > 0:
		return refusal.GroupNotPermitted
	case len(s.AllowAccounts) > 0 && !slices.Contains(s.AllowAccounts, account),
		len(s.AllowAccounts) == 0 && slices.Contains(s.DenyAccounts, account):
		return refusal.InvalidAccount
	case len(s.AllowQOS) > 0 && !slices.Contains(s.AllowQOS, qos),
		len(s.AllowQOS) == 0 && slices.Contains(s.DenyQOS, qos):
		return refusal.InvalidQOS
	}
	return nil
}

// recordEvent writes an event about the pod, once for each text.
func (w *Controller) recordEvent(ctx context.Context, p *corev1.Pod, text string) error {
	h := sha256.Sum256([]byte(string(p.UID) + "\x00" + text))
	now := metav1.NewTime(w.now())
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "berth-" + hex.EncodeToString(h[:10])},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID,
		},
		Type: corev1.EventTypeWarning, Reason: "NotQueued", Message: text,
		Source: corev1.EventSource{Component: wire.SchedulerName}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
		ReportingController: wire.SchedulerName,
	}
	if err := w.cluster.Client.Create(ctx, e); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("event about pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}
