// Package kube turns a placed BatchJob into the Kubernetes objects that run
// it: a PodGroup and a JobSet. It is pure, and nothing in the objects comes
// from the user but the job's shape: uid, gid and groups are the User's; image,
// volumes and security are the Partition's.
package kube

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/kube/image"
)

// ContainerName is the name of the container that runs the agent, and of the
// container in a Partition's template that describes it.
const ContainerName = image.JobContainer

// HostImage stands for the root file system of the node, on process nodes.
const HostImage = image.HostImage

// MaxRuns is how many shapes the nodes of a job may have. Each is a replicated
// job with a template of its own, and the JobSet has to fit into a request.
const MaxRuns = 160

// DefaultKillWait is the time between SIGTERM and SIGKILL, in seconds, where
// the Cluster does not say (KillWait of slurm.conf).
const DefaultKillWait = 30

// Input is all that the objects depend on.
type Input struct {
	// Job is placed: status.allocation and status.attempt are set.
	Job       *v1alpha1.BatchJob
	Partition *v1alpha1.Partition
	User      *v1alpha1.User
	Cluster   *v1alpha1.Cluster // nil: defaults

	// API is where agents reach the API role (wire.EnvAPI); APICA the PEM
	// certificates to check it by.
	API   string
	APICA []byte

	// Agent is where a partition that does not say has the agent from.
	Agent v1alpha1.AgentSource

	// Resource names the extended resource that stands for g on node; nil:
	// Resource of this package.
	Resource func(node *v1alpha1.NodeAllocation, g *v1alpha1.GRESAllocation) corev1.ResourceName
}

// Objects makes the PodGroup and the JobSet of one attempt. The node index 0
// (the batch host) is completion index 0 of the replicated job n0.
func Objects(in Input) (*podgroup.PodGroup, *jobset.JobSet, error) {
	if in.Job == nil || in.Partition == nil || in.User == nil {
		return nil, nil, errors.New("a job, its partition and its user are needed")
	}
	alloc := in.Job.Status.Allocation
	if alloc == nil || len(alloc.Nodes) == 0 {
		return nil, nil, fmt.Errorf("job %d has no nodes", in.Job.Spec.JobID)
	}
	set := &jobset.JobSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: jobset.GroupVersion.String(), Kind: "JobSet"},
		ObjectMeta: in.meta(),
		Spec: jobset.JobSetSpec{
			Network:       &jobset.Network{EnableDNSHostnames: ptr(false)},
			SuccessPolicy: &jobset.SuccessPolicy{Operator: jobset.OperatorAll, TargetReplicatedJobs: []string{replicatedName(0)}},
			FailurePolicy: &jobset.FailurePolicy{MaxRestarts: 0},
			StartupPolicy: &jobset.StartupPolicy{StartupPolicyOrder: jobset.AnyOrder},
		},
	}
	runs := in.runs()
	if len(runs) > MaxRuns {
		return nil, nil, fmt.Errorf("job %d: nodes of %d shapes are more than one JobSet holds (%d)", in.Job.Spec.JobID, len(runs), MaxRuns)
	}
	for i, run := range runs {
		replicated, err := in.replicated(i, run)
		if err != nil {
			return nil, nil, err
		}
		set.Spec.ReplicatedJobs = append(set.Spec.ReplicatedJobs, replicated)
	}
	if len(alloc.Nodes) == 1 {
		if err := mold(&set.Spec.ReplicatedJobs[0].Template.Spec.Template); err != nil {
			return nil, nil, err
		}
	}
	return in.group(), set, nil
}

// Name is the name of the PodGroup and the JobSet of one attempt.
func Name(jobID int64, attempt int32) string {
	return fmt.Sprintf("job-%d-%d", jobID, attempt)
}

// Resource is the extended resource of a local cluster's nodes for g.
func Resource(_ *v1alpha1.NodeAllocation, g *v1alpha1.GRESAllocation) corev1.ResourceName {
	name := wire.ResourceGRES + g.Name
	if g.Type != "" {
		name += "-" + g.Type
	}
	return corev1.ResourceName(name)
}

