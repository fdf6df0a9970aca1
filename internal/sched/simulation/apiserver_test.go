package simulation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// The kinds of objects that an apiServer stores.
const (
	kindJob      = "BatchJob"
	kindPod      = "Pod"
	kindNode     = "Node"
	kindJobSet   = "JobSet"
	kindPodGroup = "PodGroup"

	kindReservation = "Reservation"
	kindNodePool    = "NodePool"
)

// watchedKinds are those that the leader watches.
var watchedKinds = []string{kindJob, kindNode, kindPod, kindReservation, kindNodePool}

// objectKey names an object.
type objectKey struct{ kind, namespace, name string }

func (k objectKey) String() string { return k.kind + " " + k.namespace + "/" + k.name }

// event is a change of an object. Nobody may change the object.
type event struct {
	object  client.Object
	deleted bool
}

// apiServer stores objects as Kubernetes' API server does: each write gets the next
// resource version, a patch with another resource version than the object's is a
// conflict, the status of a BatchJob is a subresource, objects with finalizers and pods on
// nodes are only marked when they are deleted, and the events of one kind have the order
// of the writes.
type apiServer struct {
	version int64
	objects map[objectKey]client.Object
	kinds   map[string][]client.Object // the objects by kind, in the order of their names
	events  map[string][]event         // by kind
	changed func(old, now client.Object)
}

func newAPIServer() *apiServer {
	return &apiServer{
		objects: map[objectKey]client.Object{}, kinds: map[string][]client.Object{}, events: map[string][]event{},
	}
}

func keyOf(o client.Object) objectKey {
	k := objectKey{namespace: o.GetNamespace(), name: o.GetName()}
	switch o.(type) {
	case *v1alpha1.BatchJob:
		k.kind = kindJob
	case *corev1.Pod:
		k.kind = kindPod
	case *corev1.Node:
		k.kind = kindNode
	case *jobset.JobSet:
		k.kind = kindJobSet
	case *podgroup.PodGroup:
		k.kind = kindPodGroup
	case *v1alpha1.Reservation:
		k.kind = kindReservation
	case *v1alpha1.NodePool:
		k.kind = kindNodePool
	default:
		panic(fmt.Sprintf("the simulation has no %T", o))
	}
	return k
}

// list returns the objects of a kind in the order of their names. The next write may
// change the list.
func (s *apiServer) list(kind string) []client.Object { return s.kinds[kind] }

// position returns where the object with the key is in the list of its kind.
func (s *apiServer) position(k objectKey) (int, bool) {
	return slices.BinarySearchFunc(s.kinds[k.kind], k, func(o client.Object, k objectKey) int {
		return cmp.Or(cmp.Compare(o.GetNamespace(), k.namespace), cmp.Compare(o.GetName(), k.name))
	})
}

func copyOf[T client.Object](o T) T { return o.DeepCopyObject().(T) } //nolint:forcetypeassert // a copy has its type

func resourceOf(k objectKey) schema.GroupResource { return schema.GroupResource{Resource: k.kind} }

func notFound(k objectKey) error { return apierrors.NewNotFound(resourceOf(k), k.name) }

func conflict(k objectKey) error {
	return apierrors.NewConflict(resourceOf(k), k.name, fmt.Errorf("the object has been modified"))
}

// create stores a new object and returns it as stored.
func (s *apiServer) create(o client.Object) (client.Object, error) {
	k := keyOf(o)
	if _, exists := s.objects[k]; exists {
		return nil, apierrors.NewAlreadyExists(resourceOf(k), k.name)
	}
	o = copyOf(o)
	if b, ok := o.(*v1alpha1.BatchJob); ok {
		b.Status = v1alpha1.BatchJobStatus{}
	}
	o.SetUID(types.UID("uid-" + strconv.FormatInt(s.version+1, 10)))
	o.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	s.store(k, o)
	return o, nil
}

// get returns the object with the key.
func (s *apiServer) get(k objectKey) (client.Object, error) {
	if o, exists := s.objects[k]; exists {
		return o, nil
	}
	return nil, notFound(k)
}

// update replaces an object and returns it as stored, unless another version is stored.
func (s *apiServer) update(o client.Object) (client.Object, error) {
	k := keyOf(o)
	switch old, exists := s.objects[k]; {
	case !exists:
		return nil, notFound(k)
	case o.GetResourceVersion() != "" && o.GetResourceVersion() != old.GetResourceVersion():
		return nil, conflict(k)
	}
	s.store(k, o)
	return o, nil
}

