package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
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

// mutateJob serves CREATE and UPDATE of BatchJobs.
func (a *Admission) mutateJob(ctx context.Context, r *admissionv1.AdmissionRequest) (*patch, error) {
	if r.SubResource != "" {
		return nil, nil
	}
	caller := a.Directory.Resolve(r.UserInfo.Username, r.UserInfo.Groups)
	switch r.Operation {
	case admissionv1.Create:
		return a.create(ctx, r, caller)
	case admissionv1.Update:
		if caller.User != nil { // the rate of Kubernetes' controllers is not limited
			if err := a.awaitRate(ctx, caller); err != nil {
				return nil, err
			}
		}
		return a.stampUpdate(r, caller)
	}
	return nil, nil
}

// DryRunID is the id in the response to a dry run, which allocates none: the type
// requires an id, and no job ever has this one.
const DryRunID = 1<<53 - 1

// create decides about a submission. It allocates an id last, once the job has passed
// every check.
func (a *Admission) create(
	ctx context.Context, r *admissionv1.AdmissionRequest, caller *directory.Caller,
) (*patch, error) {
	began := a.Now()
	if err := a.awaitRate(ctx, caller); err != nil { // before the object is parsed
		return nil, err
	}
	b, err := decodeNew(r.Object.Raw)
	if err != nil {
		return nil, err
	}
	if caller.Trusted && b.Spec.Workload != nil {
		return a.createWorkload(ctx, r, b)
	}
	user, err := a.submitter(r.Namespace, caller)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(r.Name, array.NamePrefix) && !caller.Trusted {
		return nil, refusef("names with the prefix %q are reserved for the scheduler", array.NamePrefix)
	}
	if err := checkGivenFields(b, caller.Roles()); err != nil {
		return nil, err
	}
	p := &patch{}
	if requestsForecast(b) && !isDryRun(r) { // a submission has none
		delete(b.Annotations, wire.AnnotationForecast)
		p.remove("/metadata/annotations/" + escape(wire.AnnotationForecast))
	}
	if err := a.prepare(b, user, caller, p); err != nil {
		return nil, err
	}
	if err := a.prepareComponents(b, user, caller, p); err != nil {
		return nil, err
	}
	if err := a.allocateID(ctx, r, b, caller); err != nil {
		return nil, err
	}
	if !caller.Trusted || b.Spec.SubmitTime == nil {
		now := metav1.NewMicroTime(a.Now())
		b.Spec.SubmitTime = &now
	}
	stamp(b, p)
	if !caller.Trusted {
		removeSchedulerFields(b, p)
	}
	if isDryRun(r) {
		a.forecast(ctx, b, p)
	} else if a.Trace != nil {
		setTraceparent(b, a.Trace(b, began), p)
	}
	return p, nil
}

// allocateID reserves the job's place in the queue and sets its id, or refuses it.
// The scheduler's own jobs need no place, and may have an id.
func (a *Admission) allocateID(
	ctx context.Context, r *admissionv1.AdmissionRequest, b *v1alpha1.BatchJob, caller *directory.Caller,
) error {
	var reserved places
	var err error
	if !caller.Trusted {
		if reserved, err = a.reservePlaces(r, b, caller); err != nil {
			return err
		}
	}
	if isDryRun(r) {
		b.Spec.JobID = DryRunID
		a.releasePlaces(reserved)
		return nil
	}
	if caller.Trusted && b.Spec.JobID != 0 {
		return nil
	}
	if b.Spec.JobID, err = a.IDs.Span(ctx, int64(1+len(b.Spec.Components))); err != nil {
		a.releasePlaces(reserved)
		return err
	}
	a.assignPlaces(reserved, b.Spec.JobID)
	return nil
}

func isDryRun(r *admissionv1.AdmissionRequest) bool { return r.DryRun != nil && *r.DryRun }

// createWorkload sets the id of a job that stands for pods which were not submitted.
// The scheduler has checked it, and it belongs to no user.
func (a *Admission) createWorkload(
	ctx context.Context, r *admissionv1.AdmissionRequest, b *v1alpha1.BatchJob,
) (p *patch, err error) {
	if b.Spec.JobID = DryRunID; !isDryRun(r) {
		if b.Spec.JobID, err = a.IDs.Span(ctx, 1); err != nil {
			return nil, err
		}
	}
	p = &patch{}
	p.set("/spec/jobID", b.Spec.JobID)
	p.set("/metadata/labels", labelsOf(b))
	return p, nil
}

