package change

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// slurmOrder are the settings of a job, in lower case, in the order in which Slurm's
// controller looks at them: of several wrong values it names the first. Those that are not
// here come before lastSettings.
var slurmOrder = []string{
	"burstbuffer", "admincomment", "partition", "reqnodelist", "nodelist", "reservation", "reservationname", "gres",
	"licenses", "excnodelist", "numnodes", "reqnodes", "numtasks", "reqprocs", "timelimit", "timemin", "deadline",
	"endtime", "priority", "contiguous", "corespec", "nice", "oversubscribe", "shared", "features", "prefer",
	"clusterfeatures", "dependency",
}

// lastSettings are looked at after the job is checked with the others.
var lastSettings = []string{"tresperjob", "trespernode", "trespersocket", "trespertask", "sitefactor"}

// split returns the keys of set in Slurm's order: those before the job is checked, and
// those after it.
func split(set map[string]string) (first, last []string) {
	rank := func(key string) int {
		if i := slices.Index(slurmOrder, strings.ToLower(key)); i >= 0 {
			return i
		}
		return len(slurmOrder) + slices.Index(lastSettings, strings.ToLower(key)) + 1
	}
	all := slices.SortedFunc(maps.Keys(set), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	i := slices.IndexFunc(all, func(key string) bool { return rank(key) > len(slurmOrder) })
	if i < 0 {
		return all, nil
	}
	return all[:i], all[i:]
}
