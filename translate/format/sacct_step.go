package format

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

var acctStep = map[string]func(*status.StepRecord, *AcctSettings) string{
	"NTasks": func(p *status.StepRecord, _ *AcctSettings) string { return itoa(p.Tasks) },
	"Layout": func(p *status.StepRecord, _ *AcctSettings) string { return layoutText(p) },
	"AveCPU": measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return longDuration(p.AveCPU / 1e6) },
	),
	"MinCPU": measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return longDuration(p.MinCPU / 1e6) },
	),
	"MinCPUNode":       measured(func(p *status.StepRecord, _ *AcctSettings) string { return p.MinCPUNode }),
	"MinCPUTask":       measured(func(p *status.StepRecord, _ *AcctSettings) string { return itoa(p.MinCPUTask) }),
	"AveCPUFreq":       func(*status.StepRecord, *AcctSettings) string { return "0" },
	"ConsumedEnergy":   func(*status.StepRecord, *AcctSettings) string { return "0" },
	"AveRSS":           bytes(func(p *status.StepRecord) int64 { return p.AveRSS }),
	"MaxRSS":           bytes(func(p *status.StepRecord) int64 { return p.MaxRSS }),
	"MaxRSSNode":       measured(func(p *status.StepRecord, _ *AcctSettings) string { return p.MaxRSSNode }),
	"MaxRSSTask":       measured(func(p *status.StepRecord, _ *AcctSettings) string { return itoa(p.MaxRSSTask) }),
	"AveVMSize":        bytes(func(p *status.StepRecord) int64 { return p.AveVMSize }),
	"MaxVMSize":        bytes(func(p *status.StepRecord) int64 { return p.MaxVMSize }),
	"MaxVMSizeNode":    measured(func(p *status.StepRecord, _ *AcctSettings) string { return p.MaxVMSizeNode }),
	"MaxVMSizeTask":    measured(func(p *status.StepRecord, _ *AcctSettings) string { return itoa(p.MaxVMSizeTask) }),
	"AvePages":         measured(func(p *status.StepRecord, _ *AcctSettings) string { return itoa(p.AvePages) }),
	"MaxPages":         measured(func(p *status.StepRecord, _ *AcctSettings) string { return itoa(p.MaxPages) }),
	"MaxPagesNode":     measured(func(p *status.StepRecord, _ *AcctSettings) string { return p.MaxPagesNode }),
	"MaxPagesTask":     measured(func(p *status.StepRecord, _ *AcctSettings) string { return itoa(p.MaxPagesTask) }),
	"AveDiskRead":      disk(func(p *status.StepRecord) int64 { return p.AveDiskRead }),
	"MaxDiskRead":      disk(func(p *status.StepRecord) int64 { return p.MaxDiskRead }),
	"MaxDiskReadNode":  measured(func(p *status.StepRecord, _ *AcctSettings) string { return p.MaxDiskReadNode }),
	"MaxDiskReadTask":  measured(func(p *status.StepRecord, _ *AcctSettings) string { return itoa(p.MaxDiskReadTask) }),
	"AveDiskWrite":     disk(func(p *status.StepRecord) int64 { return p.AveDiskWrite }),
	"MaxDiskWrite":     disk(func(p *status.StepRecord) int64 { return p.MaxDiskWrite }),
	"MaxDiskWriteNode": measured(func(p *status.StepRecord, _ *AcctSettings) string { return p.MaxDiskWriteNode }),
	"MaxDiskWriteTask": measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return itoa(p.MaxDiskWriteTask) },
	),
	"TRESUsageInAve": measured(func(p *status.StepRecord, s *AcctSettings) string {
		return usageText(p.AveCPU, p.AveDiskRead, p.AveRSS, p.AvePages, p.AveVMSize, s)
	}),
	"TRESUsageInMax": measured(func(p *status.StepRecord, s *AcctSettings) string {
		return usageText(max(p.MinCPU, p.AveCPU), p.MaxDiskRead, p.MaxRSS, p.MaxPages, p.MaxVMSize, s)
	}),
	"TRESUsageInMaxNode": measured(func(p *status.StepRecord, _ *AcctSettings) string {
		return "cpu=" + p.MinCPUNode + ",fs/disk=" + p.MaxDiskReadNode + ",mem=" + p.MaxRSSNode +
			",pages=" + p.MaxPagesNode + ",vmem=" + p.MaxVMSizeNode
	}),
	"TRESUsageInMaxTask": measured(func(p *status.StepRecord, _ *AcctSettings) string {
		return fmt.Sprintf("cpu=%d,fs/disk=%d,mem=%d,pages=%d,vmem=%d",
			p.MinCPUTask, p.MaxDiskReadTask, p.MaxRSSTask, p.MaxPagesTask, p.MaxVMSizeTask)
	}),
	"TRESUsageInMin": measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return "cpu=" + longDuration(p.MinCPU/1e6) },
	),
	"TRESUsageInMinNode": measured(func(p *status.StepRecord, _ *AcctSettings) string { return "cpu=" + p.MinCPUNode }),
	"TRESUsageInMinTask": measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return "cpu=" + itoa(p.MinCPUTask) },
	),
	"TRESUsageInTot": measured(func(p *status.StepRecord, s *AcctSettings) string {
		n := int64(max(1, p.Tasks))
		return usageText(p.UserCPU+p.SystemCPU, p.AveDiskRead*n, p.AveRSS*n, p.AvePages*n, p.AveVMSize*n, s)
	}),
	"TRESUsageOutAve": measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return "fs/disk=" + itoa(p.AveDiskWrite) },
	),
	"TRESUsageOutMax": measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return "fs/disk=" + itoa(p.MaxDiskWrite) },
	),
	"TRESUsageOutMaxNode": measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return "fs/disk=" + p.MaxDiskWriteNode },
	),
	"TRESUsageOutMaxTask": measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return "fs/disk=" + itoa(p.MaxDiskWriteTask) },
	),
	"TRESUsageOutTot": measured(func(p *status.StepRecord, _ *AcctSettings) string {
		return "fs/disk=" + itoa(p.AveDiskWrite*int64(max(1, p.Tasks)))
	}),
}

