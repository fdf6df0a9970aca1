package admission

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/reserve"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/kube/image"
	"github.com/berth-hpc/berth/translate/value"
)

// defaultArraySize is MaxArraySize's default.
const defaultArraySize = 1001

// check refuses what can never run, or may not. anyQOS: whoever asks may choose
// any QOS.
func (a *Admission) check(b *v1alpha1.BatchJob, user *v1alpha1.User, caller *directory.Caller, parts []*v1alpha1.Partition, anyQOS bool) error {
	steps := []func() error{
		func() error { return a.checkAccount(&b.Spec.Job, user, caller) },
		func() error { return a.checkQOS(&b.Spec.Job, user, anyQOS) },
		func() error { return a.checkWCKey(&b.Spec.Job, user, caller) },
		func() error { return a.checkPartitions(&b.Spec.Job, user, caller, parts) },
		func() error { return a.checkForm(&b.Spec.Job, caller) },
		func() error { return a.checkReserved(&b.Spec.Job, user, parts) },
		func() error { return checkPayload(b) },
		func() error { return checkPaths(&b.Spec.Job, parts) },
		func() error { return checkImage(&b.Spec.Job, parts) },
		func() error { return a.feasible(b) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// checkImage wants every partition that the job names to run its image.
func checkImage(j *job.Job, parts []*v1alpha1.Partition) error {
	for _, part := range parts {
		if err := image.Check(part, j.Batch.Container); err != nil {
			return refuse(refusal.Text(err.Error()))
		}
	}
	return nil
}

func (a *Admission) feasible(b *v1alpha1.BatchJob) error {
	if b.Spec.Job.Options["nodes"] == "0" && b.Spec.Job.Hold == "" { // Slurm looks at it when the job could start
		return refuse(refusal.InvalidNodeCount)
	}
	if a.Checker == nil {
		return nil
	}
	if err := a.Checker.Feasible(b); err != nil {
		return refuse(refusal.Text(err.Error()))
	}
	return nil
}

// checkPartitions wants one partition that takes the job, or every one where
// the cluster says EnforcePartLimits=ALL.
func (a *Admission) checkPartitions(j *job.Job, user *v1alpha1.User, caller *directory.Caller, parts []*v1alpha1.Partition) error {
	mode := a.Directory.Parameters().EnforcePartLimits
	var first error
	fits := false
	for _, part := range parts {
		err := access(part, j, user, caller)
		if err == nil && (mode == "ALL" || mode == "ANY") {
			q, _ := a.Directory.QOS(j.QOS)
			_, err = Exceeds(limits.Overridden(&part.Spec, q), a.Directory.Parameters(), j)
		}
		if err == nil {
			fits = true
			continue
		}
		if first == nil {
			first = err
		}
	}
	if fits && mode != "ALL" {
		return nil
	}
	return first
}

// access tells whether the partition takes jobs like this one from this user.
func access(part *v1alpha1.Partition, j *job.Job, user *v1alpha1.User, caller *directory.Caller) error {
	s := &part.Spec
	group := func(g v1alpha1.Group) bool { return slices.Contains(s.AllowGroups, g.Name) }
	switch {
	case s.State == "INACTIVE" || s.State == "DRAIN":
		return refuse(refusal.PartitionUnavailable)
	case s.RootOnly && !caller.Admin:
		return refuse(refusal.AccessDenied)
	case len(s.AllowGroups) > 0 && !slices.ContainsFunc(user.Spec.Groups, group):
		return refuse(refusal.GroupNotPermitted)
	case len(s.AllowAccounts) > 0 && !slices.Contains(s.AllowAccounts, j.Account),
		len(s.AllowAccounts) == 0 && slices.Contains(s.DenyAccounts, j.Account):
		return refuse(refusal.InvalidAccount)
	case len(s.AllowQOS) > 0 && !slices.Contains(s.AllowQOS, j.QOS),
		len(s.AllowQOS) == 0 && slices.Contains(s.DenyQOS, j.QOS):
		return refuse(refusal.InvalidQOS)
	}
	return nil
}

// Exceeds tells which limit of the partition the job is over: the reason that
// a pending job shows for it (PartitionTimeLimit, PartitionNodeLimit,
// MaxMemPerLimit), and the error that refuses the job where limits are
// enforced at submission. No limit: "" and nil.
func Exceeds(s *v1alpha1.PartitionSpec, params v1alpha1.ClusterSpec, j *job.Job) (reason string, err error) {
	sh := &j.Shape
	limit := max(s.MaxTime, 0)
	if limit > 0 && (j.Time.Limit > limit || j.Time.Limit == job.Unlimited) && (j.Time.Min == 0 || j.Time.Min > limit) {
		return "PartitionTimeLimit", refuse(refusal.InvalidTimeLimit)
	}
	least := max(sh.MinNodes, int32(len(j.Placement.NodeList)), 1)
	if s.MaxNodes > 0 && least > s.MaxNodes || sh.MaxNodes > 0 && sh.MaxNodes < s.MinNodes {
		return "PartitionNodeLimit", refuse(refusal.InvalidNodeCount)
	}
	if over(sh.MemPerNode, s.MaxMemPerNode, params.MaxMemPerNode) {
		return "MaxMemPerLimit", refuse(refusal.MemoryUnavailable)
	}
	return "", nil
}

// over tells whether asked is more than the partition's limit, or the
// cluster's where the partition has none.
func over(asked, part, cluster *int64) bool {
	limit := part
	if limit == nil {
		limit = cluster
	}
	return asked != nil && limit != nil && *limit > 0 && *asked > *limit
}

func (a *Admission) checkForm(j *job.Job, caller *directory.Caller) error {
	if j.Nice < 0 && !caller.Operator {
		return refuse(refusal.InvalidNice)
	}
	if j.SiteFactor != 0 && !caller.Operator {
		return refuse(refusal.AccessDenied)
	}
	if j.Hold != "" && j.Hold != "user" && j.Hold != "admin" {
		return refusef("spec.job.hold: %q is neither \"user\" nor \"admin\"", j.Hold)
	}
	if err := a.checkTime(&j.Time); err != nil {
		return err
	}
	for i := range j.Dependencies.Items {
		if j.Dependencies.Items[i].Type == "expand" {
			return refuse(refusal.NotSupported) // as Slurm does without permit_job_expansion
		}
	}
	if j.Array != nil {
		most := a.Directory.Parameters().MaxArraySize
		if most == 0 {
			most = defaultArraySize
		}
		tasks := array.Parse(j.Array.Spec)
		if n := len(tasks); n == 0 || tasks[n-1] >= most || value.ArraySpec(tasks, j.Array.Max) != j.Array.Spec {
			return refuse(refusal.InvalidArray)
		}
	}
	return nil
}

// checkReserved wants licences that exist, and a reservation that is for this
// user.
func (a *Admission) checkReserved(j *job.Job, user *v1alpha1.User, parts []*v1alpha1.Partition) error {
	all := a.Directory.Parameters().Licenses
	for _, l := range j.Licenses {
		if all[l.Name] < l.Count {
			return refuse(refusal.InvalidLicense)
		}
	}
	if j.Reservation == "" {
		if slices.ContainsFunc(parts, func(p *v1alpha1.Partition) bool { return p.Spec.ReqResv }) {
			return refuse(refusal.AccessDenied)
		}
		return nil
	}
	r := a.Directory.Reservation(j.Reservation)
	switch {
	case r == nil:
		return refuse(refusal.InvalidReservation)
	case !reserve.MayUse(&r.Spec, user, j.Account):
		return refuse(refusal.ReservationAccess)
	}
	return nil
}

func (a *Admission) checkTime(t *job.Time) error {
	switch {
	case t.Limit < job.Unlimited,
		t.Deadline != 0 && t.Deadline <= a.Now().Unix():
		return refuse(refusal.InvalidTimeLimit)
	case t.Min == job.Unlimited && t.Limit != job.Unlimited, t.Min > 0 && t.Limit > 0 && t.Min > t.Limit:
		return refuse(refusal.InvalidTimeMin)
	}
	return nil
}

var (
	scripts      = newDecoder(bounds.MaxScript)
	environments = newDecoder(bounds.MaxEnvironment)
)

func newDecoder(most uint64) *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(most), zstd.WithDecoderConcurrency(2))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}

// checkPayload decompresses script and environment, within their bounds: what
// is stored must be readable by whoever starts the job.
func checkPayload(b *v1alpha1.BatchJob) error {
	if len(b.Spec.Script) > 0 {
		script, err := scripts.DecodeAll(b.Spec.Script, nil)
		switch {
		case errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded):
			return refuse(refusal.TooLong)
		case err != nil:
			return refusef("spec.script is not zstd-compressed: %v", err)
		case len(script) == 0:
			return refuse(refusal.NoScript)
		}
	}
	if len(b.Spec.Environment) > 0 {
		if _, err := environments.DecodeAll(b.Spec.Environment, nil); err != nil {
			return refusef("spec.environment cannot be decompressed within %d bytes: %v", bounds.MaxEnvironment, err)
		}
	}
	return nil
}

