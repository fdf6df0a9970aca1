package priority

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/status"
)

// Input is everything that priorities depend on. The objects are only read.
type Input struct {
	Now        int64 // Unix seconds
	Parameters v1alpha1.Priority
	Accounts   []*v1alpha1.Account
	Users      []*v1alpha1.User
	QOS        []*v1alpha1.QOS
	Partitions []*v1alpha1.Partition
	// Usage of each association, decayed, in billing-seconds.
	Usage map[status.AssociationKey]float64
	// Nodes and CPUs of the cluster, and its TRES by name.
	Nodes, CPUs int
	TRES        map[string]float64
}

// Job is what a job's priority depends on.
type Job struct {
	Account, User, QOS, Partition string
	Nice, Site                    int32
	// Since is the instant from which its age counts (Unix seconds): when it became
	// eligible or, with ACCRUE_ALWAYS, was submitted. 0 or in the future: not yet.
	Since int64
	// Nodes and CPUs are the least that it requests, Limit is its time limit in
	// minutes (0: none).
	Nodes, CPUs int32
	Limit       int32
	TRES        map[string]float64
}

// association returns the job's association.
func (j *Job) association() status.AssociationKey {
	return status.AssociationKey{Account: j.Account, User: j.User}
}

// Defaults of slurm.conf(5).
const (
	week       = 7 * 24 * 3600
	DefaultAge = week
	// DefaultHalfLife is PriorityDecayHalfLife's default, seconds.
	DefaultHalfLife = week
)

// firstPriority is the priority of the first job with priority/basic; later jobs get
// less. maxPriority bounds every priority.
const (
	firstPriority = 4294901760
	maxPriority   = math.MaxUint32 - 1
)

// Multifactor computes priorities. Safe for concurrent use.
type Multifactor struct {
	*Tree
	in    Input
	basic bool
	flags map[string]bool

	age, fairshare, size, part, qos, assoc float64 // weights
	weightTRES                             map[string]float64
	maxAge                                 float64

	partFactor, qosFactor map[string]float64
}

// New returns a Multifactor.
func New(in Input) *Multifactor {
	m := &Multifactor{in: in, flags: map[string]bool{}, weightTRES: map[string]float64{}, maxAge: DefaultAge}
	for _, f := range in.Parameters.PriorityFlags {
		m.flags[strings.ToUpper(f)] = true
	}
	if a := in.Parameters.PriorityMaxAge; a != nil {
		m.maxAge = float64(*a)
	}
	w := in.Parameters.PriorityWeights
	m.age, m.fairshare, m.size = float64(w["age"]), float64(w["fairshare"]), float64(w["jobsize"])
	m.part, m.qos, m.assoc = float64(w["partition"]), float64(w["qos"]), float64(w["assoc"])
	weighted := m.age+m.fairshare+m.size+m.part+m.qos+m.assoc > 0
	for name, text := range in.Parameters.PriorityWeightTRES {
		if v, err := strconv.ParseFloat(text, 64); err == nil && v != 0 {
			m.weightTRES[strings.ToLower(name)], weighted = v, true
		}
	}
	switch strings.TrimPrefix(strings.ToLower(in.Parameters.PriorityType), "priority/") {
	case "basic":
		m.basic = true
	case "multifactor":
	default:
		m.basic = !weighted
	}
	m.Tree = NewTree(in.Accounts, in.Users, in.Usage, m.flags["NO_FAIR_TREE"])
	m.partFactor = m.partitionFactors()
	m.qosFactor = m.qosFactors()
	return m
}

// CountsTRES reports whether priorities depend on Job.TRES.
func (m *Multifactor) CountsTRES() bool { return len(m.weightTRES) > 0 }

// Basic reports whether jobs are ordered by submission (priority/basic).
func (m *Multifactor) Basic() bool { return m.basic }

// isRaw reports whether the flag, or NO_NORMAL_ALL, disables a normalization.
func (m *Multifactor) isRaw(flag string) bool { return m.flags[flag] || m.flags["NO_NORMAL_ALL"] }

func (m *Multifactor) partitionFactors() map[string]float64 {
	all := map[string]float64{}
	for _, p := range m.in.Partitions {
		all[p.Name] = float64(max(1, p.Spec.PriorityJobFactor))
	}
	return normalize(all, m.isRaw("NO_NORMAL_PART"))
}

func (m *Multifactor) qosFactors() map[string]float64 {
	all := map[string]float64{}
	for _, q := range m.in.QOS {
		all[q.Name] = float64(q.Spec.Priority)
	}
	return normalize(all, m.isRaw("NO_NORMAL_QOS"))
}

