// Package kube translates a BatchJob with an allocation to the Kubernetes objects that
// run it: a PodGroup and a JobSet. It is pure. The user determines only the job's shape:
// uid, gid and groups come from the User; image, volumes and security from the
// Partition.
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
	"github.com/berth-hpc/berth/translate/accounts"
	"github.com/berth-hpc/berth/translate/kube/image"
)

// ContainerName is the name of the container that runs the agent, also in a Partition's
// template.
const ContainerName = image.JobContainer

// HostImage is, in place of an image, the root file system of a process node.
const HostImage = image.HostImage

// MaxRuns is the maximum number of different allocations on the nodes of a job. Each is
// a replicated job with its own template, and the JobSet must fit into a request.
const MaxRuns = 160

// DefaultKillWait is the default time between SIGTERM and SIGKILL in seconds (KillWait of
// slurm.conf).
const DefaultKillWait = 30

// Input is everything that the objects depend on.
type Input struct {
	// Job has an allocation: status.allocation and status.attempt are set.
	Job       *v1alpha1.BatchJob
	Partition *v1alpha1.Partition
	User      *v1alpha1.User
	Cluster   *v1alpha1.Cluster // nil: defaults

	// API is the address of the API role for agents (wire.EnvAPI), APICA the PEM
	// certificates to verify it.
	API   string
	APICA []byte

	// Agent is the default source of the agent.
	Agent v1alpha1.AgentSource

	// Accounts returns passwd(5) and group(5) of an image, if they are known. nil: pods are
	// always prepared by an init container, as for kubelets before 1.35.
	Accounts func(image string) (accounts.Files, bool)

	// Resource returns the extended resource for g on node; nil: Resource of this
	// package.
	Resource func(node *v1alpha1.NodeAllocation, g *v1alpha1.GRESAllocation) corev1.ResourceName
}

// Objects returns the PodGroup and the JobSet of one attempt. Node 0 (the batch host) is
// completion index 0 of the replicated job n0.
func Objects(in Input) (*podgroup.PodGroup, *jobset.JobSet, error) {
	if in.Job == nil || in.Partition == nil || in.User == nil {
		return nil, nil, errors.New("job, partition and user are required")
	}
	alloc := in.Job.Status.Allocation
	if alloc == nil || len(alloc.Nodes) == 0 {
		return nil, nil, fmt.Errorf("job %d has no nodes", in.Job.Spec.JobID)
	}
	set := &jobset.JobSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: jobset.GroupVersion.String(), Kind: "JobSet"},
		ObjectMeta: in.meta(),
		Spec: jobset.JobSetSpec{
			Network: &jobset.Network{EnableDNSHostnames: ptr(false)},
			SuccessPolicy: &jobset.SuccessPolicy{
				Operator: jobset.OperatorAll, TargetReplicatedJobs: []string{replicatedName(0)},
			},
			FailurePolicy: &jobset.FailurePolicy{MaxRestarts: 0},
			StartupPolicy: &jobset.StartupPolicy{StartupPolicyOrder: jobset.AnyOrder},
		},
	}
	runs := in.runs()
	if len(runs) > MaxRuns {
		return nil, nil, fmt.Errorf("job %d: %d different allocations of nodes exceed the maximum of a JobSet (%d)",
			in.Job.Spec.JobID, len(runs), MaxRuns)
	}
	for i, run := range runs {
		replicated, err := in.replicated(i, run)
		if err != nil {
			return nil, nil, err
		}
		set.Spec.ReplicatedJobs = append(set.Spec.ReplicatedJobs, replicated)
	}
	if len(alloc.Nodes) == 1 {
		if err := addTemplateHash(&set.Spec.ReplicatedJobs[0].Template.Spec.Template); err != nil {
			return nil, nil, err
		}
	}
	return in.group(), set, nil
}

// Name returns the name of the PodGroup and the JobSet of one attempt.
func Name(jobID int64, attempt int32) string {
	return fmt.Sprintf("job-%d-%d", jobID, attempt)
}

// Resource returns the extended resource of a local cluster's nodes for g.
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

// meta returns the metadata of the objects. Their owner is the job or, for a task that was
// split off, its array, because the pods may outlive the task.
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
		wire.LabelPartition: v1alpha1.PartitionLabel(in.Partition.Name),
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
		tolerateFailures(&spec, i)
	}
	if i == 0 {
		batchHost := batchv1.SuccessPolicyRule{SucceededIndexes: ptr("0")}
		spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{batchHost}}
	}
	labels := in.labels()
	return jobset.ReplicatedJob{
		Name:     replicatedName(i),
		Replicas: 1,
		Template: batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
	}, nil
}

// tolerateFailures lets the job continue after the failure of a pod (--no-kill). In the
// first replicated job, each index fails separately. The others ignore failures, and the
// replacements of failed pods remain pending: if each index failed separately, the JobSet
// would fail when all pods of one of these jobs have failed.
func tolerateFailures(spec *batchv1.JobSpec, i int) {
	if i == 0 {
		spec.BackoffLimit, spec.BackoffLimitPerIndex = nil, ptr(int32(0))
		return
	}
	spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		},
		{Action: batchv1.PodFailurePolicyActionIgnore, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			Operator: batchv1.PodFailurePolicyOnExitCodesOpNotIn, Values: []int32{0}}},
	}}
}

// agentEnv returns the environment variables of the agent (package wire).
func (in Input) agentEnv(r *run, binDir string) []corev1.EnvVar {
	v := func(name, text string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: text} }
	nodes := v(wire.EnvNodeOffset, strconv.Itoa(int(r.offset())))
	if r.list() != "" {
		nodes = corev1.EnvVar{
			Name: wire.EnvNodes,
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
				APIVersion: "v1", FieldPath: "metadata.annotations['" + wire.AnnotationNodes + "']"}},
		}
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
