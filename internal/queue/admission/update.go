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

// stampUpdate writes who asked for the cancellation, when it is new, and which
// partition is the first of those asked for.
func (a *Admission) stampUpdate(r *admissionv1.AdmissionRequest, caller *directory.Caller) (*patch, error) {
	old, now, err := decodeBoth(r)
	if err != nil {
		return nil, err
	}
	p := &patch{}
	if list := now.Spec.Job.Partitions; !caller.Trusted && len(list) > 0 && !slices.Equal(list, old.Spec.Job.Partitions) && now.Spec.Partition != list[0] {
		p.set("/spec/partition", list[0])
	}
	if now.Spec.Cancel == nil || old.Spec.Cancel != nil || caller.Trusted && now.Spec.Cancel.By != "" {
		return p, nil
	}
	at := metav1.NewMicroTime(a.Now())
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
	case mayGive(b, caller.Roles()) != nil,
		!workload && (owner == nil || b.Spec.User != owner.Name),
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

func (a *Admission) validateUpdate(old, now *v1alpha1.BatchJob, caller *directory.Caller) error {
	if old.Spec.JobID != now.Spec.JobID && old.Spec.JobID != 0 || old.Spec.User != now.Spec.User && old.Spec.User != "" {
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
	case old.Spec.JobID != now.Spec.JobID || old.Spec.User != now.Spec.User:
		return refuse("a job's id and user are set by the cluster")
	}
	if err := checkMetadata(old, now, caller); err != nil {
		return err
	}
	if err := a.Within(old, now, caller); err != nil {
		return err
	}
	if update == authz.Deny {
		if !reflect.DeepEqual(old.Spec, now.Spec) {
			return refuse(refusal.AccessDenied)
		}
		return nil
	}
	return a.checkFields(old, now, caller)
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
	name := ""
	if owner := a.Directory.Owner(r.Namespace); owner != nil {
		name = owner.Name
	}
	return denyIf(authz.May(a.Directory.RolesOn(caller, name, ""), authz.Job, authz.Delete) == authz.Deny)
}

// judgeAs checks a job that a caller changes by its object, whatever holds it.
func (a *Admission) judgeAs(b *v1alpha1.BatchJob, operator bool) error {
	free := *b
	free.Spec.Job.Hold = ""
	return a.Judge(&free, operator)
}

// Judge checks a job that is changed in the queue as if its user submitted it
// now; what only operators may ask for has been decided before. operator: an
// operator changes it, who may choose any QOS.
func (a *Admission) Judge(b *v1alpha1.BatchJob, operator bool) error {
	user := a.Directory.User(b.Spec.User)
	if user == nil {
		return refuse(refusal.InvalidUser)
	}
	if err := within(b); err != nil {
		return err
	}
	parts, err := a.partitions(&b.Spec.Job)
	if err != nil {
		return err
	}
	err = a.check(b, user, &directory.Caller{Name: user.Name, User: user, Operator: true}, parts, operator)
	var no *Refusal
	if errors.As(err, &no) { // the reason alone
		no.Text = no.Text[strings.LastIndexByte(string(no.Text), '\n')+1:]
	}
	return err
}