// normalize divides all values by the greatest, unless raw.
func normalize(all map[string]float64, raw bool) map[string]float64 {
	greatest := 0.0
	for _, v := range all {
		greatest = max(greatest, v)
	}
	if raw || greatest == 0 {
		return all
	}
	for k, v := range all {
		all[k] = v / greatest
	}
	return all
}

// basicPriority returns a priority that orders jobs by their ids, shifted by nice.
func basicPriority(id int64, nice int32) int64 { return max(1, firstPriority-id-int64(nice)) }

// Of returns the priority of the job with the id.
func (m *Multifactor) Of(id int64, j *Job) int64 {
	if m.basic {
		return basicPriority(id, j.Nice)
	}
	sum := m.age*m.ageOf(j) + m.fairshare*m.Factor(j.association()) + m.size*m.sizeOf(j) +
		m.part*m.partOf(j.Partition) + m.qos*m.qosFactor[j.QOS] - float64(j.Nice) + float64(j.Site)
	if m.assoc != 0 {
		sum += m.assoc * m.assocOf(j)
	}
	for name, w := range m.weightTRES {
		sum += w * m.tresOf(j, name)
	}
	return int64(min(max(sum, 1), maxPriority))
}

// Explain returns the priority of the job with the id and its terms, as sprio shows them.
func (m *Multifactor) Explain(id int64, j *Job) status.Priority {
	term := func(weight, factor float64) status.Factor {
		return status.Factor{Normalized: factor, Weighted: weight * factor}
	}
	p := status.Priority{
		ID: id, User: j.User, Account: j.Account, Partition: j.Partition, QOS: j.QOS,
		Priority: m.Of(id, j), Nice: int64(j.Nice), Site: int64(j.Site),
	}
	if m.basic {
		return p
	}
	p.Age, p.FairShare = term(m.age, m.ageOf(j)), term(m.fairshare, m.Factor(j.association()))
	p.JobSize, p.Part = term(m.size, m.sizeOf(j)), term(m.part, m.partOf(j.Partition))
	p.QOSTerm, p.Assoc = term(m.qos, m.qosFactor[j.QOS]), term(m.assoc, m.assocOf(j))
	for _, name := range slices.Sorted(maps.Keys(m.weightTRES)) {
		if p.TRES == nil {
			p.TRES = map[string]status.Factor{}
		}
		p.TRES[name] = term(m.weightTRES[name], m.tresOf(j, name))
	}
	return p
}

// Weights returns the weights that are in force, by sprio's names.
func (m *Multifactor) Weights() (weights, tres map[string]float64) {
	return map[string]float64{"age": m.age, "assoc": m.assoc, "fairshare": m.fairshare, "jobsize": m.size,
		"partition": m.part, "qos": m.qos, "site": 1}, m.weightTRES
}

func (m *Multifactor) ageOf(j *Job) float64 {
	if m.age == 0 || j.Since == 0 || j.Since >= m.in.Now {
		return 0
	}
	if m.maxAge <= 0 {
		return 1
	}
	return min(1, float64(m.in.Now-j.Since)/m.maxAge)
}

// sizeOf returns the mean of the shares of the cluster's nodes and CPUs that the job
// requests, or with PriorityFavorSmall one minus that.
func (m *Multifactor) sizeOf(j *Job) float64 {
	if m.size == 0 || m.in.Nodes == 0 || m.in.CPUs == 0 {
		return 0
	}
	nodes, cpus := float64(j.Nodes)/float64(m.in.Nodes), float64(j.CPUs)/float64(m.in.CPUs)
	var f float64
	switch small := m.in.Parameters.PriorityFavorSmall; {
	case m.flags["SMALL_RELATIVE_TO_TIME"]:
		f = cpus / float64(max(1, j.Limit))
		if small {
			f = 1 - f
		}
	case small:
		f = (1 - nodes + 1 - cpus) / 2
	default:
		f = (nodes + cpus) / 2
	}
	return min(max(f, 0), 1)
}

// partOf returns the factor of a partition; of a list of partitions, that of the first.
func (m *Multifactor) partOf(name string) float64 {
	first, _, _ := strings.Cut(name, ",")
	if f, ok := m.partFactor[first]; ok {
		return f
	}
	return 1 // the default partition has no object
}

func (m *Multifactor) assocOf(j *Job) float64 {
	f, raw := m.Association(j.association())
	if m.isRaw("NO_NORMAL_ASSOC") {
		return float64(raw)
	}
	return f
}

func (m *Multifactor) tresOf(j *Job, name string) float64 {
	if m.isRaw("NO_NORMAL_TRES") {
		return j.TRES[name]
	}
	if all := m.in.TRES[name]; all > 0 {
		return j.TRES[name] / all
	}
	return 0
}
