package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
)

// stampUpdate writes who asked for the cancellation, when it is new.
func (a *Admission) stampUpdate(r *admissionv1.AdmissionRequest, caller *directory.Caller) (*patch, error) {
	old, now, err := decodeBoth(r)
	if err != nil {
		return nil, err
	}
	if now.Spec.Cancel == nil || old.Spec.Cancel != nil || caller.Trusted && now.Spec.Cancel.By != "" {
		return nil, nil
	}
	at := metav1.NewMicroTime(a.Now())
	p := &patch{}
	p.set("/spec/cancel", v1alpha1.CancelRequest{By: caller.Name, At: &at})
	return p, nil
}

// validateJob serves CREATE, UPDATE and DELETE of BatchJobs, after every
// mutating webhook: it checks that nothing of what mutateJob set was undone.
func (a *Admission) validateJob(_ context.Context, r *admissionv1.AdmissionRequest) (*patch, error) {
	if r.SubResource != "" {
		return nil, nil
	}
	caller := a.Directory.Resolve(r.UserInfo.Username, r.UserInfo.Groups)
	switch r.Operation {
	case admissionv1.Create:
		return nil, a.validateCreate(r, caller)
	case admissionv1.Update:
		old, now, err := decodeBoth(r)
		if err != nil {
			return nil, err
		}
		return nil, a.validateUpdate(old, now, r.UserInfo.Username, caller)
	case admissionv1.Delete:
		return nil, a.validateDelete(r, caller)
	}
	return nil, nil
}

func (a *Admission) validateCreate(r *admissionv1.AdmissionRequest, caller *directory.Caller) error {
	b := &v1alpha1.BatchJob{}
	if err := json.Unmarshal(r.Object.Raw, b); err != nil {
		return refusef("the BatchJob cannot be read: %v", err)
	}
	owner := a.Directory.Owner(r.Namespace)
	workload := caller.Trusted && b.Spec.Workload != nil
	switch {
	case !workload && (owner == nil || b.Spec.User != owner.Name),
		b.Spec.JobID <= 0,
		b.Spec.SubmitTime == nil,
		!maps.Equal(b.Labels, labelsOf(b)),
		!slices.Equal(b.Finalizers, []string{wire.Finalizer}),
		len(b.OwnerReferences) > 0,
		b.Spec.Cancel != nil, b.Spec.Requeues != 0,
		!mayChooseGroup(&b.Spec.Job, caller) || slices.ContainsFunc(b.Spec.Components, func(j job.Job) bool { return !mayChooseGroup(&j, caller) }),
		!caller.Trusted && (b.Spec.Origin != nil || b.Spec.Task != nil || b.Spec.Workload != nil || strings.HasPrefix(b.Name, array.NamePrefix)):
		return fmt.Errorf("BatchJob %s/%s was changed after Berth's mutating webhook", r.Namespace, r.Name)
	}
	if r.DryRun == nil || !*r.DryRun {
		a.Jobs.Expect(b.Spec.JobID, b.Spec.User)
	}
	return nil
}

// housekeeper tells whether the identity is a controller of Kubernetes itself
// (garbage collection, namespace deletion).
func housekeeper(identity string) bool {
	return strings.HasPrefix(identity, "system:serviceaccount:kube-system:") || identity == "system:kube-controller-manager" || identity == "system:apiserver"
}

func (a *Admission) validateUpdate(old, now *v1alpha1.BatchJob, identity string, caller *directory.Caller) error {
	if old.Spec.JobID != now.Spec.JobID && old.Spec.JobID != 0 || old.Spec.User != now.Spec.User && old.Spec.User != "" {
		return refuse("a job's id and user never change")
	}
	if caller.Trusted {
		return nil
	}
	owner := caller.User != nil && caller.User.Name == old.Spec.User && old.Namespace == caller.User.Spec.Namespace
	switch {
	case !owner && !caller.Operator && !housekeeper(identity):
		return refuse(TextDenied)
	case old.Spec.JobID != now.Spec.JobID || old.Spec.User != now.Spec.User:
		return refuse("a job's id and user are set by the cluster")
	}
	if err := checkMetadata(old, now, caller); err != nil {
		return err
	}
	if !owner && !caller.Operator {
		if !reflect.DeepEqual(old.Spec, now.Spec) {
			return refuse(TextDenied)
		}
		return nil
	}
	return a.checkSpec(old, now, caller)
}

