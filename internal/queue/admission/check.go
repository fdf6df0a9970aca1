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

// checkFirst makes the checks of a new job that Slurm makes before it looks for the job's
// partition: its commands those of the generic resources, before they submit the job.
func (a *Admission) checkFirst(b *v1alpha1.BatchJob, caller *directory.Caller) error {
	if err := a.checkWith(Checker.FeasibleGRES, b); err != nil {
		return err
	}
	if err := checkNice(&b.Spec.Job, caller); err != nil {
		return err
	}
	if err := a.checkArray(&b.Spec.Job); err != nil {
		return err
	}
	return a.checkWith(Checker.FeasibleNodes, b)
}

// check refuses a job that may not run or can never run. The order of the checks is that of
// Slurm's controller. anyQOS: the caller may choose any QOS.
func (a *Admission) check(
	b *v1alpha1.BatchJob, user *v1alpha1.User, caller *directory.Caller, parts []*v1alpha1.Partition, anyQOS bool,
) error {
	checks := []func() error{
		func() error { return a.checkAccount(&b.Spec.Job, user, caller) },
		func() error { return a.checkQOS(&b.Spec.Job, user, anyQOS) },
		func() error { return a.checkWCKey(&b.Spec.Job, user, caller) },
		func() error { return a.checkWith(Checker.FeasibleSize, b) },
		func() error { return a.checkPartitions(&b.Spec.Job, user, caller, parts) },
		func() error { return a.checkFields(&b.Spec.Job, caller) },
		func() error { return a.checkLicenses(&b.Spec.Job) },
		func() error { return a.checkWith(Checker.FeasibleExclusions, b) },
		func() error { return checkDependencies(&b.Spec.Job) },
		func() error { return a.checkWith(Checker.FeasibleNames, b) },
		func() error { return a.checkReservation(&b.Spec.Job, user, parts) },
		func() error { return a.checkReservationStart(b) },
		func() error { return checkPayload(b) },
		func() error { return checkPaths(&b.Spec.Job, parts) },
		func() error { return checkImage(&b.Spec.Job, parts) },
		func() error { return a.checkFeasible(b) },
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkImage refuses an image that one of the partitions does not run.
func checkImage(j *job.Job, parts []*v1alpha1.Partition) error {
	for _, part := range parts {
		if err := image.Check(part, j.Batch.Container); err != nil {
			return refuse(refusal.Text(err.Error()))
		}
	}
	return nil
}

func (a *Admission) checkFeasible(b *v1alpha1.BatchJob) error {
	// Slurm checks this when the job could start, so not in sbatch --test-only.
	asksForBatch := requestsForecast(b) && len(b.Spec.Script) > 0
	if b.Spec.Job.Options["nodes"] == "0" && b.Spec.Job.Hold == "" && !asksForBatch {
		return refuse(refusal.InvalidNodeCount)
	}
	return a.checkWith(Checker.Feasible, b)
}

// checkWith refuses a job that a check of the Checker refuses.
func (a *Admission) checkWith(check func(Checker, *v1alpha1.BatchJob) error, b *v1alpha1.BatchJob) error {
	if a.Checker == nil {
		return nil
	}
	if err := check(a.Checker, b); err != nil {
		return refuse(refusal.Text(err.Error()))
	}
	return nil
}

// requiresExcluded reports whether the job, or a component of it, requires a node that it
// excludes. Slurm refuses that of a new job only.
func requiresExcluded(b *v1alpha1.BatchJob) bool {
	conflicts := func(pl *job.Placement) bool {
		return slices.ContainsFunc(pl.NodeList, func(n string) bool { return slices.Contains(pl.Exclude, n) })
	}
	return conflicts(&b.Spec.Job.Placement) ||
		slices.ContainsFunc(b.Spec.Components, func(c job.Job) bool { return conflicts(&c.Placement) })
}

// checkPartitions refuses a job that none of the partitions accepts; with
// EnforcePartLimits=ALL, one that any of them does not accept.
func (a *Admission) checkPartitions(
	j *job.Job, user *v1alpha1.User, caller *directory.Caller, parts []*v1alpha1.Partition,
) error {
	mode := a.Directory.Parameters().EnforcePartLimits
	var first error
	accepted := false
	for _, part := range parts {
		err := checkAccess(part, j, user, caller)
		if err == nil && (mode == "ALL" || mode == "ANY") {
			q, _ := a.Directory.QOS(j.QOS)
			_, err = Exceeds(limits.Overridden(&part.Spec, q), a.Directory.Parameters(), j)
		}
		if err == nil {
			accepted = true
			continue
		}
		if first == nil {
			first = err
		}
	}
	if accepted && mode != "ALL" {
		return nil
	}
	return first
}

// checkAccess refuses jobs that the partition does not accept from the user.
func checkAccess(part *v1alpha1.Partition, j *job.Job, user *v1alpha1.User, caller *directory.Caller) error {
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

// Exceeds returns the limit of the partition that the job exceeds: the reason that a
// pending job shows for it (PartitionTimeLimit, PartitionNodeLimit,
// MaxMemPerLimit), and the error that refuses the job where limits are enforced at
// submission. It returns "" and nil if the job is within all limits.
func Exceeds(s *v1alpha1.PartitionSpec, params v1alpha1.ClusterSpec, j *job.Job) (reason string, err error) {
	sh := &j.Shape
	limit := max(s.MaxTime, 0)
	tooLong := j.Time.Limit > limit || j.Time.Limit == job.Unlimited
	if limit > 0 && tooLong && (j.Time.Min == 0 || j.Time.Min > limit) {
		return "PartitionTimeLimit", refuse(refusal.InvalidTimeLimit)
	}
	if s.MaxNodes > 0 && j.LeastNodes() > s.MaxNodes || sh.MaxNodes > 0 && sh.MaxNodes < s.MinNodes {
		return "PartitionNodeLimit", refuse(refusal.InvalidNodeCount)
	}
	if exceedsMemory(sh.MemPerNode, s.MaxMemPerNode, params.MaxMemPerNode) {
		return "MaxMemPerLimit", refuse(refusal.MemoryUnavailable)
	}
	return "", nil
}

// exceedsMemory reports whether requested is more than the partition's limit, or the
// cluster's if the partition has none. As in Slurm, all the memory of a node (0) is more.
func exceedsMemory(requested, part, cluster *int64) bool {
	limit := part
	if limit == nil {
		limit = cluster
	}
	return requested != nil && limit != nil && *limit > 0 && (*requested > *limit || *requested == 0)
}

// checkNice refuses a priority that only operators may give.
func checkNice(j *job.Job, caller *directory.Caller) error {
	if j.Nice < 0 && !caller.Operator {
		return refuse(refusal.InvalidNice)
	}
	return nil
}

// checkFields refuses values of single fields.
func (a *Admission) checkFields(j *job.Job, caller *directory.Caller) error {
	if j.SiteFactor != 0 && !caller.Operator {
		return refuse(refusal.AccessDenied)
	}
	if j.Hold != "" && j.Hold != holdUser && j.Hold != holdAdmin {
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
	return nil
}

// checkDependencies refuses dependencies that the command could not read; see
// value.UnreadableDependencies.
func checkDependencies(j *job.Job) error {
	for i := range j.Dependencies.Items {
		if d := &j.Dependencies.Items[i]; d.JobID == 0 && d.Type != "singleton" {
			return refuse(refusal.DependencyProblem)
		}
	}
	return nil
}

// checkArray refuses an array with too many tasks, or none.
func (a *Admission) checkArray(j *job.Job) error {
	if j.Array == nil {
		return nil
	}
	most := a.Directory.Parameters().MaxArraySize
	if most == 0 {
		most = defaultArraySize
	}
	tasks := array.Parse(j.Array.Spec)
	if n := len(tasks); n == 0 || tasks[n-1] >= most || value.ArraySpec(tasks, j.Array.Max) != j.Array.Spec {
		return refuse(refusal.InvalidArray)
	}
	return nil
}

// checkLicenses refuses licenses that do not exist.
func (a *Admission) checkLicenses(j *job.Job) error {
	total := a.Directory.Parameters().Licenses
	requested := map[string]int64{} // a name may occur several times
	for _, l := range j.Licenses {
		if requested[l.Name] += int64(l.Count); int64(total[l.Name]) < requested[l.Name] {
			return refuse(refusal.InvalidLicense)
		}
	}
	return nil
}

// checkReservation refuses a reservation that the user may not use.
func (a *Admission) checkReservation(j *job.Job, user *v1alpha1.User, parts []*v1alpha1.Partition) error {
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

// checkReservationStart refuses to forecast the start of a job in a reservation that has not
// begun, as Slurm's --test-only does.
func (a *Admission) checkReservationStart(b *v1alpha1.BatchJob) error {
	if !requestsForecast(b) || b.Spec.Job.Reservation == "" {
		return nil
	}
	begin := max(a.Now().Unix(), b.Spec.Job.Time.Begin)
	if r := a.Directory.Reservation(b.Spec.Job.Reservation); r != nil && r.Spec.StartTime.Unix() > begin {
		return refuse(refusal.InvalidTime)
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
	case t.Deadline != 0 && 60*int64(t.Min) > t.Deadline-a.Now().Unix()+59: // in whole minutes, as in Slurm
		return refuse(refusal.InvalidTimeMin)
	}
	return nil
}

var (
	scripts      = newDecoder(bounds.MaxScript)
	environments = newDecoder(bounds.MaxEnvironment)
)

func newDecoder(maxBytes uint64) *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxBytes), zstd.WithDecoderConcurrency(2))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}

// checkPayload decompresses script and environment within their bounds: what is
// stored must be readable when the job starts.
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

// checkPaths refuses a directory and files that are not on storage which the nodes
// of every partition share with the login nodes: output must not be lost.
func checkPaths(j *job.Job, parts []*v1alpha1.Partition) error {
	dir := j.Batch.WorkDir
	if dir == "" || !path.IsAbs(dir) {
		return refusef("the job's directory %q is not an absolute path", dir)
	}
	dirs := []string{dir}
	for _, file := range []string{j.Batch.Output, j.Batch.Error, j.Batch.Input} {
		if file == "" {
			continue
		}
		if !path.IsAbs(file) {
			file = path.Join(dir, file)
		}
		// The part after the first % is known when the job starts.
		if known, _, isPattern := strings.Cut(file, "%"); isPattern {
			file = known + "x"
		}
		dirs = append(dirs, path.Dir(path.Clean(file)))
	}
	for _, part := range parts {
		shared := SharedPaths(part)
		for _, dir := range dirs {
			if !isBelow(dir, shared) {
				return notShared(dir, part.Name, shared)
			}
		}
	}
	return nil
}

func notShared(dir, part string, shared []string) error {
	if len(shared) == 0 {
		return refusef(
			"the nodes of partition %s share no directory with this one (Partition.spec.sharedPaths is empty), "+
				"so the job's output in %s would be lost; ask an administrator to name the shared directories",
			part,
			dir,
		)
	}
	return refusef(
		"the nodes of partition %s do not see %s; "+
			"submit from a directory in %s, or choose one with --chdir and --output",
		part, dir, strings.Join(shared, ", "),
	)
}

// isBelow reports whether dir is one of the parents or below one. /dev exists on
// every node.
func isBelow(dir string, parents []string) bool {
	dir = path.Clean(dir)
	for _, parent := range append([]string{"/dev"}, parents...) {
		parent = path.Clean(parent)
		if parent == "/" || dir == parent || strings.HasPrefix(dir, parent+"/") {
			return true
		}
	}
	return false
}

// hostImage is the image that stands for the file system of a process node.
const hostImage = "berth.hpc/host"

// SharedPaths returns the directories that the partition's nodes share with the login
// nodes. If the partition names none, that is everything where its jobs run in the
// host's own file system, else nothing.
func SharedPaths(part *v1alpha1.Partition) []string {
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
		if c.Name == JobContainer && c.Image != "" && c.Image != hostImage {
			return nil
		}
	}
	return []string{"/"}
}
