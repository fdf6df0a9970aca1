package snapshot

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// nodeSet is a set of nodes that a job may choose its nodes from, with the counts
// that a constraint such as "[a*2&b*1]" requires.
type nodeSet struct {
	nodes  *backfill.NodeSet
	counts []backfill.ConstraintCount
}

// nodePredicates are the conditions that a job's request sets on each node.
type nodePredicates struct {
	*job.Placement
	tmpDisk int64 // least local disk, in MiB
}

func predicatesOf(j *job.Job) nodePredicates { return nodePredicates{&j.Placement, j.Shape.TmpDisk} }

// eligibilityKey identifies the node sets of the predicates in a partition. Jobs
// with equal keys share their sets, which makes the planner fast.
func (p nodePredicates) eligibilityKey(partition, prefer string) string {
	return strings.Join([]string{
		partition, p.Constraint, strings.Join(p.Exclude, ","), prefer, strconv.FormatInt(p.tmpDisk, 10),
	}, "\x00")
}

// addChoices adds the choices of nodes that the job has to out: in each of the
// partitions, for each alternative of its constraint, first with the features
// that it prefers and then without. The partition of each further choice is added
// to info, if that is not nil. Each of the magnetic reservations gives the same
// choices, which come before those without a reservation.
func (s *Snapshot) addChoices(
	out *backfill.Job, info *JobInfo, partitions []*Partition, predicates nodePredicates, magnetic []string,
) {
	for _, reservation := range magnetic {
		s.addChoices(out, info, partitions, predicates, nil)
		for len(out.ChoiceReservations) < 1+len(out.Alternatives) {
			out.ChoiceReservations = append(out.ChoiceReservations, reservation)
		}
	}
	for _, prefer := range []string{predicates.Prefer, ""} {
		for _, p := range partitions {
			for _, set := range s.nodeSetsFor(p, predicates, prefer) {
				if out.Eligible == nil {
					out.Eligible, out.ConstraintCounts = set.nodes, set.counts
					continue
				}
				out.Alternatives = append(out.Alternatives, set.nodes)
				if info != nil {
					further := info.ownChoices()
					further.partitions = append(further.partitions, p.Name)
				}
			}
		}
		if predicates.Prefer == "" {
			break
		}
	}
	for len(magnetic) > 0 && len(out.ChoiceReservations) < 1+len(out.Alternatives) {
		out.ChoiceReservations = append(out.ChoiceReservations, "")
	}
}

// nodeSetsFor returns the sets of nodes of p that satisfy the predicates and the
// preferred features, at least one.
func (s *Snapshot) nodeSetsFor(p *Partition, predicates nodePredicates, prefer string) []nodeSet {
	key := predicates.eligibilityKey(p.Name, prefer)
	if sets, ok := s.nodeSets[key]; ok {
		return sets
	}
	sets := s.newNodeSets(p, predicates, prefer)
	s.nodeSets[key] = sets
	return sets
}

func (s *Snapshot) newNodeSets(p *Partition, predicates nodePredicates, prefer string) []nodeSet {
	constraint := value.Constraint{Alternatives: []value.Alternative{{}}}
	for _, text := range []string{predicates.Constraint, prefer} {
		if text == "" {
			continue
		}
		parsed, err := value.ParseConstraint(text)
		if err != nil {
			return []nodeSet{{nodes: &backfill.NodeSet{}}}
		}
		constraint = constraint.And(parsed)
	}
	var out []nodeSet
	for _, alternative := range constraint.Alternatives {
		set := nodeSet{nodes: s.matchingNodes(p, predicates, alternative.Every)}
		for _, counted := range alternative.Some {
			set.counts = append(set.counts, backfill.ConstraintCount{
				Nodes: s.matchingNodes(p, predicates, alternative.Every.And(counted.Is)), Count: counted.Count,
			})
		}
		out = append(out, set)
	}
	return out
}

// matchingNodes returns the nodes of p that have the features, are not excluded,
// and have the local disk.
func (s *Snapshot) matchingNodes(p *Partition, predicates nodePredicates, features value.Features) *backfill.NodeSet {
	set := &backfill.NodeSet{}
	for i := range s.nodes {
		has := func(f string) bool { return slices.Contains(s.nodes[i].features, f) }
		excluded := slices.Contains(predicates.Exclude, s.Nodes[i].Name)
		if p.Nodes.Has(i) && !excluded && features.Met(has) && s.HasTmpDisk(i, predicates.tmpDisk) {
			set.Add(i)
		}
	}
	return set
}
