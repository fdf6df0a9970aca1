package snapshot

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// choice is one set of nodes a job may get its nodes from, and how many of
// them have to be what.
type choice struct {
	nodes *backfill.NodeSet
	parts []backfill.ConstraintCount
}

// wishes are what a job says about which nodes it may have.
type wishes struct {
	*job.Placement
	tmpDisk int64 // least local disk, in MiB
}

// addChoices sets the sets of nodes the job may have: in each of the
// partitions, for each alternative of its constraint, first with the features
// it prefers and then without. w, where not nil, learns the partitions.
// attractive are reservations that it may have its nodes in, and without.
func (v *View) addChoices(out *backfill.Job, w *Wanted, partitions []*partition, pl wishes, attractive []string) {
	for _, r := range attractive {
		v.addChoices(out, w, partitions, pl, nil)
		for len(out.ChoiceReservations) < 1+len(out.Alternatives) {
			out.ChoiceReservations = append(out.ChoiceReservations, r)
		}
	}
	for _, prefer := range []string{pl.Prefer, ""} {
		for _, p := range partitions {
			for _, c := range v.choicesFor(p, pl, prefer) {
				if out.Eligible == nil {
					out.Eligible, out.ConstraintCounts = c.nodes, c.parts
					continue
				}
				out.Alternatives = append(out.Alternatives, c.nodes)
				if w != nil {
					w.Others = append(w.Others, p.name)
				}
			}
		}
		if pl.Prefer == "" {
			break
		}
	}
	for len(attractive) > 0 && len(out.ChoiceReservations) < 1+len(out.Alternatives) {
		out.ChoiceReservations = append(out.ChoiceReservations, "")
	}
}

// choicesFor are the sets of nodes of p that pl allows, at least one. Equal
// wishes share their sets, which the planner relies on to be quick.
func (v *View) choicesFor(p *partition, pl wishes, prefer string) []choice {
	key := strings.Join([]string{p.name, pl.Constraint, strings.Join(pl.Exclude, ","), prefer, strconv.FormatInt(pl.tmpDisk, 10)}, "\x00")
	if c, ok := v.choices[key]; ok {
		return c
	}
	out := v.newChoices(p, pl, prefer)
	v.choices[key] = out
	return out
}

func (v *View) newChoices(p *partition, pl wishes, prefer string) []choice {
	c := value.Constraint{Alternatives: []value.Alternative{{}}}
	for _, text := range []string{pl.Constraint, prefer} {
		if text == "" {
			continue
		}
		one, err := value.ParseConstraint(text)
		if err != nil {
			return []choice{{nodes: &backfill.NodeSet{}}}
		}
		c = c.And(one)
	}
	var out []choice
	for _, a := range c.Alternatives {
		one := choice{nodes: v.nodesThat(p, pl, a.Every)}
		for _, s := range a.Some {
			one.parts = append(one.parts, backfill.ConstraintCount{Nodes: v.nodesThat(p, pl, a.Every.And(s.Is)), Count: s.Count})
		}
		out = append(out, one)
	}
	return out
}

// nodesThat are p's nodes that meet the condition, are not excluded, and have the
// disk. One that does not say how much it has is taken to have enough.
func (v *View) nodesThat(p *partition, pl wishes, is value.Features) *backfill.NodeSet {
	s := &backfill.NodeSet{}
	for i := range v.nodes {
		has := func(f string) bool { return slices.Contains(v.nodes[i].features, f) }
		if p.nodes.Has(i) && !slices.Contains(pl.Exclude, v.Nodes[i].Name) && is.Met(has) && v.hasDisk(i, pl.tmpDisk) {
			s.Add(i)
		}
	}
	return s
}

// hasDisk tells whether node i has so much local disk, in MiB, for all of its
// pods together.
func (v *View) hasDisk(i int, least int64) bool {
	if least <= 0 {
		return true
	}
	has := v.nodes[i].object.Status.Allocatable.StorageEphemeral().Value() >> 20
	return has == 0 || has >= least
}