// removeSchedulerFields removes what only the scheduler sets: that the job was split
// off another one, whose script it would run, and that it stands for pods.
func removeSchedulerFields(b *v1alpha1.BatchJob, p *patch) {
	if b.Spec.Workload != nil {
		p.remove("/spec/workload")
	}
	if b.Spec.Origin != nil {
		p.remove("/spec/origin")
	}
	if b.Spec.Task != nil {
		p.remove("/spec/task")
	}
}

// decodeNew parses a submitted object. It must have spec and spec.job, so that a patch
// can set members of them.
func decodeNew(raw []byte) (*v1alpha1.BatchJob, error) {
	var probe struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &probe); err != nil {
		return nil, refusef("the BatchJob cannot be read: %v", err)
	}
	if inner := probe.Spec["job"]; len(inner) == 0 || inner[0] != '{' {
		return nil, refuse("the BatchJob has no spec.job")
	}
	b := &v1alpha1.BatchJob{}
	if err := json.Unmarshal(raw, b); err != nil {
		return nil, refusef("the BatchJob cannot be read: %v", err)
	}
	return b, nil
}

// submitter returns the User that a job in the namespace runs as: the namespace's
// owner, who is the caller unless an administrator submits the job. Nobody submits jobs of a
// disabled user, except the scheduler: what it creates was submitted before.
func (a *Admission) submitter(namespace string, caller *directory.Caller) (*v1alpha1.User, error) {
	owner := a.Directory.Owner(namespace)
	switch {
	case owner == nil:
		return nil, refusef(
			"%s: no user of this cluster has the namespace %q; an administrator creates one as a User object",
			refusal.InvalidUser, namespace,
		)
	case owner.Spec.Disabled && !caller.Trusted:
		return nil, refusef("%s: the user %s is disabled", refusal.InvalidUser, owner.Name)
	case authz.May(a.Directory.RolesOn(caller, owner.Name, ""), authz.Job, authz.Create) != authz.Deny:
		return owner, nil
	case caller.User == nil:
		return nil, refusef(
			"%s: %q is not a user of this cluster; an administrator creates one as a User object", refusal.InvalidUser,
			caller.Name,
		)
	}
	return nil, refuse(refusal.AccessDenied)
}

// prepare completes the job with the defaults of the cluster and checks it.
func (a *Admission) prepare(b *v1alpha1.BatchJob, user *v1alpha1.User, caller *directory.Caller, p *patch) error {
	b.Spec.User = user.Name
	j := &b.Spec.Job
	before := j.DeepCopy()
	if !mayChooseGroup(j, caller) {
		return refuse(refusal.InvalidGroup)
	}
	if !caller.Operator {
		dropOperatorFields(j, p)
	}
	if !caller.Trusted { // before anything is computed from the job
		if err := checkBounds(b); err != nil {
			return err
		}
	}
	if j.Priority != nil && *j.Priority == 0 {
		if j.Priority = nil; j.Hold == "" {
			j.Hold = holdOf(caller)
		}
	}
	if len(j.Mail.Types) > 0 && a.Directory.Parameters().Mail == nil && !caller.Trusted {
		p.warn("--mail-type has no effect: this cluster sends no mail")
	}
	if j.Account == "" {
		j.Account = user.Spec.DefaultAccount
	}
	j.Account, _ = a.Directory.AccountName(j.Account)
	if j.QOS == "" {
		j.QOS = a.defaultQOSOf(user, j)
	}
	j.QOS, _ = a.Directory.QOSName(j.QOS)
	if !caller.Trusted {
		if err := a.checkFirst(b, caller); err != nil {
			return err
		}
	}
	parts, err := a.partitions(j)
	if err != nil {
		return err
	}
	b.Spec.Partition = parts[0].Name
	if !caller.Trusted && j.Time.Limit == 0 {
		j.Time.Limit = a.defaultLimit(j, user, parts[0])
	}
	if !caller.Trusted { // a task split off was checked with its array
		if requiresExcluded(b) {
			return refuse(refusal.InvalidNode)
		}
		if err := a.check(b, user, caller, parts, caller.Operator); err != nil {
			return err
		}
	}
	patchJob(before, j, p)
	return nil
}

// mayChooseGroup reports whether the caller may choose the group that a job runs as,
// if the job names one.
func mayChooseGroup(j *job.Job, caller *directory.Caller) bool {
	return j.Batch.Group == nil || caller.Admin || caller.Trusted
}

