package admission

import (
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
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
)

// stampUpdate sets who requested a new cancellation, and which partition is the first
// of those requested.
func (a *Admission) stampUpdate(r *admissionv1.AdmissionRequest, caller *directory.Caller) (*patch, error) {
	old, now, err := decodeBoth(r)
	if err != nil {
		return nil, err
	}
	p := &patch{}
	list := now.Spec.Job.Partitions
	changed := len(list) > 0 && !slices.Equal(list, old.Spec.Job.Partitions)
	if !caller.Trusted && changed && now.Spec.Partition != list[0] {
		p.set("/spec/partition", list[0])
	}
	if now.Spec.Cancel == nil || old.Spec.Cancel != nil || caller.Trusted && now.Spec.Cancel.By != "" {
		return p, nil
	}
	at := metav1.NewMicroTime(a.Now())
	p.set("/spec/cancel", v1alpha1.CancelRequest{By: caller.Name, At: &at})
	return p, nil
}

// validateJob serves CREATE, UPDATE and DELETE of BatchJobs after every mutating
// webhook: another of them may have undone what mutateJob set.
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
		return nil, a.validateUpdate(old, now, caller)
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
	case checkGivenFields(b, caller.Roles()) != nil,
		!workload && (owner == nil || b.Spec.User != owner.Name),
		b.Spec.JobID <= 0,
		b.Spec.SubmitTime == nil,
		!maps.Equal(b.Labels, labelsOf(b)),
		!slices.Equal(b.Finalizers, []string{wire.Finalizer}),
		len(b.OwnerReferences) > 0,
		b.Spec.Cancel != nil, b.Spec.Requeues != 0,
		!mayChooseGroups(b, caller),
		!caller.Trusted && isMadeByScheduler(b):
		return fmt.Errorf("BatchJob %s/%s was changed after Berth's mutating webhook", r.Namespace, r.Name)
	}
	if !isDryRun(r) {
		a.Jobs.Expect(b.Spec.JobID, len(b.Spec.Components), b.Spec.User)
	}
	return nil
}

// mayChooseGroups reports whether the caller may choose the groups of the job's
// components.
func mayChooseGroups(b *v1alpha1.BatchJob, caller *directory.Caller) bool {
	refused := func(j job.Job) bool { return !mayChooseGroup(&j, caller) }
	return !refused(b.Spec.Job) && !slices.ContainsFunc(b.Spec.Components, refused)
}

// isMadeByScheduler reports whether the job has what only the scheduler sets.
func isMadeByScheduler(b *v1alpha1.BatchJob) bool {
	return b.Spec.Origin != nil || b.Spec.Task != nil || b.Spec.Workload != nil ||
		strings.HasPrefix(b.Name, array.NamePrefix)
}

func (a *Admission) validateUpdate(old, now *v1alpha1.BatchJob, caller *directory.Caller) error {
	idChanged := old.Spec.JobID != now.Spec.JobID
	userChanged := old.Spec.User != now.Spec.User
	if idChanged && old.Spec.JobID != 0 || userChanged && old.Spec.User != "" {
		return refuse("a job's id and user never change")
	}
	if caller.Trusted {
		return nil
	}
	roles := a.Directory.RolesOnJob(caller, old)
	touch := authz.May(roles, authz.Job, authz.Touch)
	update := authz.May(roles, authz.Job, authz.Update)
	switch {
	case touch == authz.Deny:
		return refuse(refusal.AccessDenied)
	case idChanged || userChanged:
		return refuse("a job's id and user are set by the cluster")
	}
	if err := checkMetadata(old, now, caller); err != nil {
		return err
	}
	if err := a.CheckChange(old, now, caller); err != nil {
		return err
	}
	if update == authz.Deny {
		if !reflect.DeepEqual(old.Spec, now.Spec) {
			return refuse(refusal.AccessDenied)
		}
		return nil
	}
	return a.checkFieldChanges(old, now, caller)
}

// checkMetadata refuses changes of labels, finalizers, owners and Berth's
// annotations. An administrator may remove finalizers, in case Berth has been
// removed from the cluster, and the garbage collector its own.
func checkMetadata(old, now *v1alpha1.BatchJob, caller *directory.Caller) error {
	if !maps.Equal(old.Labels, now.Labels) {
		return refuse("the labels of a BatchJob are set by the cluster")
	}
	if !reflect.DeepEqual(old.OwnerReferences, now.OwnerReferences) {
		return refuse("a BatchJob has no owner but its user")
	}
	for _, name := range berthNames(merge(old.Annotations, now.Annotations)) {
		if old.Annotations[name] != now.Annotations[name] {
			return refusef("the annotation %s belongs to the cluster", name)
		}
	}
	if caller.Admin {
		return nil
	}
	isCollectors := func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	}
	before := slices.DeleteFunc(slices.Clone(old.Finalizers), isCollectors)
	after := slices.DeleteFunc(slices.Clone(now.Finalizers), isCollectors)
	if !slices.Equal(before, after) || len(now.Finalizers) > len(old.Finalizers) {
		return refuse("the finalizers of a BatchJob are set by the cluster; cancel the job to remove it")
	}
	return nil
}

// merge returns the names of both maps.
func merge(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	if m == nil {
		m = map[string]string{}
	}
	maps.Copy(m, b)
	return m
}

// isShorter reports whether the new limit is at most the one in force.
func (a *Admission) isShorter(n *job.Job, b *v1alpha1.BatchJob) bool {
	limit := a.limitInForce(b)
	return n.Time.Limit > 0 && (limit == job.Unlimited || n.Time.Limit <= limit)
}

// validateDelete lets owners, operators and Kubernetes' own controllers delete a job,
// which cancels it. Nobody may orphan its pods.
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
	//nolint:staticcheck // the deprecated field still takes effect
	orphan := options.OrphanDependents != nil && *options.OrphanDependents
	if p := options.PropagationPolicy; orphan || p != nil && *p == metav1.DeletePropagationOrphan {
		return refuse("a BatchJob cannot be deleted with its pods left behind (propagation policy Orphan)")
	}
	name := ""
	if owner := a.Directory.Owner(r.Namespace); owner != nil {
		name = owner.Name
	}
	return denyIf(authz.May(a.Directory.RolesOn(caller, name, ""), authz.Job, authz.Delete) == authz.Deny)
}

// validateUnheld is Validate for a change of the object, whatever hold the job has.
func (a *Admission) validateUnheld(b *v1alpha1.BatchJob, byOperator bool) error {
	free := *b
	free.Spec.Job.Hold = ""
	return a.Validate(&free, byOperator)
}

// Validate returns why a changed job would be refused if its user submitted it now.
// What only operators may request has been checked before. byOperator: an operator
// makes the change, who may choose any QOS.
func (a *Admission) Validate(b *v1alpha1.BatchJob, byOperator bool) error {
	user := a.Directory.User(b.Spec.User)
	if user == nil {
		return refuse(refusal.InvalidUser)
	}
	if err := checkBounds(b); err != nil {
		return err
	}
	parts, err := a.partitions(&b.Spec.Job)
	if err != nil {
		return err
	}
	err = a.check(b, user, &directory.Caller{Name: user.Name, User: user, Operator: true}, parts, byOperator)
	var r *Refusal
	if errors.As(err, &r) { // commands print only the last line after an update
		r.Text = r.Text[strings.LastIndexByte(string(r.Text), '\n')+1:]
	}
	return err
}