func layoutText(p *status.StepRecord) string {
	if p.Layout == "" {
		return "Unknown"
	}
	return Distribution(p.Layout)
}

// measured returns a field that is empty if the step's usage was not measured.
func measured(f func(*status.StepRecord, *AcctSettings) string) func(*status.StepRecord, *AcctSettings) string {
	return func(p *status.StepRecord, s *AcctSettings) string {
		if !p.Measured {
			return ""
		}
		return f(p, s)
	}
}

// bytes returns a field of bytes.
func bytes(f func(*status.StepRecord) int64) func(*status.StepRecord, *AcctSettings) string {
	return measured(func(p *status.StepRecord, s *AcctSettings) string {
		n := f(p)
		if s.NoConvert && s.Unit == 0 {
			return itoa(n)
		}
		return memText(n/1024, s)
	})
}

// disk returns a field of bytes, shown in MiB with two decimals.
func disk(f func(*status.StepRecord) int64) func(*status.StepRecord, *AcctSettings) string {
	return measured(func(p *status.StepRecord, _ *AcctSettings) string {
		return strconv.FormatFloat(float64(f(p))/(1<<20), 'f', 2, 64) + "M"
	})
}

func usageText(cpu, diskBytes, rss, pages, vm int64, s *AcctSettings) string {
	size := func(n int64) string {
		if s.NoConvert && s.Unit == 0 {
			return itoa(n)
		}
		return memText(n/1024, s)
	}
	return "cpu=" + longDuration(cpu/1e6) + ",fs/disk=" + itoa(diskBytes) + ",mem=" + size(rss) +
		",pages=" + itoa(pages) + ",vmem=" + size(vm)
}

// memText returns an amount of KiB in the requested unit, or as in Slurm in the
// largest unit that shows it exactly (1536M, 2G, 3140K).
func memText(kib int64, s *AcctSettings) string {
	const units = "KMGTP"
	at := 0
	switch {
	case kib == 0:
		return "0"
	case s.Unit != 0:
		at = strings.IndexByte(units, s.Unit)
	case s.NoConvert:
		if kib%1024 == 0 {
			at = 1
		}
	default:
		for at < len(units)-1 && kib%(1<<(10*(at+1))) == 0 {
			at++
		}
	}
	value := float64(kib) / float64(int64(1)<<(10*at))
	if value == float64(int64(value)) {
		return itoa(int64(value)) + units[at:at+1]
	}
	return strconv.FormatFloat(value, 'f', 2, 64) + units[at:at+1]
}

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
				items[i] = "mem=" + memText(mib*1024, s)
			}
		}
	}
	slices.Sort(items)
	return strings.Join(items, ",")
}