// checkPaths wants the job's directory and files on storage that the nodes of
// every partition share: output must not be lost.
func checkPaths(j *job.Job, parts []*v1alpha1.Partition) error {
	dir := j.Batch.WorkDir
	if dir == "" || !path.IsAbs(dir) {
		return refusef("the job's directory %q is not an absolute path", dir)
	}
	places := []string{dir}
	for _, file := range []string{j.Batch.Output, j.Batch.Error, j.Batch.Input} {
		if file == "" {
			continue
		}
		if !path.IsAbs(file) {
			file = path.Join(dir, file)
		}
		// What follows the first % is known only later.
		if known, _, pattern := strings.Cut(file, "%"); pattern {
			file = known + "x"
		}
		places = append(places, path.Dir(path.Clean(file)))
	}
	for _, part := range parts {
		shared := Shared(part)
		for _, place := range places {
			if !below(place, shared) {
				return notShared(place, part.Name, shared)
			}
		}
	}
	return nil
}

func notShared(place, part string, shared []string) error {
	if len(shared) == 0 {
		return refusef("the nodes of partition %s share no directory with this one (Partition.spec.sharedPaths is empty), so the job's output in %s would be lost; ask an administrator to name the shared directories",
			part, place)
	}
	return refusef("the nodes of partition %s do not see %s; submit from a directory in %s, or choose one with --chdir and --output",
		part, place, strings.Join(shared, ", "))
}

// below reports whether place is one of dirs or below one; /dev is on every node.
func below(place string, dirs []string) bool {
	place = path.Clean(place)
	for _, dir := range append([]string{"/dev"}, dirs...) {
		dir = path.Clean(dir)
		if dir == "/" || place == dir || strings.HasPrefix(place, dir+"/") {
			return true
		}
	}
	return false
}

// hostImage is the image that stands for a process node's own file system.
const hostImage = "berth.hpc/host"

// Shared are the directories that the partition's nodes share with the login
// nodes. Without a word of the partition: everything where its jobs run in
// the host's own file system, else nothing.
func Shared(part *v1alpha1.Partition) []string {
	if len(part.Spec.SharedPaths) > 0 {
		return part.Spec.SharedPaths
	}
	raw := part.Spec.Template.Raw
	if len(raw) == 0 {
		return []string{"/"}
	}
	var t corev1.PodTemplateSpec
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &t); err != nil {
		return nil
	}
	for _, c := range t.Spec.Containers {
		if c.Name == "job" && c.Image != "" && c.Image != hostImage {
			return nil
		}
	}
	return []string{"/"}
}