// put stores a changed object of a controller or kubelet.
func (s *apiServer) put(o client.Object) { s.store(keyOf(o), o) }

func (s *apiServer) store(k objectKey, o client.Object) {
	s.version++
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	old := s.objects[k]
	s.objects[k] = o
	if i, known := s.position(k); known {
		s.kinds[k.kind][i] = o
	} else {
		s.kinds[k.kind] = slices.Insert(s.kinds[k.kind], i, o)
	}
	s.events[k.kind] = append(s.events[k.kind], event{object: o})
	if s.changed != nil {
		s.changed(old, o)
	}
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && k.kind != kindPod {
		s.remove(k)
	}
}

func (s *apiServer) remove(k objectKey) {
	old := s.objects[k]
	o := copyOf(old)
	s.version++
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	delete(s.objects, k)
	i, _ := s.position(k)
	s.kinds[k.kind] = slices.Delete(s.kinds[k.kind], i, i+1)
	s.events[k.kind] = append(s.events[k.kind], event{object: o, deleted: true})
	if s.changed != nil {
		s.changed(old, nil)
	}
}

// delete deletes an object, or marks it as the API server does.
func (s *apiServer) delete(k objectKey, options client.DeleteOptions) error {
	o, exists := s.objects[k]
	if !exists {
		return notFound(k)
	}
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != o.GetUID() {
		return conflict(k)
	}
	pod, isPod := o.(*corev1.Pod)
	force := options.GracePeriodSeconds != nil && *options.GracePeriodSeconds == 0
	graceful := isPod && !force && pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded &&
		pod.Status.Phase != corev1.PodFailed
	if !graceful && len(o.GetFinalizers()) == 0 {
		s.remove(k)
		return nil
	}
	if o.GetDeletionTimestamp() == nil {
		now := metav1.NewTime(time.Now())
		o = copyOf(o)
		o.SetDeletionTimestamp(&now)
		s.put(o)
	}
	return nil
}

// patch applies a JSON merge patch (RFC 7386) to the object or to its status, and returns
// the object as stored.
func (s *apiServer) patch(k objectKey, data []byte, status bool) (client.Object, error) {
	old, exists := s.objects[k]
	if !exists {
		return nil, notFound(k)
	}
	change := decode(data)
	if meta, ok := change["metadata"].(map[string]any); ok {
		if v, ok := meta["resourceVersion"]; ok && v != old.GetResourceVersion() {
			return nil, conflict(k)
		}
	}
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(merge(decode(before), change))
	if err != nil {
		return nil, err
	}
	if was, ok := old.(*corev1.Node); ok {
		return s.patchNode(k, was, after)
	}
	now := &v1alpha1.BatchJob{}
	if err := json.Unmarshal(after, now); err != nil {
		return nil, err
	}
	was, ok := old.(*v1alpha1.BatchJob)
	if !ok {
		return nil, fmt.Errorf("the simulation does not patch a %T", old)
	}
	if status {
		n := was.DeepCopy()
		n.Status = now.Status
		now = n
	} else {
		now.Status = was.Status
	}
	if same, err := json.Marshal(now); err == nil && bytes.Equal(same, before) {
		return old, nil
	}
	s.store(k, now)
	return now, nil
}

// patchNode stores the node that a patch has resulted in; its status stays.
func (s *apiServer) patchNode(k objectKey, was *corev1.Node, data []byte) (client.Object, error) {
	now := &corev1.Node{}
	if err := json.Unmarshal(data, now); err != nil {
		return nil, err
	}
	now.Status = was.DeepCopy().Status
	s.store(k, now)
	return now, nil
}

// decode decodes a JSON object; numbers keep their text.
func decode(data []byte) map[string]any {
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		panic(err) // it was encoded by this process
	}
	return m
}

// merge applies a merge patch to a document.
func merge(to, change map[string]any) map[string]any {
	if to == nil {
		to = map[string]any{}
	}
	for name, v := range change {
		switch v := v.(type) {
		case nil:
			delete(to, name)
		case map[string]any:
			part, _ := to[name].(map[string]any)
			to[name] = merge(part, v)
		default:
			to[name] = v
		}
	}
	return to
}
