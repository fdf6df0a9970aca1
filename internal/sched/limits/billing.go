package limits

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Billing says what a partition's jobs are billed for what they hold
// (slurm.conf(5), TRESBillingWeights). The zero value bills the CPUs.
type Billing struct {
	weights map[string]float64 // by TRES name, lower case; of memory for each MiB
	most    bool
}

// ParseBilling reads weights such as "CPU=1.0,Mem=0.25G,GRES/gpu=2.0". With most
// (PriorityFlags=MAX_TRES) the greatest term counts, and licences besides; else
// their sum.
func ParseBilling(text string, most bool) (Billing, error) {
	b := Billing{most: most}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name = strings.ToLower(name)
		unit := 1.0
		if name == "mem" && value != "" {
			if i := strings.IndexByte("KMGT", value[len(value)-1]&^0x20); i >= 0 {
				unit = []float64{1024, 1, 1.0 / 1024, 1.0 / (1 << 20)}[i]
				value = value[:len(value)-1]
			}
		}
		w, err := strconv.ParseFloat(value, 64)
		if err != nil || w < 0 || !billable(name) {
			return Billing{}, fmt.Errorf("%q is no weight of a TRES", part)
		}
		if b.weights == nil {
			b.weights = map[string]float64{}
		}
		b.weights[name] = w * unit
	}
	return b, nil
}

// GreatestTRES tells whether the cluster bills the greatest term only.
func GreatestTRES(c *v1alpha1.ClusterSpec) bool {
	return slices.ContainsFunc(c.PriorityFlags, func(f string) bool { return strings.EqualFold(f, "MAX_TRES") })
}

func billable(name string) bool {
	kind, what, _ := strings.Cut(name, "/")
	return name == "cpu" || name == "mem" || name == "node" || (kind == "gres" || kind == "license") && what != ""
}

// Of is the billing of so much, rounded down as Slurm does. gres has the count
// of each name and of each name:type.
func (b Billing) Of(cpus, memory, nodes int64, gres, licenses map[string]int64) int64 {
	if b.weights == nil {
		return cpus
	}
	sum, greatest := 0.0, 0.0
	global := 0.0
	for _, name := range slices.Sorted(maps.Keys(b.weights)) {
		kind, what, _ := strings.Cut(name, "/")
		term := b.weights[name]
		switch kind {
		case "cpu":
			term *= float64(cpus)
		case "mem":
			term *= float64(memory)
		case "node":
			term *= float64(nodes)
		case "gres":
			term *= float64(gres[what])
		case "license":
			global += term * float64(licenses[what])
			continue
		}
		sum, greatest = sum+term, max(greatest, term)
	}
	if b.most {
		return int64(greatest + global)
	}
	return int64(sum + global)
}