// checkMetadata keeps labels, finalizers and owners as they are. An
// administrator of the whole cluster may take finalizers away (the way out
// when Berth itself is gone), and so may the garbage collector with its own.
func checkMetadata(old, now *v1alpha1.BatchJob, caller *directory.Caller) error {
	if !maps.Equal(old.Labels, now.Labels) {
		return refuse("the labels of a BatchJob are set by the cluster")
	}
	if !reflect.DeepEqual(old.OwnerReferences, now.OwnerReferences) {
		return refuse("a BatchJob has no owner but its user")
	}
	for _, name := range reserved(merge(old.Annotations, now.Annotations)) {
		if old.Annotations[name] != now.Annotations[name] {
			return refusef("the annotation %s belongs to the cluster", name)
		}
	}
	if caller.Admin {
		return nil
	}
	ours := func(f string) bool {
		return f != metav1.FinalizerDeleteDependents && f != metav1.FinalizerOrphanDependents
	}
	if !slices.Equal(only(old.Finalizers, ours), only(now.Finalizers, ours)) || len(now.Finalizers) > len(old.Finalizers) {
		return refuse("the finalizers of a BatchJob are set by the cluster; cancel the job to be rid of it")
	}
	return nil
}

func merge(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	if m == nil {
		m = map[string]string{}
	}
	maps.Copy(m, b)
	return m
}

func only(list []string, keep func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !keep(s) })
}

// checkSpec lets owner and operators change what they may and nothing else.
func (a *Admission) checkSpec(old, now *v1alpha1.BatchJob, caller *directory.Caller) error {
	o, n := &old.Spec, &now.Spec
	switch {
	case !bytes.Equal(o.Script, n.Script) || !bytes.Equal(o.Environment, n.Environment):
		return refuse("a job's script and environment cannot be changed")
	case !reflect.DeepEqual(o.Origin, n.Origin) || !reflect.DeepEqual(o.Task, n.Task) || !reflect.DeepEqual(o.Components, n.Components),
		!reflect.DeepEqual(o.Workload, n.Workload):
		return refuse("what a job was split off from, and into, cannot be changed")
	case !o.SubmitTime.Equal(n.SubmitTime):
		return refuse("a job's submit time cannot be changed")
	case o.Partition != n.Partition && !caller.Operator:
		return refuse(TextDenied)
	case o.Cancel != nil && !reflect.DeepEqual(o.Cancel, n.Cancel):
		return refuse("a cancellation cannot be taken back")
	case o.Cancel == nil && n.Cancel != nil && n.Cancel.By != caller.Name:
		return refuse("spec.cancel.by is set by the cluster")
	case n.Requeues != o.Requeues && n.Requeues != o.Requeues+1:
		return refuse("spec.requeues may be raised by one only")
	case n.Requeues != o.Requeues && !a.requeueable(&o.Job):
		return refuse(TextDisabled)
	}
	return a.checkJob(&o.Job, &n.Job, old, caller)
}

func (a *Admission) requeueable(j *job.Job) bool {
	if j.Batch.Requeue != nil {
		return *j.Batch.Requeue
	}
	def := a.Directory.Parameters().JobRequeue
	return def == nil || *def
}