func (in Input) group() *podgroup.PodGroup {
	return &podgroup.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: podgroup.SchemeGroupVersion.String(), Kind: "PodGroup"},
		ObjectMeta: in.meta(),
		Spec:       podgroup.PodGroupSpec{MinMember: int32(len(in.Job.Status.Allocation.Nodes))},
	}
}

func (in Input) name() string { return Name(in.Job.Spec.JobID, in.Job.Status.Attempt) }

// meta says who the objects are and whose: the job's, or, of a task that was
// split off, its array's, because the pods may outlive the task.
func (in Input) meta() metav1.ObjectMeta {
	owner := v1alpha1.Origin{Name: in.Job.Name, UID: in.Job.UID}
	if o := in.Job.Spec.Origin; o != nil {
		owner = *o
	}
	return metav1.ObjectMeta{
		Name:      in.name(),
		Namespace: in.Job.Namespace,
		Labels:    in.labels(),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "BatchJob", Name: owner.Name, UID: owner.UID,
			Controller: ptr(true), BlockOwnerDeletion: ptr(true),
		}},
	}
}

func (in Input) labels() map[string]string {
	return map[string]string{
		wire.LabelJobID:     strconv.FormatInt(in.Job.Spec.JobID, 10),
		wire.LabelAttempt:   strconv.Itoa(int(in.Job.Status.Attempt)),
		wire.LabelUser:      in.User.Name,
		wire.LabelPartition: in.Partition.Name,
	}
}

func replicatedName(i int) string { return "n" + strconv.Itoa(i) }

func (in Input) replicated(i int, r run) (jobset.ReplicatedJob, error) {
	pod, err := in.pod(r)
	if err != nil {
		return jobset.ReplicatedJob{}, err
	}
	spec := batchv1.JobSpec{
		CompletionMode:       ptr(batchv1.IndexedCompletion),
		Completions:          ptr(int32(len(r.nodes))),
		Parallelism:          ptr(int32(len(r.nodes))),
		BackoffLimit:         ptr(int32(0)),
		PodReplacementPolicy: ptr(batchv1.Failed),
		Template:             *pod,
	}
	if in.Job.Spec.Job.Batch.NoKill {
		outlive(&spec, i)
	}
	if i == 0 {
		spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: ptr("0")}}}
	}
	labels := in.labels()
	return jobset.ReplicatedJob{
		Name:     replicatedName(i),
		Replicas: 1,
		Template: batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
	}, nil
}

// outlive lets the job go on without a pod of it (--no-kill). In the first
// replicated job each index fails for itself. Another one would have failed,
// and the JobSet with it, once all its pods are gone: their failures do not
// count, and what comes in their place waits for a node that it never gets.
func outlive(spec *batchv1.JobSpec, i int) {
	if i == 0 {
		spec.BackoffLimit, spec.BackoffLimitPerIndex = nil, ptr(int32(0))
		return
	}
	spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}},
		{Action: batchv1.PodFailurePolicyActionIgnore, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			Operator: batchv1.PodFailurePolicyOnExitCodesOpNotIn, Values: []int32{0}}},
	}}
}

// agentEnv is what the agent finds in its environment (package wire).
func (in Input) agentEnv(r *run, binDir string) []corev1.EnvVar {
	v := func(name, text string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: text} }
	nodes := v(wire.EnvNodeOffset, strconv.Itoa(int(r.offset())))
	if r.list() != "" {
		nodes = corev1.EnvVar{Name: wire.EnvNodes, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: "metadata.annotations['" + wire.AnnotationNodes + "']"}}}
	}
	return []corev1.EnvVar{
		v(wire.EnvJobID, strconv.FormatInt(in.Job.Spec.JobID, 10)),
		v(wire.EnvAttempt, strconv.Itoa(int(in.Job.Status.Attempt))),
		nodes,
		v(wire.EnvAPI, in.API),
		v(wire.EnvAPICA, base64.StdEncoding.EncodeToString(in.APICA)),
		v(wire.EnvBinDir, binDir),
		{Name: wire.EnvPodIP, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}},
	}
}

func (in Input) killWait() int64 {
	if in.Cluster != nil && in.Cluster.Spec.KillWait != nil {
		return int64(*in.Cluster.Spec.KillWait)
	}
	return DefaultKillWait
}

func ptr[T any](v T) *T { return &v }