func holdOf(caller *directory.Caller) string {
	if caller.Operator {
		return holdAdmin
	}
	return holdUser
}

// dropOperatorFields drops what only operators may request.
func dropOperatorFields(j *job.Job, p *patch) {
	if j.Priority != nil && *j.Priority != 0 {
		p.warn("--priority is ignored: only an operator may set it")
		j.Priority = nil
	}
	if j.Hold == holdAdmin {
		j.Hold = holdUser
	}
	if j.AdminComment != "" {
		p.warn("--admin-comment is ignored: only an operator may set it")
		j.AdminComment = ""
	}
}

// patchJob adds to the patch the members of spec.job that prepare has changed.
func patchJob(before, after *job.Job, p *patch) {
	text := func(name, old, now string) {
		if old != now {
			p.set("/spec/job/"+name, now)
		}
	}
	text("account", before.Account, after.Account)
	text("qos", before.QOS, after.QOS)
	text("hold", before.Hold, after.Hold)
	text("adminComment", before.AdminComment, after.AdminComment)
	if before.Time.Limit != after.Time.Limit {
		p.set("/spec/job/time", after.Time)
	}
	if before.Priority != nil && after.Priority == nil {
		p.remove("/spec/job/priority")
	}
}

// partitions returns the partitions that the job requests, or the default one: at
// least one.
func (a *Admission) partitions(j *job.Job) ([]*v1alpha1.Partition, error) {
	if len(j.Partitions) == 0 {
		d := a.Directory.Default()
		if d == nil {
			return nil, refuse(refusal.NoPartition)
		}
		return []*v1alpha1.Partition{d}, nil
	}
	parts := make([]*v1alpha1.Partition, 0, len(j.Partitions))
	for _, name := range j.Partitions {
		part := a.Directory.Partition(name)
		if part == nil {
			return nil, refuse(refusal.InvalidPartition)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// stamp sets everything that only admission may set.
func stamp(b *v1alpha1.BatchJob, p *patch) {
	p.set("/spec/jobID", b.Spec.JobID)
	p.set("/spec/user", b.Spec.User)
	p.set("/spec/partition", b.Spec.Partition)
	p.set("/spec/submitTime", b.Spec.SubmitTime)
	if b.Spec.Cancel != nil {
		p.remove("/spec/cancel")
	}
	if b.Spec.Requeues != 0 {
		p.remove("/spec/requeues")
	}
	p.set("/metadata/labels", labelsOf(b))
	p.set("/metadata/finalizers", []string{wire.Finalizer})
	if len(b.OwnerReferences) > 0 {
		p.remove("/metadata/ownerReferences")
	}
	for _, name := range berthNames(b.Annotations) {
		p.remove("/metadata/annotations/" + escape(name))
	}
}

// setTraceparent sets the traceparent, unless it is "". The patch has removed that of the
// client before.
func setTraceparent(b *v1alpha1.BatchJob, traceparent string, p *patch) {
	switch {
	case traceparent == "":
	case b.Annotations == nil:
		p.set("/metadata/annotations", map[string]string{wire.AnnotationTraceparent: traceparent})
	default:
		p.set("/metadata/annotations/"+escape(wire.AnnotationTraceparent), traceparent)
	}
}

// labelsOf returns the labels of a BatchJob. It has no others, because selectors
// depend on them.
func labelsOf(b *v1alpha1.BatchJob) map[string]string {
	return map[string]string{wire.LabelUser: b.Spec.User, wire.LabelJobID: strconv.FormatInt(b.Spec.JobID, 10)}
}

// berthNames returns the names in m that belong to Berth, sorted.
func berthNames(m map[string]string) []string {
	var names []string
	for name := range m {
		domain, _, _ := strings.Cut(name, "/")
		if domain == "berth.hpc" || strings.HasSuffix(domain, ".berth.hpc") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// decodeBoth parses the old and the new object of an update.
func decodeBoth(r *admissionv1.AdmissionRequest) (old, now *v1alpha1.BatchJob, err error) {
	old, now = &v1alpha1.BatchJob{}, &v1alpha1.BatchJob{}
	if err := json.Unmarshal(r.OldObject.Raw, old); err != nil {
		return nil, nil, fmt.Errorf("reading the stored BatchJob: %w", err)
	}
	if err := json.Unmarshal(r.Object.Raw, now); err != nil {
		return nil, nil, refusef("the BatchJob cannot be read: %v", err)
	}
	return old, now, nil
}