// checkJob compares the neutral Job before and after.
func (a *Admission) checkJob(o, n *job.Job, b *v1alpha1.BatchJob, caller *directory.Caller) error {
	if reflect.DeepEqual(o, n) {
		return nil
	}
	rest := n.DeepCopy()
	rest.Hold, rest.Nice, rest.Priority, rest.Time.Limit = o.Hold, o.Nice, o.Priority, o.Time.Limit
	rest.Name, rest.Comment = o.Name, o.Comment
	if caller.Operator {
		rest.Partitions, rest.Account, rest.QOS, rest.Reservation = o.Partitions, o.Account, o.QOS, o.Reservation
		rest.SiteFactor = o.SiteFactor
		rest.AdminComment, rest.WCKey, rest.Extra = o.AdminComment, o.WCKey, o.Extra
		rest.Time, rest.Dependencies, rest.Licenses = o.Time, o.Dependencies, o.Licenses
		rest.Batch.Requeue = o.Batch.Requeue
	}
	if !reflect.DeepEqual(o, rest) {
		return refuse(TextDenied)
	}
	if err := a.checkForm(n, caller); err != nil && n.Nice != o.Nice {
		return err
	}
	if o.Hold != n.Hold && b.Begun() && b.Status.State != v1alpha1.StatePending {
		return refuse(TextNotPending)
	}
	if caller.Operator {
		return nil
	}
	return a.checkLowered(o, n, b)
}

// checkLowered holds a user to changes for the worse.
func (a *Admission) checkLowered(o, n *job.Job, b *v1alpha1.BatchJob) error {
	switch {
	case o.Hold != n.Hold && (o.Hold == "admin" || n.Hold == "admin"),
		n.Nice < o.Nice,
		!reflect.DeepEqual(o.Priority, n.Priority) && (n.Priority == nil || o.Priority == nil || *n.Priority > *o.Priority),
		o.Time.Limit != n.Time.Limit && !a.shorter(n, b):
		return refuse(TextDenied)
	}
	return nil
}

// shorter tells whether the new limit is at most the one in force.
func (a *Admission) shorter(n *job.Job, b *v1alpha1.BatchJob) bool {
	limit := a.limitInForce(b)
	return n.Time.Limit > 0 && (limit == job.Unlimited || n.Time.Limit <= limit)
}

// validateDelete lets owner, operators and Kubernetes' own controllers delete
// a job (which cancels it), but never leave behind what it started.
func (a *Admission) validateDelete(r *admissionv1.AdmissionRequest, caller *directory.Caller) error {
	if caller.Trusted {
		return nil
	}
	var options metav1.DeleteOptions
	if len(r.Options.Raw) > 0 {
		if err := json.Unmarshal(r.Options.Raw, &options); err != nil {
			return refusef("the delete options cannot be read: %v", err)
		}
	}
	//nolint:staticcheck // the old field still takes effect
	orphan := options.OrphanDependents != nil && *options.OrphanDependents
	if p := options.PropagationPolicy; orphan || p != nil && *p == metav1.DeletePropagationOrphan {
		return refuse("a BatchJob cannot be deleted with its pods left behind (propagation policy Orphan)")
	}
	if caller.Operator || housekeeper(r.UserInfo.Username) {
		return nil
	}
	owner := a.Directory.Owner(r.Namespace)
	if caller.User == nil || owner == nil || owner.Name != caller.User.Name {
		return refuse(TextDenied)
	}
	return nil
}

// Judge checks a job that is changed in the queue as if its user submitted it
// now; what only operators may ask for has been decided before.
func (a *Admission) Judge(b *v1alpha1.BatchJob) error {
	user := a.Directory.User(b.Spec.User)
	if user == nil {
		return refuse(TextUser)
	}
	parts, err := a.partitions(&b.Spec.Job)
	if err != nil {
		return err
	}
	err = a.check(b, user, &directory.Caller{Name: user.Name, User: user, Operator: true}, parts)
	var no *Refusal
	if errors.As(err, &no) { // the reason alone
		no.Text = no.Text[strings.LastIndexByte(no.Text, '\n')+1:]
	}
	return err
}
