package format

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

var acctStep = map[string]stepField{
	"NTasks":     func(p *status.StepRecord, _ *AcctSettings) string { return itoa(p.Tasks) },
	"Layout":     func(p *status.StepRecord, _ *AcctSettings) string { return layoutText(p) },
	"AveCPUFreq": func(*status.StepRecord, *AcctSettings) string { return "0" },
}

func layoutText(p *status.StepRecord) string {
	if p.Layout == "" {
		return "Unknown"
	}
	return Distribution(p.Layout)
}

// memText returns an amount of memory, given in MiB, as text.
func memText(mib int64, s *AcctSettings) string { return unitText(float64(mib), 2, s) }

// unitText returns an amount of 1024^unit in the requested unit. Without a request, it is
// shown as in Slurm in the largest unit of which it is a multiple of a half: 1500M, 1.50G,
// 3140K, 1000.
func unitText(amount float64, unit int, s *AcctSettings) string {
	const units = "KMGTP"
	switch {
	case amount == 0:
		return "0"
	case s.Unit != 0:
		to := strings.IndexByte(units, s.Unit) + 1
		amount, unit = math.Ldexp(amount, 10*(unit-to)), to
	case !s.NoConvert:
		for unit < len(units) && amount >= 1024 && int64(amount)%512 == 0 {
			amount /= 1024
			unit++
		}
	}
	suffix := ""
	if unit > 0 {
		suffix = units[unit-1 : unit]
	}
	if amount == math.Trunc(amount) {
		return itoa(int64(amount)) + suffix
	}
	return fixed(amount) + suffix
}

// fixed returns an amount with two decimals.
func fixed(amount float64) string { return strconv.FormatFloat(amount, 'f', 2, 64) }

// tresOf returns the amount of one TRES in a list; memory is in MiB.
func tresOf(list, name string) (int64, bool) {
	for item := range strings.SplitSeq(list, ",") {
		n, text, ok := strings.Cut(item, "=")
		if !ok || n != name {
			continue
		}
		factor := int64(1)
		if name == "mem" {
			for i, unit := range []string{"M", "G", "T", "P"} {
				if rest, cut := strings.CutSuffix(text, unit); cut {
					text, factor = rest, int64(1)<<(10*i)
				}
			}
		}
		v, err := strconv.ParseInt(text, 10, 64)
		return v * factor, err == nil
	}
	return 0, false
}

// tresText returns a list of TRES with memory in the requested unit.
func tresText(list string, s *AcctSettings) string {
	if list == "" {
		return ""
	}
	items := strings.Split(list, ",")
	for i, item := range items {
		if strings.HasPrefix(item, "mem=") {
			if mib, ok := tresOf(item, "mem"); ok {
				items[i] = "mem=" + memText(mib, s)
			}
		}
	}
	slices.Sort(items)
	return strings.Join(items, ",")
}
