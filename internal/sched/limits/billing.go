package limits

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Billing computes what a partition's jobs are billed for what they hold
// (slurm.conf(5), TRESBillingWeights). The zero value bills the CPUs.
type Billing struct {
	weights map[string]float64 // by TRES name in lower case; that of memory is per MiB
	maxTRES bool
}

// ParseBilling parses weights such as "CPU=1.0,Mem=0.25G,GRES/gpu=2.0". The billing
// is the sum of the terms or, with maxTRES (PriorityFlags=MAX_TRES), the greatest
// term plus those of licenses.
func ParseBilling(text string, maxTRES bool) (Billing, error) {
	b := Billing{maxTRES: maxTRES}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name = strings.ToLower(name)
		unit := 1.0
		if name == "mem" && value != "" {
			value, unit = cutMemoryUnit(value)
		}
		w, err := strconv.ParseFloat(value, 64)
		if isNumber := w >= 0 && !math.IsInf(w, 1); err != nil || !isNumber || !billable(name) {
			return Billing{}, fmt.Errorf("%q is not the weight of a TRES", part)
		}
		if b.weights == nil {
			b.weights = map[string]float64{}
		}
		b.weights[name] = w * unit
	}
	return b, nil
}

// cutMemoryUnit returns a weight of memory without its unit, and the factor that
// makes it one per MiB.
func cutMemoryUnit(value string) (number string, factor float64) {
	last := len(value) - 1
	switch value[last] &^ 0x20 {
	case 'K':
		return value[:last], 1024
	case 'M':
		return value[:last], 1
	case 'G':
		return value[:last], 1.0 / 1024
	case 'T':
		return value[:last], 1.0 / (1 << 20)
	}
	return value, 1
}

// BillsMaxTRES reports whether the cluster bills the greatest term only.
func BillsMaxTRES(c *v1alpha1.ClusterSpec) bool {
	return slices.ContainsFunc(c.PriorityFlags, func(f string) bool { return strings.EqualFold(f, "MAX_TRES") })
}

func billable(name string) bool {
	switch kind, sub, _ := strings.Cut(name, "/"); kind {
	case "cpu", "mem", "node":
		return name == kind
	case "gres", "license":
		return sub != ""
	}
	return false
}

// Of returns the billing of these amounts, rounded down as in Slurm. gres has the
// count of each name and of each name:type.
func (b Billing) Of(cpus, memory, nodes int64, gres, licenses map[string]int64) int64 {
	if b.weights == nil {
		return cpus
	}
	sum, greatest, ofLicenses := 0.0, 0.0, 0.0
	for _, name := range slices.Sorted(maps.Keys(b.weights)) {
		kind, sub, _ := strings.Cut(name, "/")
		term := b.weights[name]
		switch kind {
		case "cpu":
			term *= float64(cpus)
		case "mem":
			term *= float64(memory)
		case "node":
			term *= float64(nodes)
		case "gres":
			term *= float64(gres[sub])
		case "license":
			ofLicenses += term * float64(licenses[sub])
			continue
		}
		sum, greatest = sum+term, max(greatest, term)
	}
	if b.maxTRES {
		return int64(greatest + ofLicenses)
	}
	return int64(sum + ofLicenses)
}
