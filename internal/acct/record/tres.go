package record

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// ParseTRES parses a list such as "billing=1,cpu=2,mem=1500M,gres/gpu:a100=1":
// memory in MiB, the rest as counts. Items that cannot be parsed are left out.
func ParseTRES(list string) map[string]int64 {
	out := map[string]int64{}
	for item := range strings.SplitSeq(list, ",") {
		name, text, ok := strings.Cut(item, "=")
		if !ok {
			continue
		}
		if n, ok := parseAmount(name, text); ok {
			out[name] = n
		}
	}
	return out
}

// memoryUnits are the units of memory, in MiB.
var memoryUnits = map[byte]float64{'K': 1.0 / 1024, 'M': 1, 'G': 1 << 10, 'T': 1 << 20, 'P': 1 << 30}

func parseAmount(name, text string) (int64, bool) {
	factor := 1.0
	if (name == "mem" || name == "vmem") && text != "" {
		if f, ok := memoryUnits[text[len(text)-1]]; ok {
			factor, text = f, text[:len(text)-1]
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	return int64(f * factor), err == nil
}

// joinTRES joins a list of TRES in the order of their names, as sacct shows
// them. Of a name that occurs twice the first counts.
func joinTRES(list []string) string {
	seen := map[string]bool{}
	var out []string
	for _, item := range list {
		name, _, ok := strings.Cut(item, "=")
		if ok && !seen[name] {
			seen[name] = true
			out = append(out, item)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// allocatedTRES returns the TRES of an allocation: what tres lists, and its
// generic resources.
func allocatedTRES(tres string, a *v1alpha1.Allocation) string {
	var all []v1alpha1.GRESAllocation
	for i := range a.Nodes {
		all = append(all, a.Nodes[i].GRES...)
	}
	return joinTRES(append(strings.Split(tres, ","), gresItems(all)...))
}

// gresItems lists generic resources: the sum of each name and of each type.
func gresItems(list []v1alpha1.GRESAllocation) []string {
	sums := map[string]int64{}
	for _, g := range list {
		sums["gres/"+g.Name] += g.Count
		if g.Type != "" {
			sums["gres/"+g.Name+":"+g.Type] += g.Count
		}
	}
	out := make([]string, 0, len(sums))
	for name, n := range sums {
		out = append(out, fmt.Sprintf("%s=%d", name, n))
	}
	return out
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }
