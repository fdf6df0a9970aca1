package table

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/sched/limits"
)

// deviceCounts has the number of generic resources of each name, and of each name:type.
type deviceCounts map[string]int64

func (d deviceCounts) add(name, kind string, n int64) {
	d[name] += n
	if kind != "" {
		d[name+":"+kind] += n
	}
}

// biller returns the billing of an amount of resources.
type biller func(cpus, mem, nodes int64, devices deviceCounts) int64

// billing returns the biller of a job in the partition, which may be nil.
func billing(b *v1alpha1.BatchJob, part *v1alpha1.Partition, dir *directory.Directory) biller {
	if part == nil || part.Spec.TRESBillingWeights == "" {
		return func(cpus, _, _ int64, _ deviceCounts) int64 { return cpus }
	}
	params := dir.Parameters()
	w, _ := limits.ParseBilling(part.Spec.TRESBillingWeights, limits.BillsMaxTRES(&params))
	licenses := limits.CountLicenses(b.Spec.Job.Licenses)
	return func(cpus, mem, nodes int64, devices deviceCounts) int64 {
		return w.Of(cpus, mem, nodes, devices, licenses)
	}
}

// BillingOf returns what an earlier attempt of a job is billed, by the present weights of
// the partition in which it ran.
func BillingOf(b *v1alpha1.BatchJob, p *v1alpha1.PastAttempt, dir *directory.Directory) int64 {
	devices := deviceCounts{}
	for _, g := range p.GRES {
		devices.add(g.Name, g.Type, g.Count)
	}
	return billing(b, dir.Partition(p.Partition), dir)(int64(p.CPUs), p.Memory, int64(p.Nodes), devices)
}

// tres returns a list of TRES as scontrol shows it. Types of generic resources are billed,
// but not listed.
func tres(cpus int32, mem int64, nodes int32, devices deviceCounts, bill biller) string {
	text := "cpu=" + strconv.Itoa(int(cpus))
	if mem > 0 {
		text += ",mem=" + size(mem)
	}
	text += ",node=" + strconv.Itoa(int(nodes)) + ",billing=" +
		strconv.FormatInt(bill(int64(cpus), mem, int64(nodes), devices), 10)
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		if n := devices[name]; n > 0 && !strings.Contains(name, ":") {
			text += ",gres/" + name + "=" + strconv.FormatInt(n, 10)
		}
	}
	return text
}

// size formats MiB as Slurm does: in the largest unit that divides it.
func size(mib int64) string {
	unit := "M"
	for _, next := range []string{"G", "T"} {
		if mib%1024 != 0 {
			break
		}
		mib, unit = mib/1024, next
	}
	return strconv.FormatInt(mib, 10) + unit
}
